//! A card at the end of a cable: whatever goes between host and card is a message of bytes.
//!
//! ```text
//!           calls:  words ──► bytes ──► channel ──► bytes ──► words
//!  host end ────────────────────────────────────────────────────────► card end ─► SoftTransport ─► fabric
//!   its memory ◄───────────────────────────────────────────────────── Memory
//!           DMA:    words ◄── bytes ◄── channel ◄── bytes ◄── words
//! ```
//!
//! Host end and card end share no memory: the card end knows addresses and lengths of mappings, and asks the host end for their bytes; the host end
//! knows nothing of the card but what the answers say. A call is answered by a worker of the card end, as many as there are
//! threads of the host in a call at a time; DMA by one thread of the host end.
//!
//! The host end has memory of its own for its card, which it lends out block by block, as the driver of such a card has memory that was pinned for it
//! beforehand: the allocator of the program knows nothing of the cable, and may have no memory that the cable can reach.

#[cfg(target_os = "linux")]
use crate::fabric::EventPlace;
use crate::fabric::{Flaw, SoftTransport, is_stranger};
use crate::memory::store_words;
use host_driver::transport::{
    Answer, Line, MAP_BYTES, PauseResult, SharedMemory, Transport, TransportError, Watch,
};
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::collections::BTreeMap;
#[cfg(target_os = "linux")]
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;

/// A message as it is on the cable.
type Bytes = Vec<u8>;

fn to_bytes(words: &[u64]) -> Bytes {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn to_words(bytes: &[u8]) -> Vec<u64> {
    let (words, _) = bytes.as_chunks();
    words.iter().map(|word| u64::from_le_bytes(*word)).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One direction of questions and their answers.
struct Wire {
    questions: Sender<Bytes>,
    answers: Receiver<Bytes>,
}

impl Wire {
    /// A wire whose questions are answered by `answer` in a thread of its own, until the wire is gone.
    fn new(mut answer: impl FnMut(Bytes) -> Bytes + Send + 'static) -> Self {
        let (questions, asked) = channel::<Bytes>();
        let (replies, answers) = channel();
        thread::spawn(move || {
            while let Ok(question) = asked.recv() {
                if replies.send(answer(question)).is_err() {
                    return;
                }
            }
        });
        Self { questions, answers }
    }

    /// The answer, unless the other end is gone.
    fn ask(&self, question: Bytes) -> Option<Bytes> {
        self.questions.send(question).ok()?;
        self.answers.recv().ok()
    }
}

// Memory

/// Written over what was given back, so that who still reads it gets nothing that looks right.
const GIVEN_BACK: u8 = 0xa5;

/// Whole pages that the host end has for its card.
struct Block {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: a block is plain bytes that nothing ties to a thread.
unsafe impl Send for Block {}

impl Block {
    fn new(layout: Layout) -> Self {
        // SAFETY: the layout has at least a page.
        let start = unsafe { alloc_zeroed(layout) };
        match NonNull::new(start) {
            Some(start) => Self { start, layout },
            None => handle_alloc_error(layout),
        }
    }

    fn fill(&mut self, byte: u8) {
        // SAFETY: the block is this many bytes, and in nobody's hands while it is not lent.
        unsafe { self.start.write_bytes(byte, self.layout.size()) };
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout. A cable is dropped when nobody has memory of it.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

/// The blocks, lent out by the card's addresses, and those that were given back.
#[derive(Default)]
struct Blocks {
    lent: BTreeMap<u64, Block>,
    free: Vec<Block>,
}

impl Blocks {
    /// A zeroed block, if possible one that was used before.
    fn take(&mut self, layout: Layout) -> Block {
        let used = self.free.iter().rposition(|block| block.layout == layout);
        match used {
            Some(at) => {
                let mut block = self.free.remove(at);
                block.fill(0);
                block
            }
            None => Block::new(layout),
        }
    }

    fn give_back(&mut self, mut block: Block) {
        block.fill(GIVEN_BACK);
        self.free.push(block);
    }
}

// DMA

const READ: u64 = 0;
const WRITE: u64 = 1;
const WRITE_ENTRY: u64 = 2;
#[cfg(target_os = "linux")]
const SIGNAL: u64 = 3;

/// Memory of the host, by the card's addresses.
#[derive(Default)]
struct Mapped {
    starts: BTreeMap<u64, (NonNull<u8>, usize)>,
    /// Descriptors to be signalled, by the words of their lines.
    #[cfg(target_os = "linux")]
    event_fds: BTreeMap<[u64; 2], OwnedFd>,
}

// SAFETY: the memory is plain bytes; who mapped it promised that the card may access them from any thread.
unsafe impl Send for Mapped {}

impl Mapped {
    fn find(&self, address: u64, length: usize) -> Option<NonNull<u8>> {
        let (&first, &(start, mapped)) = self.starts.range(..=address).next_back()?;
        let offset = (address - first) as usize;
        // SAFETY: inside the mapping, which is one allocation.
        (offset + length <= mapped).then(|| unsafe { start.add(offset) })
    }

    /// Carries out what the card asks for: `READ address length`, `WRITE address` and bytes, `WRITE_ENTRY address` and words, `SIGNAL` and
    /// the words of a line. An empty answer is a
    /// bus error; any other begins with a byte of no meaning.
    fn answer(&self, question: &[u8]) -> Option<Bytes> {
        let words = to_words(question.get(..16)?);
        let (kind, address, rest) = (words[0], words[1], &question[16..]);
        match kind {
            READ => {
                let length = *to_words(rest).first()? as usize;
                let from = self.find(address, length)?;
                let mut bytes = vec![0; 1 + length];
                let to = NonNull::from(&mut bytes[1..]).cast();
                // SAFETY: mapped for as many bytes. The host holds no reference to what it has given to the card.
                unsafe { from.copy_to_nonoverlapping(to, length) };
                Some(bytes)
            }
            WRITE => {
                let to = self.find(address, rest.len())?;
                // SAFETY: as for reading.
                unsafe { to.copy_from_nonoverlapping(NonNull::from(rest).cast(), rest.len()) };
                Some(vec![0])
            }
            #[cfg(target_os = "linux")]
            SIGNAL => {
                let line = [address, *to_words(rest).first()?];
                let event = self.event_fds.get(&line)?;
                host_driver::transport::signal_event_fd(event.as_fd());
                Some(vec![0])
            }
            _ => {
                let to = self.find(address, rest.len())?;
                // SAFETY: mapped for as many words, and aligned because rings are.
                unsafe { store_words(to, &to_words(rest)) };
                Some(vec![0])
            }
        }
    }
}

/// The host's end of a cable, as the card reaches its memory.
pub(crate) struct HostEnd {
    wire: Mutex<Wire>,
}

impl HostEnd {
    fn ask(&self, kind: u64, address: u64, rest: &[u8]) -> Option<Bytes> {
        let mut question = to_bytes(&[kind, address]);
        question.extend_from_slice(rest);
        lock(&self.wire)
            .ask(question)
            .filter(|answer| !answer.is_empty())
    }

    pub(crate) fn read(&self, address: u64, length: usize) -> Option<Vec<u8>> {
        let mut answer = self.ask(READ, address, &to_bytes(&[length as u64]))?;
        Some(answer.split_off(1))
    }

    pub(crate) fn write(&self, address: u64, bytes: &[u8]) -> Option<()> {
        self.ask(WRITE, address, bytes).map(drop)
    }

    pub(crate) fn write_entry(&self, address: u64, words: &[u64]) -> Option<()> {
        self.ask(WRITE_ENTRY, address, &to_bytes(words)).map(drop)
    }
}

#[cfg(target_os = "linux")]
impl HostEnd {
    pub(crate) fn signal(&self, line: Line) {
        let [kind, number] = line_words(line);
        let _ = self.ask(SIGNAL, kind, &to_bytes(&[number]));
    }
}

// Calls

/// What a host asks of a card.
#[derive(Clone, Copy)]
#[repr(u64)]
enum Call {
    Claim,
    Release,
    Read,
    Write,
    Doorbell,
    Map,
    Unmap,
    Command,
    LateAnswer,
    Now,
    Interrupts,
    Notify,
    Pause,
    IsClosed,
    #[cfg(target_os = "linux")]
    SetEventFd,
}

const CALLS: &[Call] = &[
    Call::Claim,
    Call::Release,
    Call::Read,
    Call::Write,
    Call::Doorbell,
    Call::Map,
    Call::Unmap,
    Call::Command,
    Call::LateAnswer,
    Call::Now,
    Call::Interrupts,
    Call::Notify,
    Call::Pause,
    Call::IsClosed,
    #[cfg(target_os = "linux")]
    Call::SetEventFd,
];

fn error_words(error: TransportError) -> [u64; 2] {
    match error {
        TransportError::NoRegister(offset) => [1, offset.into()],
        TransportError::Bus(offset) => [2, offset.into()],
        TransportError::NoSpace(length) => [3, length as u64],
        TransportError::NotMapped(address) => [4, address],
        TransportError::Unreachable => [5, 0],
        _ => [6, 0],
    }
}

fn error_of(code: u64, argument: u64) -> TransportError {
    match code {
        1 => TransportError::NoRegister(argument as u32),
        2 => TransportError::Bus(argument as u32),
        3 => TransportError::NoSpace(argument as usize),
        4 => TransportError::NotMapped(argument),
        5 => TransportError::Unreachable,
        _ => TransportError::Closed,
    }
}

fn line_words(line: Line) -> [u64; 2] {
    match line {
        Line::Mailbox => [0, 0],
        Line::Library => [1, 0],
        Line::Endpoint(endpoint) => [2, endpoint.into()],
    }
}

fn line_of(words: &[u64]) -> Line {
    match *words {
        [0, ..] => Line::Mailbox,
        [1, ..] => Line::Library,
        [_, endpoint, ..] => Line::Endpoint(endpoint as u8),
        _ => Line::Library,
    }
}

fn answer_of(word: u64) -> Answer {
    match word {
        0 => Answer::Complete,
        1 => Answer::Outstanding,
        _ => Answer::NotSent,
    }
}

/// Answers a call at the card's end: 0 and the results, or an error.
fn serve(
    card: &SoftTransport,
    host: &Arc<HostEnd>,
    question: &[u8],
) -> Result<Vec<u64>, TransportError> {
    let words = to_words(question);
    let (call, words) = (CALLS[words[0] as usize], &words[1..]);
    let short = |k: usize| words[k] as u32;
    let command = |mut answer: Vec<u32>, outcome: Result<Answer, TransportError>| {
        let mut results = vec![match outcome? {
            Answer::Complete => 0,
            Answer::Outstanding => 1,
            Answer::NotSent => 2,
        }];
        results.extend(answer.drain(..).map(u64::from));
        Ok(results)
    };
    // SAFETY: the host's end makes these calls only as its own caller has promised.
    unsafe {
        Ok(match call {
            Call::Claim => vec![card.claim()?.into()],
            Call::Release => {
                card.release();
                vec![]
            }
            Call::Read => vec![card.read_register(short(0))?.into()],
            Call::Write => {
                card.write_register(short(0), short(1))?;
                vec![]
            }
            Call::Doorbell => {
                card.doorbell(short(0), short(1))?;
                vec![]
            }
            Call::Map => vec![card.map_there(words[0], words[1], Arc::clone(host))?],
            Call::Unmap => {
                card.unmap(words[0])?;
                vec![]
            }
            Call::Command => {
                let mut answer = vec![0; words[1] as usize];
                let command_words: Vec<u32> = words[2..].iter().map(|&word| word as u32).collect();
                let outcome = card.command(&command_words, &mut answer, words[0]);
                return command(answer, outcome);
            }
            Call::LateAnswer => {
                let mut answer = vec![0; words[1] as usize];
                let outcome = card.late_answer(&mut answer, words[0]);
                return command(answer, outcome);
            }
            Call::Now => vec![card.now()],
            Call::Interrupts => vec![card.interrupts(line_of(words))],
            Call::Notify => {
                card.notify();
                vec![]
            }
            Call::Pause => {
                let (watches, _) = words[1..].as_chunks::<3>();
                let watches: Vec<Watch> = watches
                    .iter()
                    .map(|words| Watch {
                        line: line_of(words),
                        seen: words[2],
                    })
                    .collect();
                match card.pause(&watches, words[0]) {
                    PauseResult::Deadline => vec![0],
                    PauseResult::Unreachable => vec![1],
                    PauseResult::Closed => vec![2],
                    PauseResult::Interrupt(line) => {
                        let [kind, number] = line_words(line);
                        vec![3, kind, number]
                    }
                }
            }
            Call::IsClosed => vec![card.is_closed().into()],
            #[cfg(target_os = "linux")]
            Call::SetEventFd => {
                let place = (words[2] != 0).then(|| EventPlace::There(Arc::clone(host)));
                card.set_event_place(line_of(words), place)?;
                vec![]
            }
        })
    }
}

/// What becomes of a command whose caller has not waited for its answer.
#[derive(Default)]
enum Delayed {
    #[default]
    None,
    OnItsWay(Bytes),
    Answered(Vec<u64>),
}

/// A card at the end of a cable, as its host reaches it.
pub(crate) struct Cable {
    card: Arc<SoftTransport>,
    /// As the card's end has it.
    end: Arc<HostEnd>,
    mapped: Arc<Mutex<Mapped>>,
    blocks: Mutex<Blocks>,
    /// A command that is on its way, though its caller has had the error that the card can't be reached; and its answer, once it has come.
    command: Mutex<Delayed>,
    /// Wires that no thread of the host uses at the moment.
    idle: Mutex<Vec<Wire>>,
}

impl Cable {
    pub(crate) fn new(card: SoftTransport) -> Self {
        let mapped = Arc::<Mutex<Mapped>>::default();
        let memory: Weak<Mutex<Mapped>> = Arc::downgrade(&mapped);
        let wire = Wire::new(move |question| {
            let memory = memory.upgrade();
            let answer = memory.and_then(|memory| lock(&memory).answer(&question));
            answer.unwrap_or_default()
        });
        Self {
            card: Arc::new(card),
            end: Arc::new(HostEnd {
                wire: Mutex::new(wire),
            }),
            mapped,
            blocks: Mutex::default(),
            command: Mutex::default(),
            idle: Mutex::default(),
        }
    }

    fn call(&self, call: Call, arguments: &[u64]) -> Result<Vec<u64>, TransportError> {
        let question = to_bytes(&[&[call as u64], arguments].concat());
        if matches!(call, Call::Command) && self.card.takes_delay() {
            *lock(&self.command) = Delayed::OnItsWay(question);
            return Err(TransportError::Unreachable);
        }
        if self.card.flaw() == Flaw::Overtakes {
            let answer = self.ask(question);
            if matches!(call, Call::LateAnswer) {
                self.deliver();
                *lock(&self.command) = Delayed::None;
            }
            return answer;
        }
        // What was sent first arrives first.
        self.deliver();
        self.ask(question)
    }

    /// Lets the command that is on its way arrive.
    fn deliver(&self) {
        let mut command = lock(&self.command);
        if let Delayed::OnItsWay(question) = &mut *command {
            let question = std::mem::take(question);
            *command = match self.ask(question) {
                Ok(answer) if matches!(answer_of(answer[0]), Answer::Complete) => {
                    Delayed::Answered(answer)
                }
                // The card's end has it, or has refused it.
                _ => Delayed::None,
            };
        }
    }

    fn ask(&self, question: Bytes) -> Result<Vec<u64>, TransportError> {
        let wire = lock(&self.idle).pop();
        let wire = wire.unwrap_or_else(|| {
            let (card, end) = (Arc::clone(&self.card), Arc::clone(&self.end));
            Wire::new(move |question| {
                let answer = serve(&card, &end, &question);
                to_bytes(&match answer {
                    Ok(results) => [&[0], &results[..]].concat(),
                    Err(error) => error_words(error).to_vec(),
                })
            })
        });
        let answer = wire.ask(question);
        lock(&self.idle).push(wire);
        let words = to_words(&answer.ok_or(TransportError::Unreachable)?);
        match words[0] {
            0 => Ok(words[1..].to_vec()),
            code => Err(error_of(code, words[1])),
        }
    }

    fn give(
        &self,
        call: Call,
        arguments: &[u64],
        answer: &mut [u32],
    ) -> Result<Answer, TransportError> {
        let mut results = self.call(call, arguments)?;
        if matches!(call, Call::LateAnswer)
            && let Delayed::Answered(kept) = std::mem::take(&mut *lock(&self.command))
        {
            results = kept;
        }
        for (word, result) in answer.iter_mut().zip(&results[1..]) {
            *word = *result as u32;
        }
        Ok(answer_of(results[0]))
    }
}

// SAFETY: the memory is the host end's own: whole pages, zeroed when they are lent, and not used again before the card's end has unmapped them or is gone.
// The host's end looks for each access whether it is mapped. What the card's end promises of order, ending and claims is passed on call by call, and a
// command that was on its way when its caller gave up arrives before every later call.
unsafe impl Transport for Cable {
    fn claim(&self) -> Result<bool, TransportError> {
        Ok(self.call(Call::Claim, &[])?[0] != 0)
    }

    unsafe fn release(&self) {
        let _ = self.call(Call::Release, &[]);
    }

    unsafe fn read_register(&self, offset: u32) -> Result<u32, TransportError> {
        Ok(self.call(Call::Read, &[offset.into()])?[0] as u32)
    }

    unsafe fn write_register(&self, offset: u32, value: u32) -> Result<(), TransportError> {
        self.call(Call::Write, &[offset.into(), value.into()])
            .map(drop)
    }

    unsafe fn doorbell(&self, offset: u32, value: u32) -> Result<(), TransportError> {
        self.call(Call::Doorbell, &[offset.into(), value.into()])
            .map(drop)
    }

    unsafe fn alloc(&self, length: usize) -> Result<SharedMemory, TransportError> {
        let layout = Layout::from_size_align(length, MAP_BYTES).map(|layout| layout.pad_to_align());
        let layout = layout.ok().filter(|layout| layout.size() > 0);
        let block = lock(&self.blocks).take(layout.ok_or(TransportError::NoSpace(length))?);
        let start = block.start;
        // SAFETY: the block is as long, and is lent until it is unmapped; the caller keeps to the rules.
        match unsafe { self.map(start, length) } {
            Ok(address) => {
                lock(&self.blocks).lent.insert(address, block);
                self.card.count_lent(1);
                Ok(SharedMemory {
                    start,
                    length,
                    address,
                })
            }
            Err(error) => {
                lock(&self.blocks).give_back(block);
                Err(error)
            }
        }
    }

    unsafe fn free(&self, memory: SharedMemory) -> Result<(), TransportError> {
        // SAFETY: nobody has a reference to the memory.
        match unsafe { self.unmap(memory.address) } {
            Ok(()) | Err(TransportError::NotMapped(_) | TransportError::Closed) => {
                let mut blocks = lock(&self.blocks);
                if let Some(block) = blocks.lent.remove(&memory.address) {
                    blocks.give_back(block);
                    self.card.count_lent(-1);
                }
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    unsafe fn map(&self, start: NonNull<u8>, length: usize) -> Result<u64, TransportError> {
        let misaligned = start.addr().get() % MAP_BYTES;
        let address = self.call(Call::Map, &[misaligned as u64, length as u64])?[0];
        lock(&self.mapped).starts.insert(address, (start, length));
        Ok(address)
    }

    unsafe fn unmap(&self, address: u64) -> Result<(), TransportError> {
        let ended = self.call(Call::Unmap, &[address]);
        if !matches!(ended, Err(TransportError::Unreachable)) {
            lock(&self.mapped).starts.remove(&address);
        }
        ended.map(drop)
    }

    unsafe fn command(
        &self,
        words: &[u32],
        answer: &mut [u32],
        deadline: u64,
    ) -> Result<Answer, TransportError> {
        let mut arguments = vec![deadline, answer.len() as u64];
        arguments.extend(words.iter().copied().map(u64::from));
        self.give(Call::Command, &arguments, answer)
    }

    unsafe fn late_answer(
        &self,
        answer: &mut [u32],
        deadline: u64,
    ) -> Result<Answer, TransportError> {
        let arguments = [deadline, answer.len() as u64];
        self.give(Call::LateAnswer, &arguments, answer)
    }

    fn now(&self) -> u64 {
        self.call(Call::Now, &[]).map_or(0, |words| words[0])
    }

    fn interrupts(&self, line: Line) -> u64 {
        let words = line_words(line);
        self.call(Call::Interrupts, &words)
            .map_or(0, |words| words[0])
    }

    #[cfg(target_os = "linux")]
    fn set_event_fd(&self, line: Line, event: Option<OwnedFd>) -> Result<(), TransportError> {
        let words = line_words(line);
        let is_set = event.is_some();
        {
            let events = &mut lock(&self.mapped).event_fds;
            match event {
                Some(event) => events.insert(words, event),
                None => events.remove(&words),
            };
        }
        self.call(Call::SetEventFd, &[words[0], words[1], is_set.into()])
            .map(drop)
    }

    fn notify(&self) {
        let _ = self.call(Call::Notify, &[]);
    }

    fn pause(&self, watch: &[Watch], deadline: u64) -> PauseResult {
        let mut arguments = vec![deadline];
        for watch in watch {
            arguments.extend(line_words(watch.line));
            arguments.push(watch.seen);
        }
        match self.call(Call::Pause, &arguments).as_deref() {
            Ok([0]) => PauseResult::Deadline,
            Ok([3, line @ ..]) => PauseResult::Interrupt(line_of(line)),
            Ok([2]) => PauseResult::Closed,
            _ => PauseResult::Unreachable,
        }
    }

    fn may_call(&self) -> bool {
        !is_stranger()
    }

    fn is_closed(&self) -> bool {
        self.call(Call::IsClosed, &[])
            .is_ok_and(|words| words[0] != 0)
    }
}
