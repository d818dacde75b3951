//! Endpoints, pairs, connections and regions: opened, closed, dropped.

use crate::program::{BUFFER, End, Host, Owner, World, ensure, range};
use host_driver::{Access, CommandError, ConnectError, Device, Endpoint, MailboxStatus};
use rand::Rng;
use soft_card::as_stranger;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl World {
    pub fn open(&mut self, card: usize) -> Result<Host, String> {
        let device = Device::open_with(self.fabric.transport(card), self.options);
        let device = device.map_err(|error| format!("open: {error}"))?;
        ensure!(
            self.fabric.open_endpoints(card) == 0,
            "card {card} was opened with endpoints of somebody else"
        );
        let pd = device.alloc_pd().map_err(|error| error.to_string())?;
        Ok(Host {
            card,
            device,
            pd,
            ends: Vec::new(),
            buffers: Vec::new(),
            shared: Vec::new(),
            lost: HashSet::new(),
            windows: Vec::new(),
            keys: Vec::new(),
        })
    }

    /// Gives a host some buffers and an endpoint with a pair, to begin with.
    pub fn furnish(&mut self, who: usize) -> Result<(), String> {
        for _ in 0..4 {
            self.register(who)?;
        }
        self.open_end(who)?;
        self.open_pair(who)
    }

    pub fn open_end(&mut self, who: usize) -> Result<(), String> {
        let completions = 1 << self.rng.random_range(2..6);
        let builder = self.hosts[who].pd.endpoint();
        let builder = builder.completion_queue(completions).send_ring(8);
        match builder.list_ring(8).inject_buffers(2).open() {
            Ok(endpoint) => self.hosts[who].ends.push(End {
                queue: endpoint.completion_queue(),
                endpoint: Some(endpoint),
                pairs: Vec::new(),
                outstanding: HashMap::new(),
                requests: Vec::new(),
            }),
            Err(error) => self.note(who, error)?,
        }
        Ok(())
    }

    /// Closes an endpoint; if that succeeds, everything must come back now.
    pub fn close_end(&mut self, who: usize) -> Result<(), String> {
        let Some(at) = self.pick(who) else {
            return Ok(());
        };
        let Some(endpoint) = &self.hosts[who].ends[at].endpoint else {
            return Ok(());
        };
        let place = endpoint.index();
        match endpoint.close() {
            Ok(()) => {
                self.saw("closed endpoints");
                self.take_all(who, at)?;
                self.ensure_nothing_outstanding(who, at)?;
                self.hosts[who].ends.swap_remove(at);
                self.ensure_closed(who, place)
            }
            Err(error) => self.note(who, error),
        }
    }

    pub fn ensure_nothing_outstanding(&self, who: usize, at: usize) -> Result<(), String> {
        let outstanding = &self.hosts[who].ends[at].outstanding;
        ensure!(outstanding.is_empty(), "{outstanding:?} never came back");
        Ok(())
    }

    /// The gates have nothing in the place of an endpoint that was closed, unless another has been opened there.
    fn ensure_closed(&self, who: usize, place: u8) -> Result<(), String> {
        let is_there = |end: &End| {
            let endpoint = end.endpoint.as_ref();
            endpoint.is_some_and(|endpoint| endpoint.index() == place)
        };
        let heir = self.hosts[who].ends.iter().any(is_there);
        if self.dead || heir || !self.fabric.has_endpoint(who, place) {
            return Ok(());
        }
        // One that was opened too late may be there, of nobody: then the next command closes it.
        let closed = !self.is_settled(who) || !self.fabric.has_endpoint(who, place);
        ensure!(closed, "an endpoint was closed in name only");
        Ok(())
    }

    /// Drops the handle, and perhaps the queue; now and then by a thread that can't talk to the card.
    pub fn drop_end(&mut self, who: usize) {
        let Some(at) = self.pick(who) else {
            return;
        };
        let (endpoint, end) = match self.rng.random() {
            true => (self.hosts[who].ends[at].endpoint.take(), None),
            false => (None, Some(self.hosts[who].lose(at))),
        };
        if self.rng.random_ratio(1, 4) {
            as_stranger(|| drop((endpoint, end)));
            self.saw("strangers' drops");
        }
    }

    pub fn open_pair(&mut self, who: usize) -> Result<(), String> {
        let credits = self.rng.random_range(1..6);
        let Some(at) = self.pick(who) else {
            return Ok(());
        };
        let end = &mut self.hosts[who].ends[at];
        let Some(endpoint) = &end.endpoint else {
            return Ok(());
        };
        match endpoint.open_pair(credits) {
            Ok((pair, address)) => end.pairs.push((pair, Some(address))),
            Err(error) => self.note(who, error)?,
        }
        Ok(())
    }

    /// Connects the last pairs of two endpoints with each other.
    pub fn connect(&mut self, who: usize) -> Result<(), String> {
        let (Some(here), Some(there)) = (self.pick(who), self.pick(1 - who)) else {
            return Ok(());
        };
        let last = |host: &Host, at: usize| host.ends[at].pairs.last().copied();
        let near = last(&self.hosts[who], here);
        let far = last(&self.hosts[1 - who], there);
        let (Some((near, Some(near_address))), Some((far, Some(far_address)))) = (near, far) else {
            return Ok(());
        };
        let sides = [
            (who, here, near, far_address),
            (1 - who, there, far, near_address),
        ];
        for (who, at, pair, address) in sides {
            let connected = match &self.hosts[who].ends[at].endpoint {
                Some(endpoint) => endpoint.connect_pair(pair, &address),
                None => Ok(()),
            };
            connected.or_else(|error| self.note(who, error))?;
        }
        Ok(())
    }

    /// Has the cards connect two endpoints, or endpoints that both begin, or one to nobody.
    pub fn shake_hands(&mut self, who: usize) -> Result<(), String> {
        let Some((here, there)) = self.pick_two(who) else {
            return Ok(());
        };
        match self.rng.random_range(0..4) {
            0 => self.begin(who, here, Some(there)),
            1 => {
                self.begin(who, here, Some(there))?;
                self.begin(1 - who, there, Some(here))
            }
            _ => {
                self.begin(1 - who, there, None)?;
                self.begin(who, here, Some(there))
            }
        }
    }

    /// An endpoint of `who` and one of the other.
    fn pick_two(&mut self, who: usize) -> Option<(usize, usize)> {
        Some((self.pick(who)?, self.pick(1 - who)?))
    }

    /// Begins to connect to an endpoint of the other, or offers a pair.
    fn begin(&mut self, who: usize, at: usize, to: Option<usize>) -> Result<(), String> {
        let peer = to.map(|to| self.hosts[1 - who].ends[to].endpoint.as_ref());
        let peer = peer.map(|peer| peer.map(Endpoint::address));
        let Some(endpoint) = &self.hosts[who].ends[at].endpoint else {
            return Ok(());
        };
        let begun = match peer {
            Some(Some(peer)) => endpoint.begin_connect(&peer, 2, 50_000),
            Some(None) => return Ok(()),
            None => endpoint.listen(2),
        };
        match begun {
            Ok(pair) => self.hosts[who].ends[at].pairs.push((pair, None)),
            Err(error) => self.note(who, error)?,
        }
        Ok(())
    }

    fn note_connection(&mut self, who: usize, error: ConnectError) -> Result<(), String> {
        match error {
            ConnectError::Command(error) => self.note(who, error),
            _ => Ok(()),
        }
    }

    /// Connects and waits, to one who has offered a pair, or not.
    pub fn connect_and_wait(&mut self, who: usize) -> Result<(), String> {
        let Some((here, there)) = self.pick_two(who) else {
            return Ok(());
        };
        if self.rng.random_ratio(3, 4) {
            self.begin(1 - who, there, None)?;
        }
        let timeout = self.rng.random_range(5_000..100_000);
        let peer = self.hosts[1 - who].ends[there].endpoint.as_ref();
        let peer = peer.map(Endpoint::address);
        let end = &mut self.hosts[who].ends[here];
        let (Some(endpoint), Some(peer)) = (&end.endpoint, peer) else {
            return Ok(());
        };
        match endpoint.connect(&peer, 2, timeout) {
            Ok(pair) => {
                end.pairs.push((pair, None));
                self.saw("connections waited for");
                Ok(())
            }
            Err(error) => self.note_connection(who, error),
        }
    }

    /// Offers a pair and waits, for one who has begun to connect, or not.
    pub fn accept_and_wait(&mut self, who: usize) -> Result<(), String> {
        let Some((here, there)) = self.pick_two(who) else {
            return Ok(());
        };
        if self.rng.random_ratio(3, 4) {
            self.begin(1 - who, there, Some(here))?;
        }
        let timeout = self.rng.random_range(5_000..100_000);
        let end = &mut self.hosts[who].ends[here];
        let Some(endpoint) = &end.endpoint else {
            return Ok(());
        };
        match endpoint.accept(2, timeout) {
            Ok((pair, _)) => {
                end.pairs.push((pair, None));
                self.saw("connections waited for");
                Ok(())
            }
            Err(error) => self.note_connection(who, error),
        }
    }

    pub fn disconnect(&mut self, who: usize) -> Result<(), String> {
        let Some(at) = self.pick(who) else {
            return Ok(());
        };
        let end = &self.hosts[who].ends[at];
        let (Some(endpoint), Some((pair, _))) = (&end.endpoint, end.pairs.first()) else {
            return Ok(());
        };
        match endpoint.begin_disconnect(*pair, 10_000) {
            // The card gets them first.
            Ok(()) | Err(CommandError::SendsKept) => Ok(()),
            Err(error) => self.note(who, error),
        }
    }

    /// Ends a connection and waits for it, with whatever is outstanding.
    pub fn disconnect_and_wait(&mut self, who: usize) -> Result<(), String> {
        let Some(at) = self.pick(who) else {
            return Ok(());
        };
        let timeout = self.rng.random_range(1_000..100_000);
        let end = &mut self.hosts[who].ends[at];
        let (Some(endpoint), Some(&(pair, _))) = (&end.endpoint, end.pairs.last()) else {
            return Ok(());
        };
        match endpoint.disconnect(pair, timeout) {
            Ok(()) => {
                end.pairs.pop();
                self.saw("ends waited for");
                Ok(())
            }
            Err(error) => self.note(who, error),
        }
    }

    pub fn close_pair(&mut self, who: usize) -> Result<(), String> {
        let Some(at) = self.pick(who) else {
            return Ok(());
        };
        let end = &mut self.hosts[who].ends[at];
        let (Some(endpoint), Some((pair, _))) = (&end.endpoint, end.pairs.pop()) else {
            return Ok(());
        };
        let closed = endpoint.close_pair(pair);
        closed.or_else(|error| self.note(who, error))
    }

    /// Sets pairs aside: then so many can be opened.
    pub fn reserve(&mut self, who: usize) -> Result<(), String> {
        let Some(at) = self.pick(who) else {
            return Ok(());
        };
        let (pairs, credits) = (self.rng.random_range(0..4), self.rng.random_range(1..5));
        let end = &mut self.hosts[who].ends[at];
        let Some(endpoint) = &end.endpoint else {
            return Ok(());
        };
        if let Err(error) = endpoint.reserve_peers(pairs, credits) {
            return self.note(who, error);
        }
        self.saw("reservations");
        for _ in 0..pairs {
            let end = &mut self.hosts[who].ends[at];
            let opened = end.endpoint.as_ref().map(|end| end.open_pair(credits));
            match opened {
                Some(Ok((pair, address))) => end.pairs.push((pair, Some(address))),
                Some(Err(CommandError::Refused {
                    status: status @ (MailboxStatus::NoResource | MailboxStatus::NoEnvelopes),
                    detail,
                    ..
                })) => return Err(format!("a pair of those set aside: {status} ({detail})")),
                Some(Err(error)) => return self.note(who, error),
                None => return Ok(()),
            }
        }
        Ok(())
    }

    pub fn query(&mut self, who: usize) -> Result<(), String> {
        let Some(at) = self.pick(who) else {
            return Ok(());
        };
        let end = &self.hosts[who].ends[at];
        let (Some(endpoint), Some((pair, _))) = (&end.endpoint, end.pairs.first()) else {
            return Ok(());
        };
        let status = endpoint.query_pair(*pair).map(drop);
        while endpoint.poll_event().is_ok_and(|event| event.is_some()) {}
        status.or_else(|error| self.note(who, error))
    }

    pub fn register(&mut self, who: usize) -> Result<(), String> {
        let count = self.rng.random_range(1..6);
        let registered = self.hosts[who].pd.reg_mr(count * BUFFER, Access::ReadWrite);
        match registered {
            Ok((_region, whole)) => self.cut_up(who, whole),
            Err(error) => self.note(who, error)?,
        }
        Ok(())
    }

    /// Registers memory of the program's.
    pub fn register_user(&mut self, who: usize) -> Result<(), String> {
        let count = self.rng.random_range(1..6);
        let owner = Owner {
            bytes: vec![0; count * BUFFER],
            fabric: self.fabric.clone(),
            card: who,
            brought: Arc::clone(&self.brought),
        };
        let bytes = range(&owner.bytes);
        self.brought.registered.fetch_add(1, Ordering::Relaxed);
        let registered = self.hosts[who].pd.reg_user_mr(owner, Access::ReadWrite);
        match registered {
            Ok((_region, whole)) => {
                ensure!(range(&whole) == bytes, "other bytes were registered");
                self.cut_up(who, whole);
                self.saw("user regions");
            }
            Err(error) => self.note(who, error)?,
        }
        Ok(())
    }

    /// The program has the bytes, in buffers.
    pub fn cut_up(&mut self, who: usize, mut whole: host_driver::Buffer) {
        while whole.len() > BUFFER {
            let buffer = whole.split_to(BUFFER);
            self.take_back(who, buffer);
        }
        self.take_back(who, whole);
    }
}
