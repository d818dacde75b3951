//! The command channel: commands are given one at a time, and what the card may still use waits here until the card is known to be done with it.
//!
//! ```text
//!  verb ─► channel ─► command ─┬─ answered ──────────────────────────► verb
//!             ▲                └─ not in time: late, with what it concerns
//!             │                     │ later: answered after all
//!             │                     ▼
//!             └── releases ◄── opened too late ─► to be closed
//!                    ▲ ─────── closed too late ─► closed
//!                    └── what was dropped: by a thread that can't talk to the card, or while the firmware doesn't answer
//! ```
//!
//! Whoever takes the channel first settles what is late, then works off the releases, then gives its command. While a command is late
//! no other is given: it fails at once, with the late one's name. A release has the memory of its object with it, which is freed when the card
//! has said that the object is closed, or doesn't know it. When the last user of the card is gone and something is still late or unreleased, the
//! gates are reset, and then it is freed. The program can have that at any time, by [`Device::reset`](crate::Device::reset).
//!
//! Locks are taken in the order command channel, queues of an endpoint; the lists of releases and of endpoints are never held across a call.
//!
//! Before each command, and after each that has opened something, the number of the firmware's start is read: another than the card was opened with means
//! that the firmware has closed everything.

use crate::device::{self, DeviceOptions};
use crate::endpoint::WeakHandle;
use crate::error::{CommandError, UndrainedAccess};
use crate::link::Link;
use crate::memory::HostMemory;
use crate::pair::Pair;
use crate::sync::{CardGuard, CardMutex};
use crate::transport::{Answer, TransportError};
use crate::waiting::Waiting;
use abi::mailbox::{Command, Identity, Undrained, WordField, Words};
use abi::register::MAILBOX_WORDS;
use abi::status::MailboxStatus;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An object of the card's that nobody uses any more.
pub(crate) enum Release {
    /// To be closed by this command with this id; then the memory is free.
    Object {
        close: Command,
        id: u32,
        #[expect(dead_code, reason = "it is kept, and freed with this")]
        memory: Vec<Arc<HostMemory>>,
    },
    /// An endpoint whose handle is gone and whose queue may still be held.
    Endpoint(WeakHandle),
}

/// What a command that is not answered in time leaves behind.
pub(crate) enum Concern {
    Nothing,
    /// If it succeeds after all there is an object that nobody knows, to be closed by this command. Its memory is kept until then.
    Opened {
        close: Command,
        memory: Vec<Arc<HostMemory>>,
    },
    EndpointClosed(WeakHandle),
    PairClosed(WeakHandle, Pair),
    Released(Release),
}

/// A command whose answer hasn't come.
struct Late {
    command: Command,
    cycles: u64,
    concern: Concern,
}

/// What the lock of the channel guards.
#[derive(Default)]
struct State {
    late: Option<Late>,
}

/// An open card, as its objects share it.
pub(crate) struct Card {
    pub(crate) link: Arc<Link>,
    pub(crate) identity: Identity,
    pub(crate) options: DeviceOptions,
    state: CardMutex<State>,
    releases: Waiting<Release>,
    /// The endpoints that the library has, by their places on the card.
    endpoints: Mutex<Vec<Option<WeakHandle>>>,
}

impl Card {
    pub(crate) fn new(link: Arc<Link>, options: DeviceOptions) -> Self {
        Self {
            link,
            identity: Identity::default(),
            options,
            state: CardMutex::new(State::default()),
            releases: Waiting::new(),
            endpoints: Mutex::default(),
        }
    }

    /// Takes the command channel.
    ///
    /// # Errors
    /// [`CommandError::FirmwareTimeout`] while a command is late; [`CommandError::Restarted`]; [`CommandError::Transport`].
    pub(crate) fn commands(&self) -> Result<Commands<'_>, CommandError> {
        let mut commands = Commands {
            card: self,
            state: self.state.lock(&*self.link),
        };
        commands.prepare()?;
        Ok(commands)
    }

    /// Resets the card; see [`Device::reset`](crate::Device::reset).
    ///
    /// # Errors
    /// [`CommandError::ResetTimeout`]; [`CommandError::Transport`].
    pub(crate) fn reset(&self) -> Result<(), CommandError> {
        // Not settled: a command that is late may be so for ever, and is over with this.
        let state = self.state.lock(&*self.link);
        let mut commands = Commands { card: self, state };
        if is_broken!(ResetsInName) {
            self.link.set_restarted();
        }
        commands.reset()
    }

    /// Has an object closed that nobody uses: now, if this thread can talk to the card and nobody has the channel, or by who has it next.
    pub(crate) fn release(&self, release: Release) {
        if is_broken!(FreesBeforeClose) {
            return;
        }
        if is_broken!(ForgetsStrangers) && !self.link.may_call() {
            return;
        }
        self.releases.push_back(release);
        if self.link.may_call()
            && let Some(state) = self.state.try_lock(&*self.link)
        {
            // What fails stays released, and the next command says why.
            let _ = Commands { card: self, state }.prepare();
        }
    }
}

impl Card {
    /// Whether the library has an endpoint at this place that isn't closed.
    pub(crate) fn has_endpoint(&self, place: u8) -> bool {
        if is_broken!(TrustsPlace) {
            return false;
        }
        let held = self.endpoints().get(usize::from(place)).cloned().flatten();
        held.and_then(|held| held.upgrade())
            .is_some_and(|endpoint| !endpoint.lock().own().is_closed())
    }

    pub(crate) fn enter_endpoint(&self, place: u8, endpoint: WeakHandle) {
        let mut endpoints = self.endpoints();
        let place = usize::from(place);
        if endpoints.len() <= place {
            endpoints.resize(place + 1, None);
        }
        endpoints[place] = Some(endpoint);
    }

    /// The card has forgotten all endpoints: what was outstanding is flushed, and who waits for it is woken.
    fn end_endpoints(&self) {
        let endpoints = std::mem::take(&mut *self.endpoints());
        if is_broken!(EndsInSilence) {
            return;
        }
        for endpoint in endpoints.into_iter().flatten() {
            if let Some(endpoint) = endpoint.upgrade() {
                endpoint.closing_ended(true, true);
            }
        }
    }

    pub(crate) fn endpoints(&self) -> MutexGuard<'_, Vec<Option<WeakHandle>>> {
        self.endpoints
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Card {
    fn drop(&mut self) {
        if !self.link.may_call() {
            // What is mapped is unmapped as it is freed; whoever opens the card next resets it.
            return;
        }
        let _ = self.commands();
        if self.state.get_mut().late.is_some() || !self.releases.is_empty() {
            let _ = device::reset(&self.link, self.options.ready_timeout);
        }
    }
}

/// The command channel, taken: what was late is settled.
pub(crate) struct Commands<'a> {
    card: &'a Card,
    state: CardGuard<'a, State, Link>,
}

impl Commands<'_> {
    /// Settles what is late, then releases what waits for it.
    fn prepare(&mut self) -> Result<(), CommandError> {
        self.card.link.free_unreturned();
        self.look_for_restart()?;
        self.settle()?;
        let waiting = self.card.releases.len();
        for _ in 0..waiting {
            let next = self.card.releases.pop_front();
            next.map_or(Ok(()), |release| self.let_go(release))?;
        }
        Ok(())
    }

    /// Looks whether the firmware has started anew since the card was opened.
    fn look_for_restart(&mut self) -> Result<(), CommandError> {
        let link = &self.card.link;
        match link.is_restarted() || link.is_another_start()? {
            true => Err(self.restarted()),
            false => Ok(()),
        }
    }

    /// The firmware has started anew, which closed everything. A command that was on its way may have opened something since: the gates are reset, so that
    /// nothing is open for sure.
    pub(crate) fn restarted(&mut self) -> CommandError {
        if is_broken!(TrustsRestart) {
            self.card.link.set_restarted();
        }
        match self.reset() {
            // If the gates aren't quiet the card keeps what it has, and the next command tries again.
            Ok(()) | Err(CommandError::ResetTimeout(_)) => CommandError::Restarted,
            Err(error) => error,
        }
    }

    /// Resets the gates, unless nothing is open on the card any more. Then all endpoints end, nothing is late, and all memory is free.
    fn reset(&mut self) -> Result<(), CommandError> {
        let link = &self.card.link;
        let timeout = self.card.options.ready_timeout;
        if !link.is_lost() {
            match device::reset(link, timeout) {
                Ok(true) => link.set_restarted(),
                Ok(false) => return Err(CommandError::ResetTimeout(timeout)),
                Err(TransportError::Closed) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.card.end_endpoints();
        self.state.late = None;
        drop(self.card.releases.take());
        Ok(())
    }

    /// Looks whether the late command has been answered, and does what follows from that.
    fn settle(&mut self) -> Result<(), CommandError> {
        let Some(late) = self.state.late.take() else {
            return Ok(());
        };
        let link = &self.card.link;
        let mut words = [0; 2];
        if is_broken!(ForgetsLateAnswer) {
            return Ok(());
        }
        let answer = link.late_answer(&mut words, link.now());
        match answer {
            Ok(Answer::Complete) => self.conclude(late.concern, Some(words)),
            Ok(Answer::NotSent) => self.conclude(late.concern, None),
            Ok(Answer::Outstanding) => {
                let Late {
                    command, cycles, ..
                } = late;
                self.state.late = Some(late);
                Err(CommandError::FirmwareTimeout { command, cycles })
            }
            Err(error) => {
                self.state.late = Some(late);
                Err(error.into())
            }
        }
    }

    /// What follows from a late answer: its status and its first result. None if the command never reached the firmware.
    fn conclude(&mut self, concern: Concern, words: Option<[u32; 2]>) -> Result<(), CommandError> {
        let status = words.map(|[status, _]| status_of(status));
        let done = match status {
            Some(Some(MailboxStatus::Restarted)) => return Err(self.restarted()),
            // What the card doesn't know is closed.
            Some(Some(MailboxStatus::Ok | MailboxStatus::NotFound)) => true,
            Some(_) | None => false,
        };
        match concern {
            Concern::Nothing => {}
            Concern::Opened { close, memory } => {
                if let Some([_, id]) = words.filter(|_| status == Some(Some(MailboxStatus::Ok))) {
                    // In front: what was dropped since may be what it uses.
                    let object = Release::Object { close, id, memory };
                    self.card.releases.push_front(object);
                }
            }
            Concern::EndpointClosed(endpoint) => {
                if let Some(endpoint) = endpoint.upgrade() {
                    endpoint.closing_ended(done, status.is_some());
                }
            }
            Concern::PairClosed(endpoint, pair) => {
                if let Some(endpoint) = endpoint.upgrade() {
                    endpoint
                        .lock()
                        .own()
                        .pair_closing_ended(pair, done, status.is_some());
                }
            }
            Concern::Released(release) if !done => self.card.releases.push_back(release),
            Concern::Released(_) => {}
        }
        Ok(())
    }

    /// Closes what nobody uses. What the card doesn't close now is kept for the next time.
    fn let_go(&mut self, release: Release) -> Result<(), CommandError> {
        let (close, id) = match &release {
            Release::Endpoint(endpoint) => {
                let endpoint = endpoint.upgrade();
                let closed = endpoint.map_or(Ok(()), |endpoint| endpoint.close_at(self));
                return match closed {
                    Err(error) if error.is_refusal() => {
                        self.card.releases.push_back(release);
                        Ok(())
                    }
                    Err(error) => {
                        self.card.releases.push_front(release);
                        Err(error)
                    }
                    Ok(()) => Ok(()),
                };
            }
            Release::Object { close, id, .. } => (*close, *id),
        };
        let closed = self.call::<_, abi::mailbox::Nothing>(close, &Id(id));
        match closed {
            Ok(_) => Ok(()),
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) if error.is_refusal() => {
                self.card.releases.push_back(release);
                Ok(())
            }
            Err(error) => {
                match &mut self.state.late {
                    Some(late) => late.concern = Concern::Released(release),
                    None => self.card.releases.push_front(release),
                }
                Err(error)
            }
        }
    }

    /// Gives a command and waits for its answer.
    ///
    /// # Errors
    /// [`CommandError`]. After one that leaves the command [late](Self::is_late), the caller says [what it concerns](Self::concerns).
    pub(crate) fn call<A: Words, R: Words>(
        &mut self,
        command: Command,
        argument: &A,
    ) -> Result<R, CommandError> {
        let link = &self.card.link;
        let cycles = self.card.options.command_timeout;
        let mut words = [0; MAILBOX_WORDS];
        words[0] = u32::from(command.code());
        argument.to_words(&mut words[1..]);
        let mut answer = [0; MAILBOX_WORDS];
        let wanted = &mut answer[..1 + R::COUNT.max(Undrained::COUNT)];
        let deadline = link.now().saturating_add(cycles);
        let outcome = link.command(&words[..1 + A::COUNT], wanted, deadline);
        // After an error too the firmware may have it, but not on a card that is gone.
        let late = match outcome {
            Ok(answer) => answer == Answer::Outstanding,
            Err(error) => error != TransportError::Closed,
        };
        if late {
            self.state.late = Some(Late {
                command,
                cycles,
                concern: Concern::Nothing,
            });
        }
        match outcome? {
            Answer::Complete => {}
            Answer::Outstanding | Answer::NotSent => {
                return Err(CommandError::FirmwareTimeout { command, cycles });
            }
        }
        match status_of(answer[0]) {
            Some(MailboxStatus::Ok) => Ok(R::from_words(&answer[1..=R::COUNT])),
            Some(MailboxStatus::Restarted) => Err(self.restarted()),
            Some(status) => {
                let undrained = (status == MailboxStatus::HardwareTimeout)
                    .then(|| UndrainedAccess::from_answer(Undrained::from_words(&answer[1..])));
                Err(match undrained.flatten() {
                    Some(access) => CommandError::Undrained { command, access },
                    None => CommandError::Refused {
                        command,
                        status,
                        detail: answer[1],
                    },
                })
            }
            None => Err(CommandError::Malformed {
                command,
                answer: answer[0],
            }),
        }
    }

    /// Gives a command that opens an object over `memory`. If it is late, the memory is kept until the object, if there is one, is closed by `close`.
    ///
    /// # Errors
    /// [`CommandError`].
    pub(crate) fn open<A: Words, R: Words>(
        &mut self,
        command: Command,
        argument: &A,
        close: Command,
        memory: &[&Arc<HostMemory>],
    ) -> Result<R, CommandError> {
        let opened: Result<R, _> = self.call(command, argument);
        let memory = || memory.iter().map(|memory| Arc::clone(memory)).collect();
        match &opened {
            // A start since the command was prepared may have answered it: what it opened isn't one among the objects that the library has.
            Ok(answer) => match self.card.link.is_another_start() {
                Ok(true) if is_broken!(TrustsAnswer) => {}
                Ok(false) => {}
                Ok(true) => return Err(self.refuse(close, answer, memory())),
                Err(error) => {
                    self.close_later(close, answer, memory());
                    return Err(error.into());
                }
            },
            Err(_) => self.concerns(Concern::Opened {
                close,
                memory: memory(),
            }),
        }
        opened
    }

    /// Refuses what the firmware has opened just now over `memory`: it can't be beside what the library has, so another start of the firmware has opened it.
    pub(crate) fn refuse<R: Words>(
        &mut self,
        close: Command,
        answer: &R,
        memory: Vec<Arc<HostMemory>>,
    ) -> CommandError {
        // In case the gates can't be reset.
        self.close_later(close, answer, memory);
        self.restarted()
    }

    fn close_later<R: Words>(&self, close: Command, answer: &R, memory: Vec<Arc<HostMemory>>) {
        let mut words = [0; MAILBOX_WORDS];
        answer.to_words(&mut words);
        let id = words[0];
        let object = Release::Object { close, id, memory };
        self.card.releases.push_front(object);
    }

    /// Whether the last command is late.
    pub(crate) fn is_late(&self) -> bool {
        self.state.late.is_some()
    }

    /// Says what the last command concerns, if it is late.
    pub(crate) fn concerns(&mut self, concern: Concern) {
        if let Some(late) = &mut self.state.late
            && !is_broken!(FreesWhatIsLate)
        {
            late.concern = concern;
        }
    }
}

/// The argument of every command that closes something.
struct Id(u32);

impl Words for Id {
    const NAME: &'static str = "Id";
    const ABOUT: &'static str = "Argument of every command that closes something.";
    const FIELDS: &'static [WordField] = &[WordField {
        name: "id",
        word: 1,
        words: 1,
        doc: "The object.",
    }];
    const COUNT: usize = 1;

    fn to_words(&self, words: &mut [u32]) {
        if let Some(word) = words.first_mut() {
            *word = self.0;
        }
    }

    fn from_words(words: &[u32]) -> Self {
        Self(words.first().copied().unwrap_or(0))
    }
}

fn status_of(word: u32) -> Option<MailboxStatus> {
    u8::try_from(word).ok().and_then(MailboxStatus::from_code)
}
