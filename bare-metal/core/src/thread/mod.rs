//! Threads of a core, in supervisor or user mode, preempted by the timer each millisecond.
//!
//! The scheduler is a round robin over the ready threads. A thread that is not running is represented by the frame
//! that an interrupt has saved on its supervisor-mode stack. The timer, a message doorbell, a waiting system call, and
//! [`yield_now`] all switch in the same way: the interrupt's exit resumes a frame other than the one its entry has
//! saved. Images that start no thread contain none of this.

mod call;
pub mod user;

use crate::interrupt::{self, Frame, Guarded, Hook};
use crate::stack::{self, GuardedStack};
use crate::{fault, machine, println};
use core::fmt;

pub use crate::stack::STACK_BYTES;

/// Maximum number of threads of a core, including `main`.
pub const THREADS_MAX: usize = 8;
/// The thread that runs when no other is ready.
const IDLE: usize = THREADS_MAX;
const MAIN: usize = 0;

const SUPERVISOR_CODE: u64 = 8;
const SUPERVISOR_DATA: u64 = 16;
/// Interrupts enabled.
const FLAGS: u64 = 0x202;
/// Control words of FPU and SSE after a reset: all exceptions masked.
const FPU_CONTROL: u64 = 0x37f;
const SSE_CONTROL: u64 = 0x1f80;
const FPU_STATE_BYTES: usize = 512;

/// A thread of this core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadId(u8);

/// Outcome of a thread that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Its function has returned this value, or it has called `exit`.
    Returned(i32),
    /// An exception with this vector has ended it; only in user mode.
    Faulted(u32),
}

/// Error of starting a thread: [`THREADS_MAX`] threads have not been joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyThreads;

impl fmt::Display for TooManyThreads {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(text, "a core has {THREADS_MAX} threads at most, with that of main")
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    Ready,
    /// Until a signal.
    Waiting,
    /// Until any thread ends.
    Joining,
    Ended(End),
}

#[derive(Clone, Copy, Debug)]
struct Thread {
    state: State,
    frame: usize,
    signals: u32,
}

struct Scheduler {
    threads: [Thread; THREADS_MAX + 1],
    current: usize,
    is_started: bool,
}

static SCHEDULER: Guarded<Scheduler> = Guarded::new(Scheduler::new());

/// The supervisor-mode stacks; `main` uses the boot stack instead of its own.
#[unsafe(link_section = ".bss.stacks")]
static STACKS: [GuardedStack; THREADS_MAX + 1] = [const { GuardedStack::new() }; THREADS_MAX + 1];

/// Puts the initial frame of a new thread on its stack, and returns its address.
fn put(thread: usize, frame: Frame) -> usize {
    let address = STACKS[thread].top() - size_of::<Frame>();
    let fpu = (address - FPU_STATE_BYTES) & !15;
    // NEED: a new thread starts from a frame, as if an interrupt had saved it.
    // SOUND: both are on the stack of a thread that is not running, and nothing else refers to it.
    unsafe {
        (address as *mut Frame).write(frame);
        core::ptr::write_bytes(fpu as *mut u8, 0, FPU_STATE_BYTES);
        (fpu as *mut u64).write(FPU_CONTROL);
        ((fpu + 24) as *mut u64).write(SSE_CONTROL);
    }
    address
}

/// Initial state of a new thread: entry point, segments of its mode, stack, and function with its argument.
struct Start {
    entry: usize,
    code: u64,
    data: u64,
    stack: u64,
    function: usize,
    argument: usize,
}

impl Start {
    fn frame(&self) -> Frame {
        let mut registers = [0; 15];
        registers[call::RDI] = self.function as u64;
        registers[call::RSI] = self.argument as u64;
        // As after a call: the stack is aligned, except for the return address.
        let (rip, rsp) = (self.entry as u64, self.stack - 8);
        Frame { registers, vector: 0, error: 0, rip, cs: self.code, rflags: FLAGS, rsp, ss: self.data }
    }
}

impl Scheduler {
    const fn new() -> Scheduler {
        let thread = Thread { state: State::Free, frame: 0, signals: 0 };
        let mut threads = [thread; THREADS_MAX + 1];
        threads[MAIN].state = State::Ready;
        Scheduler { threads, current: MAIN, is_started: false }
    }

    /// Returns the next ready thread in turn, or [`IDLE`].
    fn next(&self) -> usize {
        let turn = (0..THREADS_MAX).map(|step| (self.current + 1 + step) % THREADS_MAX);
        turn.into_iter().find(|thread| self.threads[*thread].state == State::Ready).unwrap_or(IDLE)
    }

    /// Makes the next thread the current one, and returns its frame.
    fn resume_next(&mut self) -> usize {
        self.current = self.next();
        stack::set_supervisor_stack(STACKS[self.current].top());
        self.threads[self.current].frame
    }

    fn end_current(&mut self, end: End) {
        self.threads[self.current].state = State::Ended(end);
        for thread in self.threads.iter_mut().filter(|thread| thread.state == State::Joining) {
            thread.state = State::Ready;
        }
    }
}

fn schedule(frame: usize) -> usize {
    SCHEDULER.with(|scheduler| {
        let current = scheduler.current;
        scheduler.threads[current].frame = frame;
        scheduler.resume_next()
    })
}

/// Ends the user-mode thread that an exception has interrupted.
fn end_faulty(frame: usize) -> usize {
    // NEED: hooks take addresses.
    // SOUND: it is the address of the frame of the interrupt being handled.
    let frame = unsafe { &*(frame as *const Frame) };
    let vector = frame.vector as u32;
    SCHEDULER.with(|scheduler| {
        println!(
            "thread {}: exception {vector} ({}) in user mode at {:#x}, error code {:#x}, address {:#x}",
            scheduler.current,
            fault::name_of(vector as usize),
            frame.rip,
            frame.error,
            if vector == 14 { machine::fault_address() } else { 0 }
        );
        scheduler.end_current(End::Faulted(vector));
        scheduler.resume_next()
    })
}

/// Creates the idle thread and installs the scheduler, once.
pub(crate) fn start() {
    let idle = Start {
        entry: idle as *const () as usize,
        code: SUPERVISOR_CODE,
        data: SUPERVISOR_DATA,
        stack: STACKS[IDLE].top() as u64,
        function: 0,
        argument: 0,
    };
    SCHEDULER.with(|scheduler| {
        if !scheduler.is_started {
            scheduler.is_started = true;
            STACKS.iter().for_each(|stack| machine::close_page(stack.guard()));
            scheduler.threads[IDLE].frame = put(IDLE, idle.frame());
            interrupt::set_hook(Hook::Schedule, schedule);
            interrupt::set_hook(Hook::EndFaulty, end_faulty);
        }
    });
}

extern "C" fn idle() -> ! {
    loop {
        machine::sleep();
    }
}

#[expect(improper_ctypes_definitions, reason = "frames of this image are its only callers")]
extern "C" fn run(function: fn(usize) -> i32, argument: usize) -> ! {
    exit(function(argument))
}

extern "C" fn run_c(function: extern "C" fn(usize) -> i32, argument: usize) -> ! {
    exit(function(argument))
}

/// Adds a thread; `start` gets its number and returns its initial state.
fn add(start: impl FnOnce(usize) -> Start) -> Result<ThreadId, TooManyThreads> {
    self::start();
    SCHEDULER.with(|scheduler| {
        let free = (0..THREADS_MAX).find(|thread| scheduler.threads[*thread].state == State::Free);
        let number = free.ok_or(TooManyThreads)?;
        let frame = put(number, start(number).frame());
        scheduler.threads[number] = Thread { state: State::Ready, frame, signals: 0 };
        Ok(ThreadId(number as u8))
    })
}

/// Adds a supervisor-mode thread, whose `entry` is called with `function` and `argument`.
fn add_supervisor(entry: usize, function: usize, argument: usize) -> Result<ThreadId, TooManyThreads> {
    add(|number| Start {
        entry,
        code: SUPERVISOR_CODE,
        data: SUPERVISOR_DATA,
        stack: STACKS[number].top() as u64,
        function,
        argument,
    })
}

/// Starts a thread in supervisor mode.
///
/// # Errors
/// There are already [`THREADS_MAX`].
pub fn spawn(function: fn(usize) -> i32, argument: usize) -> Result<ThreadId, TooManyThreads> {
    add_supervisor(run as *const () as usize, function as usize, argument)
}

/// Starts a thread in supervisor mode that runs a function of C.
///
/// # Errors
/// There are already [`THREADS_MAX`].
pub fn spawn_c(function: extern "C" fn(usize) -> i32, argument: usize) -> Result<ThreadId, TooManyThreads> {
    add_supervisor(run_c as *const () as usize, function as usize, argument)
}

/// Creates the scheduler, for a program that waits or yields before it starts a thread.
pub fn start_scheduler() {
    start();
}

impl ThreadId {
    /// Returns the number of the thread; that of `main` is 0.
    pub fn number(self) -> usize {
        self.0.into()
    }

    /// Returns the thread with a number, if it has been started and not joined.
    pub fn of_number(number: usize) -> Option<ThreadId> {
        let exists = |scheduler: &mut Scheduler| {
            number < THREADS_MAX && scheduler.threads[number].state != State::Free
        };
        SCHEDULER.with(exists).then_some(ThreadId(number as u8))
    }
}

/// Returns the thread that calls this.
pub fn current() -> ThreadId {
    SCHEDULER.with(|scheduler| ThreadId(scheduler.current as u8))
}

/// Returns `true` if another thread is ready to run.
pub fn has_others_ready() -> bool {
    SCHEDULER.with(|scheduler| scheduler.next() != scheduler.current && scheduler.next() != IDLE)
}

/// Lets other ready threads run first.
pub fn yield_now() {
    interrupt::switch();
}

/// Ends this thread with a value. The end of `main` ends the core instead.
///
/// # Panics
/// If called by `main`.
pub fn exit(value: i32) -> ! {
    SCHEDULER.with(|scheduler| {
        assert!(scheduler.current != MAIN, "main ends by returning");
        scheduler.end_current(End::Returned(value));
    });
    loop {
        interrupt::switch();
    }
}

/// Waits until this thread has a signal, and consumes it. Signals are counted.
pub fn wait() {
    loop {
        let has_signal = SCHEDULER.with(|scheduler| {
            let current = scheduler.current;
            let thread = &mut scheduler.threads[current];
            if thread.signals == 0 {
                thread.state = State::Waiting;
                return false;
            }
            thread.signals -= 1;
            true
        });
        if has_signal {
            return;
        }
        interrupt::switch();
    }
}

/// Signals a thread; may be called from an interrupt.
pub fn signal(thread: ThreadId) {
    SCHEDULER.with(|scheduler| {
        let thread = &mut scheduler.threads[usize::from(thread.0)];
        thread.signals += 1;
        if thread.state == State::Waiting {
            thread.state = State::Ready;
        }
    });
}

/// Waits until a thread has ended, and frees its stack for another.
///
/// # Panics
/// If the thread has been joined before.
pub fn join(thread: ThreadId) -> End {
    loop {
        let ended = SCHEDULER.with(|scheduler| {
            let current = scheduler.current;
            match scheduler.threads[usize::from(thread.0)].state {
                State::Ended(end) => {
                    scheduler.threads[usize::from(thread.0)].state = State::Free;
                    return Some(end);
                }
                State::Free => panic!("thread {} has been joined before", thread.0),
                _ => scheduler.threads[current].state = State::Joining,
            }
            None
        });
        if let Some(end) = ended {
            return end;
        }
        interrupt::switch();
    }
}
