//! Firmware, gates, cards and programs that fail, and how they recover.

use crate::program::{Seen, World, ensure, range};
use host_driver::{CommandError, Device, EndpointState, OpenError};
use rand::Rng;
use soft_card::{FirmwareBehaviour, as_stranger};
use std::sync::atomic::Ordering;

/// Steps that the program goes on for when the cards are gone.
const AFTER_DEATH: u64 = 40;

impl World {
    pub fn set_firmware(&mut self, who: usize) {
        let after = self.rng.random_range(0..3);
        let cycles = self.options.command_timeout + self.rng.random_range(0..40_000);
        let behaviour = match self.rng.random_range(0..14) {
            0 => {
                self.hung[who] = true;
                FirmwareBehaviour::HangsAfter(after)
            }
            1 => FirmwareBehaviour::RestartsAfter(after),
            2..6 => FirmwareBehaviour::Normal,
            6 => FirmwareBehaviour::RestartsBefore(after),
            // While no command is given.
            7 => return self.fabric.restart_firmware(who),
            _ => FirmwareBehaviour::AnswersLate { after, cycles },
        };
        self.fabric.set_firmware(who, behaviour);
    }

    /// The gates answer no control request, until they are woken.
    pub fn silence(&mut self, who: usize) {
        self.silenced[who] = true;
        self.fabric.silence_gates(who);
    }

    /// Everything answers again, as far as it can; and then the card has what the program has.
    pub fn mend(&mut self) -> Result<(), String> {
        for card in 0..2 {
            self.fabric.set_firmware(card, FirmwareBehaviour::Normal);
            self.fabric.wake_gates(card);
            self.fabric.cut(card, false);
            self.cut[card] = false;
        }
        self.fabric.run(self.options.command_timeout + 60_000);
        (0..2).try_for_each(|who| self.audit(who))
    }

    /// In a quiet moment the card has the endpoints that the program has.
    fn audit(&mut self, who: usize) -> Result<(), String> {
        let read = self.hosts[who]
            .device
            .read_counter(host_driver::Counter::FramesSent);
        let restarted = read == Err(CommandError::Restarted);
        if self.dead || !restarted && !self.is_settled(who) {
            return Ok(());
        }
        self.saw("quiet moments");
        let found = self.fabric.open_endpoints(who);
        if restarted {
            ensure!(found == 0, "{found} endpoints after a restart");
            return Ok(());
        }
        // A close that failed is tried again by nobody but the program.
        let ends = &self.hosts[who].ends;
        let has = |state| ends.iter().filter(|end| end.is(state)).count();
        let (open, closing) = (has(EndpointState::Open), has(EndpointState::Closing));
        ensure!(
            (open..=open + closing).contains(&found),
            "the card has {found} endpoints and the program {open}: closed in name only"
        );
        Ok(())
    }

    /// Another part of the program opens a card that is open.
    pub fn open_again(&mut self, who: usize) -> Result<(), String> {
        let again = Device::open_with(self.fabric.transport(who), self.options);
        match again.err() {
            Some(OpenError::AlreadyOpen) => self.saw("second opens"),
            Some(OpenError::Command(CommandError::Transport(_))) if self.cut[who] || self.dead => {}
            Some(error) => return Err(error.to_string()),
            None => return Err(format!("card {who} was opened a second time")),
        }
        Ok(())
    }

    /// A thread that can't talk to the card drops a buffer, which may be the last of its region.
    pub fn drop_elsewhere(&mut self, who: usize) {
        let shared = match self.rng.random_ratio(1, 3) {
            true => self.hosts[who].shared.pop(),
            false => None,
        };
        if let Some(shared) = &shared {
            self.own(who, shared, false);
            self.hosts[who].lost.remove(&range(shared).start);
        }
        let buffer = self.give(who);
        as_stranger(|| drop((buffer, shared)));
        self.saw("strangers' drops");
    }

    /// The program resets its card: everything comes back at once.
    pub fn reset(&mut self, who: usize) -> Result<(), String> {
        if let Err(error) = self.hosts[who].device.reset() {
            return self.note(who, error);
        }
        self.saw("resets");
        let left = self.fabric.open_endpoints(who);
        ensure!(self.dead || left == 0, "{left} endpoints after a reset");
        for at in 0..self.hosts[who].ends.len() {
            self.take_all(who, at)?;
            self.ensure_nothing_outstanding(who, at)?;
        }
        Ok(())
    }

    /// The program at a card ends and starts again.
    pub fn reopen(&mut self, who: usize) -> Result<(), String> {
        if self.cut[who] || self.dead {
            return Ok(());
        }
        self.drop_host(who)?;
        self.fabric.set_firmware(who, FirmwareBehaviour::Normal);
        self.fabric.wake_gates(who);
        (self.hung[who], self.silenced[who]) = (false, false);
        let host = self.open(who)?;
        self.hosts.insert(who, host);
        self.saw("reopened cards");
        self.furnish(who)?;
        self.connect(who)
    }

    fn drop_host(&mut self, who: usize) -> Result<(), String> {
        let host = self.hosts.remove(who);
        let card = host.card;
        host.buffers
            .iter()
            .for_each(|buffer| self.own(card, buffer, false));
        host.shared
            .iter()
            .for_each(|shared| self.own(card, shared, false));
        drop(host);
        let left = self.fabric.mappings(card);
        ensure!(left == 0, "card {card} has {left} mappings of nobody");
        Ok(())
    }

    /// The end: either the cards die under the program, which goes on for a while, or it closes everything, now and then a card whose firmware hangs.
    pub fn end(mut self) -> Result<Seen, String> {
        if self.rng.random() {
            self.fabric.close();
            self.dead = true;
            for _ in 0..AFTER_DEATH {
                self.step()?;
            }
        } else {
            self.mend()?;
            if self.rng.random_ratio(1, 8) {
                let who = self.rng.random_range(0..2);
                self.hung[who] = true;
                self.fabric
                    .set_firmware(who, FirmwareBehaviour::HangsAfter(0));
            }
        }
        for who in 0..2 {
            for at in (0..self.hosts[who].ends.len()).rev() {
                let closed = match &self.hosts[who].ends[at].endpoint {
                    Some(endpoint) => endpoint.close(),
                    // Any command has closed it.
                    None => self.hosts[who].device.alloc_pd().map(drop),
                };
                match closed {
                    Ok(()) | Err(CommandError::Restarted) => {}
                    Err(CommandError::Transport(_)) if self.dead => {}
                    Err(error) => {
                        ensure!(self.hung[who], "card {who} doesn't close: {error}");
                        let reset = self.hosts[who].device.reset();
                        reset.map_err(|error| format!("card {who}: {error}"))?;
                        self.saw("rescues from hung firmware");
                    }
                }
                self.take_all(who, at)?;
                self.ensure_nothing_outstanding(who, at)?;
            }
            let host = &mut self.hosts[who];
            host.ends.clear();
            for shared in std::mem::take(&mut host.shared) {
                let start = range(&shared).start;
                match shared.try_into_buffer() {
                    Ok(buffer) => host.buffers.push(buffer),
                    Err(_) => ensure!(host.lost.contains(&start), "a shared buffer is lost"),
                }
            }
        }
        for who in [1, 0] {
            self.drop_host(who)?;
        }
        let registered = self.brought.registered.load(Ordering::Relaxed);
        let dropped = self.brought.dropped.load(Ordering::Relaxed);
        ensure!(
            registered == dropped,
            "{dropped} of {registered} owners were dropped"
        );
        Ok(self.seen)
    }
}
