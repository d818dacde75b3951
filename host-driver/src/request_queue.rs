//! Queues of requests that the library keeps, linked through the request table, so that nothing is allocated.

use crate::table::{Request, RequestTable};

/// A queue of requests of the table, first in, first out.
#[derive(Clone, Copy, Default)]
pub(crate) struct RequestQueue {
    ends: Option<(Request, Request)>,
}

impl RequestQueue {
    pub(crate) const fn new() -> Self {
        Self { ends: None }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.ends.is_none()
    }

    pub(crate) fn push_back(&mut self, table: &mut RequestTable, request: Request) {
        table.set_next(request, None);
        match &mut self.ends {
            None => self.ends = Some((request, request)),
            Some((_, last)) => {
                table.set_next(*last, Some(request));
                *last = request;
            }
        }
    }

    /// The request that is taken next.
    pub(crate) fn front(&self) -> Option<Request> {
        self.ends.map(|(first, _)| first)
    }

    pub(crate) fn push_front(&mut self, table: &mut RequestTable, request: Request) {
        match &mut self.ends {
            None => self.push_back(table, request),
            Some((first, _)) => {
                table.set_next(request, Some(*first));
                *first = request;
            }
        }
    }

    pub(crate) fn pop_front(&mut self, table: &mut RequestTable) -> Option<Request> {
        let (first, last) = self.ends?;
        self.ends = table.next(first).map(|next| (next, last));
        Some(first)
    }

    /// Puts another queue in front of this one.
    pub(crate) fn prepend(&mut self, table: &mut RequestTable, other: Self) {
        self.ends = match (other.ends, self.ends) {
            (Some((first, middle)), Some((next, last))) => {
                table.set_next(middle, Some(next));
                Some((first, last))
            }
            (some, None) | (None, some) => some,
        };
    }

    /// Takes a request out, wherever it is.
    pub(crate) fn remove(&mut self, table: &mut RequestTable, request: Request) {
        let mut kept = Self::default();
        while let Some(next) = self.pop_front(table) {
            if next != request {
                kept.push_back(table, next);
            }
        }
        *self = kept;
    }
}
