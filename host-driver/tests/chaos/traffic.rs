//! Requests: posted, cancelled, polled for.

use crate::program::{Posted, World, ensure, range};
use host_driver::{
    Buffer, ListRefused, Pair, Payload, PostError, RecvWr, Refused, SendFlags, SendWr,
    SharedBuffer, Source, TaggedReceive, TaggedSend, WcKind, WcStatus,
};
use rand::Rng;
use std::iter;

fn entry(kind: WcKind, payload: Option<&Payload>) -> Posted {
    let (buffer, shared) = match payload {
        None => (None, None),
        Some(Payload::Unique(buffer)) => (Some(range(buffer)), None),
        Some(Payload::Shared(shared)) => (None, Some(range(shared))),
    };
    Posted {
        kind,
        buffer,
        shared,
    }
}

impl World {
    /// An endpoint and a pair of it; both may have been closed.
    pub fn pick_pair(&mut self, who: usize) -> Option<(usize, Pair)> {
        let at = self.pick(who)?;
        let pairs = &self.hosts[who].ends[at].pairs;
        let last = pairs.len().checked_sub(1)?;
        let (pair, _) = pairs[self.rng.random_range(0..=last)];
        Some((at, pair))
    }

    fn receive(&mut self, pair: Pair) -> TaggedReceive {
        let any = self.rng.random_ratio(1, 3);
        TaggedReceive {
            source: if any { Source::Any } else { Source::Pair(pair) },
            context: 0,
            match_bits: self.rng.random_range(0..2),
            ignore_bits: 0,
        }
    }

    fn send(&mut self, pair: Pair) -> TaggedSend {
        TaggedSend {
            pair,
            context: 0,
            match_bits: self.rng.random_range(0..2),
            immediate: self.next,
        }
    }

    pub fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Something to send.
    fn payload(&mut self, who: usize) -> Option<Payload> {
        let shared = self.hosts[who].shared.len();
        if shared == 0 || self.rng.random() {
            return self.give(who).map(Payload::from);
        }
        let whole = &self.hosts[who].shared[self.rng.random_range(0..shared)];
        let from = self.rng.random_range(0..whole.len());
        Some(Payload::from(whole.slice(from..)))
    }

    /// What was refused is the program's again.
    fn refuse(&mut self, who: usize, posted: &Posted, payload: Payload) -> Result<(), String> {
        let back = entry(posted.kind, Some(&payload));
        ensure!(back == *posted, "another buffer came back");
        if let Payload::Unique(buffer) = payload {
            self.take_back(who, buffer);
        }
        Ok(())
    }

    pub fn post(&mut self, who: usize) -> Result<(), String> {
        let Some((at, pair)) = self.pick_pair(who) else {
            return Ok(());
        };
        let (id, receive, send) = (self.number(), self.receive(pair), self.send(pair));
        let way = self.rng.random_range(0..8);
        let payload = match way {
            0..3 => self.give(who).map(Payload::from),
            3..5 => self.payload(who),
            _ => None,
        };
        let kind = match way {
            0..3 => WcKind::Receive,
            3..5 => WcKind::Send,
            5 => WcKind::Probe,
            _ => WcKind::Claim,
        };
        let posted = entry(kind, payload.as_ref());
        let Some(endpoint) = &self.hosts[who].ends[at].endpoint else {
            return payload.map_or(Ok(()), |payload| self.refuse(who, &posted, payload));
        };
        let outcome = match (way, payload) {
            (0..3, Some(Payload::Unique(buffer))) => {
                let receives = endpoint.post_tagged_recv(id, &receive, buffer);
                receives.map_err(|Refused { error, buffer }| (error, Some(buffer.into())))
            }
            (3..5, Some(payload)) => {
                let sends = endpoint.post_tagged_send(id, &send, payload);
                sends.map_err(|Refused { error, buffer }| (error, Some(buffer)))
            }
            (5, None) => endpoint.probe(id, &receive).map_err(|error| (error, None)),
            (6, None) => endpoint.claim(id, &receive).map_err(|error| (error, None)),
            (7, None) => {
                // An inject is shown only if it fails.
                let _ = endpoint.post_tagged_inject(u64::MAX, &send, b"inject");
                return Ok(());
            }
            // No buffer is left.
            _ => return Ok(()),
        };
        match outcome {
            Ok(request) => {
                if posted.shared.is_some() {
                    self.saw("shared sends");
                }
                let end = &mut self.hosts[who].ends[at];
                end.requests.push(request);
                end.outstanding.insert(id, posted);
            }
            Err((error, payload)) => {
                ensure!(error != PostError::WrongDomain, "{error}");
                let payload: Option<Payload> = payload;
                ensure!(
                    payload.is_some() == matches!(kind, WcKind::Receive | WcKind::Send),
                    "a refused buffer was kept"
                );
                if let Some(payload) = payload {
                    self.refuse(who, &posted, payload)?;
                }
            }
        }
        Ok(())
    }

    /// Posts some sends or some receives at once.
    pub fn post_list(&mut self, who: usize) -> Result<(), String> {
        let Some((at, pair)) = self.pick_pair(who) else {
            return Ok(());
        };
        let sends = self.rng.random();
        let kind = if sends { WcKind::Send } else { WcKind::Receive };
        let mut list = Vec::new();
        for _ in 0..self.rng.random_range(2..7) {
            let payload = match sends {
                true => self.payload(who),
                false => self.give(who).map(Payload::from),
            };
            let Some(payload) = payload else {
                break;
            };
            list.push((self.number(), payload));
        }
        let wanted: Vec<_> = list
            .iter()
            .map(|(id, payload)| (*id, entry(kind, Some(payload))))
            .collect();
        let (send, receive) = (self.send(pair), self.receive(pair));
        let mut requests = Vec::new();
        let refused: Vec<Payload> = match &self.hosts[who].ends[at].endpoint {
            None => list.into_iter().map(|(_, payload)| payload).collect(),
            Some(endpoint) if sends => {
                let list = list.into_iter().map(|(wr_id, buffer)| SendWr {
                    wr_id,
                    send,
                    flags: SendFlags::empty(),
                    buffer,
                });
                let payload = |wr: SendWr<Payload>| wr.buffer;
                match endpoint.post_send_list(list, &mut requests) {
                    Ok(()) => Vec::new(),
                    Err(ListRefused { request, rest, .. }) => {
                        iter::once(request).chain(rest).map(payload).collect()
                    }
                }
            }
            Some(endpoint) => {
                let unique = |payload| match payload {
                    Payload::Unique(buffer) => buffer,
                    Payload::Shared(_) => Buffer::empty(),
                };
                let list = list.into_iter().map(|(wr_id, payload)| RecvWr {
                    wr_id,
                    receive,
                    multi: None,
                    buffer: unique(payload),
                });
                let payload = |wr: RecvWr| wr.buffer.into();
                match endpoint.post_recv_list(list, &mut requests) {
                    Ok(()) => Vec::new(),
                    Err(ListRefused { request, rest, .. }) => {
                        iter::once(request).chain(rest).map(payload).collect()
                    }
                }
            }
        };
        let whole = requests.len() + refused.len() == wanted.len();
        ensure!(whole, "a list of {} came back in part", wanted.len());
        self.saw("lists");
        let mut wanted = wanted.into_iter();
        let end = &mut self.hosts[who].ends[at];
        end.outstanding.extend(wanted.by_ref().take(requests.len()));
        end.requests.extend(requests);
        for ((_, posted), payload) in wanted.zip(refused) {
            self.refuse(who, &posted, payload)?;
        }
        Ok(())
    }

    /// Cancels some request, most of which have come back long since.
    pub fn cancel(&mut self, who: usize) -> Result<(), String> {
        let Some(at) = self.pick(who) else {
            return Ok(());
        };
        let end = &self.hosts[who].ends[at];
        let (Some(endpoint), false) = (&end.endpoint, end.requests.is_empty()) else {
            return Ok(());
        };
        let request = end.requests[self.rng.random_range(0..end.requests.len())];
        if endpoint.cancel(u64::MAX, request) == Err(PostError::NothingToCancel) {
            self.saw("stale cancels");
        }
        Ok(())
    }

    pub fn poll(&mut self, who: usize) -> Result<(), String> {
        match self.pick(who) {
            Some(at) => self.take_all(who, at),
            None => Ok(()),
        }
    }

    /// Takes all completions that are there.
    pub fn take_all(&mut self, who: usize, at: usize) -> Result<(), String> {
        loop {
            let end = &mut self.hosts[who].ends[at];
            let strays = end.queue.strays();
            ensure!(strays == 0, "{strays} completions of nothing");
            let Some(mut completion) = end.queue.poll() else {
                return Ok(());
            };
            let id = completion.wr_id;
            let posted = end.outstanding.remove(&id);
            self.saw("completions");
            match (completion.kind, completion.status) {
                (_, WcStatus::Flushed) => self.saw("flushed requests"),
                (WcKind::Put, WcStatus::Success) => self.saw("puts that landed"),
                (WcKind::Get, WcStatus::Success) => self.saw("gets that read"),
                (WcKind::Put | WcKind::Get, WcStatus::RemoteAccess) => {
                    self.saw("refused accesses");
                }
                _ => {}
            }
            if id == u64::MAX {
                continue;
            }
            let posted = posted.ok_or_else(|| format!("{id} completed twice"))?;
            let (buffer, shared) = (completion.buffer.take(), completion.shared.take());
            let back = Posted {
                kind: completion.kind,
                buffer: buffer.as_deref().map(range),
                shared: shared.as_deref().map(range),
            };
            ensure!(
                back == posted,
                "{id} was {posted:?} and came back as {back:?}"
            );
            if let Some(buffer) = buffer {
                self.take_back(who, buffer);
            }
        }
    }

    /// Lets others read a buffer.
    pub fn share(&mut self, who: usize) {
        // The program goes on to have it: the card still must not write.
        let host = &mut self.hosts[who];
        host.shared
            .extend(host.buffers.pop().map(SharedBuffer::from));
    }

    /// Takes a shared buffer back, which succeeds when nobody else reads it.
    pub fn unshare(&mut self, who: usize) -> Result<(), String> {
        let host = &mut self.hosts[who];
        if host.shared.is_empty() {
            return Ok(());
        }
        let at = self.rng.random_range(0..host.shared.len());
        let shared = host.shared.swap_remove(at);
        let (reads, start) = (host.reads(&shared), range(&shared).start);
        let lost = host.lost.contains(&start);
        match shared.try_into_buffer() {
            Ok(buffer) => {
                host.buffers.push(buffer);
                host.lost.remove(&start);
                ensure!(!reads, "a shared buffer came back while a send reads it");
                self.saw("shared buffers that came back");
            }
            Err(shared) => {
                host.shared.push(shared);
                ensure!(reads || lost, "a shared buffer that nobody reads stays so");
            }
        }
        Ok(())
    }
}
