//! The requests that are outstanding: what a completion's handle stands for.
//!
//! There is a slot for each entry of the completion queue, so a free slot is a completion entry to
//! reserve. A handle is the slot's number and how often the slot has been used, so that an old handle
//! names nothing. The card knows the handle's low 32 bits, which is enough for it: of the requests that are outstanding, no two are of one slot.

use crate::core::Parts;
use crate::operation::Work;
use crate::region::Buffer;
use crate::shared::SharedBuffer;
use abi::completion::{COMPLETION_MORE, Completion};
use abi::request::{FLAG_MULTI, ListRequest, MAX_SEGMENTS, SendRequest};
use abi::status::Status;

/// A posted request, to cancel it or to recognise its completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Request(u64);

impl Request {
    const fn new(slot: u16, use_: u64) -> Self {
        Self(use_ << 16 | slot as u64)
    }

    const fn slot(self) -> usize {
        (self.0 & 0xffff) as usize
    }

    const fn use_(self) -> u64 {
        self.0 >> 16
    }

    /// The handle as the card knows it.
    pub(crate) const fn wire(self) -> u32 {
        self.0 as u32
    }
}

/// Where a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// With the card, or on the ring.
    Card,
    /// With the library: a receive, a probe or a claim in the backlog, a send behind others of its pair, or what is left of a request in parts.
    Kept,
    /// A send whose completion the card has written, and nobody has taken.
    Completed,
    /// Nowhere: it was being cancelled when the card refused it, and ends when the cancel comes back. Of a request in parts: and when those under way have ended.
    Withdrawn,
}

/// Segments of a gather behind the first.
pub(crate) type Segments = [Option<SharedBuffer>; MAX_SEGMENTS - 1];

/// An outstanding request.
pub(crate) struct Outstanding {
    /// Place of its endpoint among those of the queue.
    pub(crate) at: usize,
    pub(crate) wr_id: u64,
    pub(crate) work: Work,
    pub(crate) buffer: Option<Buffer>,
    /// Sends: what others read too, instead.
    pub(crate) shared: Option<SharedBuffer>,
    /// Gathers: the segments behind the first.
    pub(crate) segments: Segments,
    /// How to post it, or to post it again, if the library keeps it or may have to; of a send, what it was posted with.
    pub(crate) entry: Option<Entry>,
    /// What it has had, if it is a multi-receive.
    pub(crate) had: Option<Had>,
    /// The cancel that is under way for it.
    pub(crate) cancel: Option<Request>,
    /// Its number among those of its pair that wait with the card.
    pub(crate) order: u32,
    /// A sweep has cancelled it, or its time-out: what the program is told if it ends `Cancelled`.
    pub(crate) told: Option<Status>,
    /// The cycle in which its time-out is over.
    pub(crate) expires_at: u64,
    /// Its completion has been looked at.
    pub(crate) noticed: bool,
    /// It goes to the card in parts: how far it has got.
    pub(crate) parts: Option<Parts>,
    /// It is a part of this request.
    pub(crate) part_of: Option<Request>,
}

impl Outstanding {
    /// A request without a buffer, of the endpoint `at` this place.
    pub(crate) fn new(at: usize, wr_id: u64, work: Work) -> Self {
        Self {
            at,
            wr_id,
            work,
            buffer: None,
            shared: None,
            segments: Segments::default(),
            entry: None,
            had: None,
            cancel: None,
            order: 0,
            told: None,
            expires_at: u64::MAX,
            noticed: false,
            parts: None,
            part_of: None,
        }
    }

    /// Whether it is a request of the program's or of the library's, and not a part of one.
    fn is_whole(&self) -> bool {
        self.part_of.is_none()
    }
}

/// What the program has got of a multi-receive. A card counts from where it was given the receive last.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Had {
    /// Bytes of its buffer.
    pub(crate) bytes: u64,
    /// Completions.
    pub(crate) completions: u64,
    /// What the program had got of both when the card was given the receive.
    card_bytes: u64,
    card_completions: u64,
}

impl Had {
    /// The card is given the receive, with what is left of its buffer.
    pub(crate) const fn post(&mut self) {
        (self.card_bytes, self.card_completions) = (self.bytes, self.completions);
    }

    /// The program gets a message that fills, or was to fill, so many bytes, and the receive stays.
    pub(crate) const fn take(&mut self, length: usize) {
        self.bytes += length as u64;
        self.completions += 1;
    }

    /// Whether the card's next completion says what the library has counted. One of a receive that the card hasn't looked at says nothing.
    pub(crate) fn agrees(&self, completion: &Completion) -> bool {
        let more = completion.flags & COMPLETION_MORE != 0;
        let offset = (self.bytes - self.card_bytes) as u32;
        let number = (self.completions - self.card_completions + 1) as u32 & (u32::MAX >> 1);
        match (more, completion.count) {
            (true, count) => completion.offset == offset && count == 0,
            (false, 0) => true,
            (false, count) => completion.offset == offset && count == number,
        }
    }
}

/// The ring entry of a request, but for its opcode, its handle and a buffer that is written.
#[derive(Clone, Copy)]
pub(crate) enum Entry {
    List(ListRequest),
    Send(SendRequest),
}

impl Entry {
    /// Whether it is one of a multi-receive.
    pub(crate) const fn is_multi(&self) -> bool {
        matches!(self, Self::List(request) if request.flags & FLAG_MULTI != 0)
    }
}

struct Slot {
    /// How many requests of the table came before it.
    number: u64,
    /// 48 bits of it are in the handle: a slot used once a nanosecond repeats one after three days, with 2^48 requests in between.
    uses: u64,
    request: Option<Outstanding>,
    place: Place,
    /// The next in the queue that it is in.
    next: Option<Request>,
}

impl Slot {
    fn is_of(&self, at: usize) -> bool {
        let found = self.request.as_ref();
        found.is_some_and(|request| request.at == at)
    }

    /// Whether it is of the endpoint `at` this place, and no part of another.
    fn is_whole_of(&self, at: usize) -> bool {
        let found = self.request.as_ref();
        found.is_some_and(|request| request.at == at && request.is_whole())
    }
}

/// The outstanding requests of the endpoints on a completion queue.
pub(crate) struct RequestTable {
    slots: Vec<Slot>,
    free: Vec<u16>,
    inserted: u64,
}

impl RequestTable {
    /// A table of `size` slots. Nothing is allocated later.
    pub(crate) fn new(size: u16) -> Self {
        Self {
            slots: (0..size)
                .map(|_| Slot {
                    number: 0,
                    uses: 0,
                    request: None,
                    place: Place::Card,
                    next: None,
                })
                .collect(),
            free: (0..size).rev().collect(),
            inserted: 0,
        }
    }

    /// Slots that are free.
    pub(crate) fn free(&self) -> usize {
        self.free.len()
    }

    /// Number of slots that are taken: of outstanding requests, and of their parts.
    pub(crate) fn outstanding(&self) -> u16 {
        (self.slots.len() - self.free.len()) as u16
    }

    /// Number of an endpoint's outstanding requests.
    pub(crate) fn outstanding_of(&self, at: usize) -> usize {
        let whole = self.slots.iter().filter(|slot| slot.is_whole_of(at));
        whole.count()
    }

    /// Number of these that the library keeps.
    pub(crate) fn kept_of(&self, at: usize) -> usize {
        let kept = |slot: &&Slot| slot.is_whole_of(at) && slot.place == Place::Kept;
        self.slots.iter().filter(kept).count()
    }

    /// The outstanding requests of an endpoint.
    pub(crate) fn each_of(&self, at: usize) -> impl Iterator<Item = &Outstanding> {
        let all = self.slots.iter().filter_map(|slot| slot.request.as_ref());
        all.filter(move |request| request.at == at && request.is_whole())
    }

    /// Whether any of an endpoint's outstanding requests is such a one.
    pub(crate) fn any_of(&self, at: usize, is: impl Fn(&Outstanding) -> bool) -> bool {
        self.each_of(at).any(is)
    }

    /// The handle of an endpoint's outstanding request that is such a one.
    pub(crate) fn find_of(&self, at: usize, is: impl Fn(&Outstanding) -> bool) -> Option<Request> {
        let found = self
            .slots
            .iter()
            .position(|slot| slot.is_whole_of(at) && slot.request.as_ref().is_some_and(&is))?;
        Some(Request::new(found as u16, self.slots[found].uses))
    }

    /// Requests of an endpoint that haven't ended and of which this holds.
    pub(crate) fn count_of(&self, at: usize, is: impl Fn(&Outstanding) -> bool) -> usize {
        let held = |slot: &&Slot| {
            let open = matches!(slot.place, Place::Card | Place::Kept);
            open && slot.is_whole_of(at) && slot.request.as_ref().is_some_and(&is)
        };
        self.slots.iter().filter(held).count()
    }

    /// Whether every slot is taken.
    pub(crate) fn is_full(&self) -> bool {
        self.free.is_empty()
    }

    /// Enters a request.
    ///
    /// # Panics
    /// If the table is full.
    pub(crate) fn insert(&mut self, request: Outstanding) -> Request {
        let slot = self.free.pop().expect("a free slot is seen to before");
        let entry = &mut self.slots[usize::from(slot)];
        entry.uses = entry.uses.wrapping_add(1);
        entry.number = self.inserted;
        self.inserted += 1;
        entry.request = Some(request);
        entry.place = Place::Card;
        Request::new(slot, entry.uses)
    }

    /// The handle of the request in a slot that the card names by its low bits; one that names nothing, if the slot isn't in use by it.
    pub(crate) fn of_wire(&self, wire: u32) -> Request {
        let slot = wire as u16;
        let named = self.slots.get(usize::from(slot)).filter(|found| {
            found.request.is_some() && Request::new(slot, found.uses).wire() == wire
        });
        named.map_or(Request(u64::from(u16::MAX)), |found| {
            Request::new(slot, found.uses)
        })
    }

    /// The outstanding request that a handle names.
    pub(crate) fn get_mut(&mut self, request: Request) -> Option<&mut Outstanding> {
        let slot = self.slots.get_mut(request.slot())?;
        (slot.uses == request.use_() || is_broken!(StaleRequest)).then_some(())?;
        slot.request.as_mut()
    }

    /// The same, to look at.
    pub(crate) fn get(&self, request: Request) -> Option<&Outstanding> {
        let slot = self.slots.get(request.slot())?;
        slot.request
            .as_ref()
            .filter(|_| slot.uses == request.use_())
    }

    /// Takes out the request that a handle names.
    pub(crate) fn remove(&mut self, request: Request) -> Option<Outstanding> {
        self.get_mut(request)?;
        let taken = self.slots[request.slot()].request.take();
        self.free.push(request.slot() as u16);
        taken
    }

    /// Where an outstanding request is.
    pub(crate) fn place(&mut self, request: Request) -> Option<Place> {
        self.get_mut(request)?;
        Some(self.slots[request.slot()].place)
    }

    /// Says where a request is.
    pub(crate) fn set_place(&mut self, request: Request, place: Place) {
        self.slots[request.slot()].place = place;
    }

    /// The request behind it in its queue.
    pub(crate) fn next(&self, request: Request) -> Option<Request> {
        self.slots[request.slot()].next
    }

    /// Says which request is behind it in its queue.
    pub(crate) fn set_next(&mut self, request: Request, next: Option<Request>) {
        self.slots[request.slot()].next = next;
    }

    /// The outstanding request of an endpoint, or the part of one, that was posted first.
    pub(crate) fn oldest_of(&self, at: usize) -> Option<Request> {
        let of = self.slots.iter().enumerate().filter(|(_, s)| s.is_of(at));
        let (slot, found) = match is_broken!(FlushesBackwards) {
            false => of.min_by_key(|(_, slot)| slot.number)?,
            true => of.max_by_key(|(_, slot)| slot.number)?,
        };
        Some(Request::new(slot as u16, found.uses))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(wr_id: u64) -> Outstanding {
        Outstanding::new(0, wr_id, Work::any())
    }

    #[test]
    fn a_handle_names_its_request_once() {
        let mut table = RequestTable::new(2);
        let a = table.insert(request(1));
        let b = table.insert(request(2));
        assert!(table.is_full());
        assert_eq!(table.remove(a).unwrap().wr_id, 1);
        assert!(table.remove(a).is_none());
        let c = table.insert(request(4));
        assert_ne!(a, c);
        assert!(table.get_mut(a).is_none());
        assert_eq!(table.outstanding(), 2);
        assert_eq!(table.remove(b).unwrap().wr_id, 2);
        assert_eq!((table.oldest_of(0), table.oldest_of(1)), (Some(c), None));
    }

    #[test]
    fn a_handle_out_of_the_table_names_nothing() {
        assert!(RequestTable::new(4).remove(Request(0x0001_0004)).is_none());
        let table = RequestTable::new(4);
        assert!(table.slots.len() < usize::from(u16::MAX));
    }

    #[test]
    fn a_handle_names_no_stranger_after_65536_uses_of_its_slot() {
        let mut table = RequestTable::new(1);
        let old = table.insert(request(1));
        table.remove(old);
        let mut last = old;
        for _ in 0..1 << 16 {
            last = table.insert(request(2));
            table.remove(last);
        }
        let stranger = table.insert(request(3));
        assert_eq!(
            last.wire(),
            old.wire(),
            "the card would take one for the other"
        );
        assert!(table.get_mut(old).is_none() && table.get_mut(last).is_none());
        assert_eq!(table.of_wire(stranger.wire()), stranger);
        assert_ne!(table.of_wire(old.wire()), old);
    }
}
