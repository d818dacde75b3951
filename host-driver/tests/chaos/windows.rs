//! Memory that is lent to peers, and what they do with it: windows, keys, fences; and back again.

use crate::program::{BUFFER, Posted, World, ensure, range};
use host_driver::{
    CommandError, Cover, Get, Pair, Protection, Put, Refused, RemoteKey, RemoteRights, WcKind,
    Window,
};
use rand::Rng;

/// Keys of a card that the program at the other one remembers, most of which have ended.
const REMEMBERED: usize = 12;
/// Windows of a host, and their bytes.
const WINDOWS: usize = 3;
const WINDOW: usize = 4 * BUFFER;

impl World {
    /// Notes an error of what lends memory.
    fn note_of_lending(&mut self, who: usize, error: CommandError) -> Result<(), String> {
        use host_driver::MailboxStatus::{NotConnected, Unsupported};
        match error {
            CommandError::Refused {
                status: Unsupported | NotConnected,
                ..
            } => Ok(()),
            CommandError::BufferUnusable => {
                self.saw("windows that a failure made unusable");
                Ok(())
            }
            error => self.note(who, error),
        }
    }

    /// Lends memory.
    pub fn lend(&mut self, who: usize) -> Result<(), String> {
        if self.hosts[who].windows.len() == WINDOWS {
            return Ok(());
        }
        let rights = RemoteRights::READ | RemoteRights::WRITE;
        match self.hosts[who].pd.reg_window(WINDOW, rights) {
            Ok(window) => self.hosts[who].windows.push(window),
            Err(error) => self.note_of_lending(who, error)?,
        }
        Ok(())
    }

    /// An endpoint and a pair of it, mostly its newest.
    fn pick_peer(&mut self, who: usize) -> Option<(usize, Pair)> {
        let (at, pair) = self.pick_pair(who)?;
        let newest = self.hosts[who].ends[at].pairs.last();
        let newest = newest.filter(|_| self.rng.random_ratio(3, 4));
        Some((at, newest.map_or(pair, |(pair, _)| *pair)))
    }

    fn pick_window(&mut self, who: usize) -> Option<usize> {
        let count = self.hosts[who].windows.len();
        (count > 0).then(|| self.rng.random_range(0..count))
    }

    /// Makes a key of any kind.
    pub fn grant(&mut self, who: usize) -> Result<(), String> {
        let (Some(place), Some((at, pair))) = (self.pick_window(who), self.pick_peer(who)) else {
            return Ok(());
        };
        let (kind, cycles) = (
            self.rng.random_range(0..6),
            self.rng.random_range(1..60_000),
        );
        let (begin, end) = (
            self.rng.random_range(0..8),
            self.rng.random_range(WINDOW / 2..=WINDOW),
        );
        let host = &self.hosts[who];
        let Some(endpoint) = &host.ends[at].endpoint else {
            return Ok(());
        };
        let (window, part) = (&host.windows[place], begin..end);
        let both = RemoteRights::READ | RemoteRights::WRITE;
        let granted = match kind {
            0 => window.grant_once(endpoint, pair, RemoteRights::WRITE, part),
            1 => window.grant_for(endpoint, pair, both, part, cycles),
            2 => window.grant_shared(endpoint, pair, both, part),
            3 if window.protection() < Protection::PerSender => window.grant_any(both, part),
            _ => window.grant(endpoint, pair, both, part),
        };
        match granted {
            Ok(key) => {
                let keys = &mut self.hosts[who].keys;
                keys.push(key);
                if keys.len() > REMEMBERED {
                    keys.remove(0);
                }
                self.saw("keys");
                Ok(())
            }
            Err(error) => self.note_of_lending(who, error),
        }
    }

    fn pick_key(&mut self, who: usize) -> Option<RemoteKey> {
        let count = self.hosts[who].keys.len();
        (count > 0).then(|| self.hosts[who].keys[self.rng.random_range(0..count)])
    }

    /// Takes back a key, which may be another window's.
    pub fn revoke(&mut self, who: usize) -> Result<(), String> {
        let (Some(place), Some(key)) = (self.pick_window(who), self.pick_key(who)) else {
            return Ok(());
        };
        match self.hosts[who].windows[place].revoke(key) {
            Ok(()) => self.saw("keys revoked"),
            Err(error) => self.note_of_lending(who, error)?,
        }
        Ok(())
    }

    /// Takes back what a pair's peer was granted, or waits for what is on its way.
    pub fn revoke_peer(&mut self, who: usize) -> Result<(), String> {
        let Some((at, pair)) = self.pick_pair(who) else {
            return Ok(());
        };
        let whole = self.rng.random();
        let host = &self.hosts[who];
        let Some(endpoint) = &host.ends[at].endpoint else {
            return Ok(());
        };
        let done = match whole {
            true => endpoint.revoke_peer(pair),
            false => host.pd.fence(Cover::all().pair(endpoint, pair)),
        };
        match done {
            Ok(()) if whole => self.saw("peers revoked"),
            Ok(()) => self.saw("fences"),
            Err(error) => self.note_of_lending(who, error)?,
        }
        Ok(())
    }

    /// Takes all keys of a window back: from then on its memory is the program's, and no card writes to it.
    pub fn recover(&mut self, who: usize) -> Result<(), String> {
        let Some(place) = self.pick_window(who) else {
            return Ok(());
        };
        let window: Window = self.hosts[who].windows.swap_remove(place);
        match window.into_buffer() {
            Ok((_region, buffer)) => {
                self.saw("windows that came back");
                self.cut_up(who, buffer);
                // Its keys are known still.
                for _ in 0..4 {
                    self.access(1 - who)?;
                }
                Ok(())
            }
            Err(held) => {
                self.hosts[who].windows.push(held.window);
                self.note_of_lending(who, held.error)
            }
        }
    }

    /// The program forgets a window: its memory is nobody's.
    pub fn drop_window(&mut self, who: usize) {
        if let Some(place) = self.pick_window(who) {
            drop(self.hosts[who].windows.swap_remove(place));
        }
    }

    /// Connects the two programs anew, lends over the new pair, and lets the other use it.
    pub fn lend_to_a_new_peer(&mut self, who: usize) -> Result<(), String> {
        self.open_pair(who)?;
        self.open_pair(1 - who)?;
        self.connect(who)?;
        self.lend(who)?;
        for _ in 0..3 {
            self.grant(who)?;
        }
        for _ in 0..6 {
            self.access(1 - who)?;
        }
        let cycles = self.rng.random_range(1..4000);
        self.fabric.run(cycles);
        self.poll(1 - who)
    }

    /// Puts or gets by a key that the pair's peer was granted, or another, or that has ended; at a place that may lie beyond.
    pub fn access(&mut self, who: usize) -> Result<(), String> {
        let (Some((at, pair)), Some(key)) = (self.pick_peer(who), self.pick_key(1 - who)) else {
            return Ok(());
        };
        let offset = match self.rng.random_ratio(1, 8) {
            true => self.rng.random(),
            false => self.rng.random_range(0..WINDOW as u64 - 1),
        };
        let (id, puts) = (self.number(), self.rng.random());
        let Some(mut buffer) = self.give(who) else {
            return Ok(());
        };
        let kind = if puts { WcKind::Put } else { WcKind::Get };
        let posted = Posted {
            kind,
            buffer: Some(range(&buffer)),
            shared: None,
        };
        let Some(endpoint) = &self.hosts[who].ends[at].endpoint else {
            self.take_back(who, buffer);
            return Ok(());
        };
        buffer[0] = id as u8;
        let outcome = match puts {
            true => endpoint.post_put(id, &Put { pair, key, offset }, buffer),
            false => endpoint.post_get(id, &Get { pair, key, offset }, buffer),
        };
        match outcome {
            Ok(request) => {
                let end = &mut self.hosts[who].ends[at];
                end.requests.push(request);
                end.outstanding.insert(id, posted);
            }
            Err(Refused { buffer, .. }) => {
                ensure!(
                    range(&buffer) == posted.buffer.unwrap_or_default(),
                    "another buffer came back"
                );
                self.take_back(who, buffer);
            }
        }
        Ok(())
    }
}
