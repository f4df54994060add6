//! Effects of a task on the process of its place: a fork, or an exit.
//!
//! A child that is forked within a task has the memory of the place, and would continue as that place: it would take
//! the place's messages and send others in its name. So it has no place from its first instruction on: Isles refuses
//! its calls, and if the task goes on to its next `await` or to its end, the child is ended with a line that says why.
//! A child that calls `exec` or `_exit` before is left alone.
//!
//! If all places share one process, a task that exits would take all of them away. With one process for each, that is
//! the death of one place, and an error. So it is an error here, too: a line on standard error, and the exit code of a
//! failure.

use crate::local::Local;
use isles_protocol::PlaceId;
use isles_transport::notice;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

/// Exit code of a program one of whose places has exited: that of a `main` that returns an error.
const EXIT_FAILED: libc::c_int = 1;

/// True in a process that was forked from a place within a task.
static IS_FORKED: AtomicBool = AtomicBool::new(false);

/// Detects forks from now on.
pub(crate) fn watch_forks() {
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| {
        // NEED: a child that is forked in the midst of a task must know that it is none, before it does anything.
        // SOUND: the function touches a thread-local and an atomic, which is allowed after a fork.
        unsafe { libc::pthread_atfork(None, None, Some(note_child)) };
    });
}

/// Reports an error if a place other than the first exits this process, which all places share.
pub fn watch_exits() {
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| {
        // NEED: `exit` is to say which place has called it.
        // SOUND: a plain function of the program is registered.
        unsafe { libc::atexit(note_exit) };
    });
}

extern "C" fn note_child() {
    if Local::leave_thread().is_some() {
        // Relaxed is enough: a forked process has one thread.
        IS_FORKED.store(true, Ordering::Relaxed);
    }
}

extern "C" fn note_exit() {
    let place = Local::leave_thread().filter(|place| *place != PlaceId(0));
    if let Some(place) = place {
        notice(format_args!("error: {place} exited, and with it the process of all places"));
        // NEED: the exit code is settled when this is called.
        // SOUND: the standard library has written out its buffers before; nothing else is pending at an exit.
        unsafe { libc::_exit(EXIT_FAILED) };
    }
}

/// Ends the process if it was forked within a task of `here`.
#[inline(always)]
pub(crate) fn check_forked(here: PlaceId) {
    // Relaxed is enough: as above.
    if IS_FORKED.load(Ordering::Relaxed) {
        end_forked(here);
    }
}

#[cold]
fn end_forked(here: PlaceId) {
    notice(format_args!(
        "isles: {here}: ending a process that was forked in a task, because it is not a place; it must \
         call exec or _exit before the next await"
    ));
    // NEED: destructors and exit handlers of the place must not run in its copy.
    // SOUND: it ends the process and touches nothing.
    unsafe { libc::_exit(EXIT_FAILED) };
}

/// Returns the reason why a thread has no place.
#[cold]
pub(crate) fn why_no_place() -> &'static str {
    // Relaxed is enough: as above.
    if IS_FORKED.load(Ordering::Relaxed) {
        return "a process that was forked in a task is not a place: it can only call exec or _exit";
    }
    "outside a place: call this from #[isles::main], or from a task"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local::Clock;
    use crate::run::MainTask;
    use isles_transport::loopback::{Plan, World};

    /// One fork at a time: a child that is forked while another thread sets the panic hook could never panic.
    static FORKING: std::sync::Mutex<()> = std::sync::Mutex::new(());

    /// Exit code of a child that was not ended.
    const EXIT_WENT_ON: libc::c_int = 77;

    /// Runs a task that forks, and calls `asks` in the child; returns how the child ended.
    fn exit_of_child(asks: fn()) -> libc::c_int {
        let _one = FORKING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let local =
            Local::new(Box::new(World::new(2, Plan::calm(0)).endpoint(PlaceId(0))), Clock::host(), |_, _| {
                Box::new(())
            });
        let child = std::rc::Rc::new(std::cell::Cell::new(0));
        let noted = std::rc::Rc::clone(&child);
        let root = local.enter(|| {
            MainTask::start(&local, async move {
                // NEED: the call is what is tested.
                // SOUND: the child uses nothing that another thread may have locked.
                noted.set(unsafe { libc::fork() });
                if noted.get() == 0 {
                    asks();
                }
            })
        });
        local.enter(|| local.step());
        if child.get() == 0 {
            // NEED: the child must not go on as a run of all tests.
            // SOUND: it ends the process.
            unsafe { libc::_exit(EXIT_WENT_ON) };
        }
        assert!(root.is_over(), "the parent goes on as the place that it is");
        let mut status = 0;
        // NEED: waits for a child that the standard library did not start.
        // SOUND: the status lives as long as the call.
        assert_eq!(unsafe { libc::waitpid(child.get(), &raw mut status, 0) }, child.get());
        assert!(libc::WIFEXITED(status), "the child ends by itself");
        libc::WEXITSTATUS(status)
    }

    #[test]
    fn a_child_that_goes_on_as_its_place_is_ended() {
        assert_eq!(exit_of_child(|| ()), EXIT_FAILED);
    }

    #[test]
    fn a_child_that_asks_something_of_its_place_is_told_that_it_has_none() {
        assert_eq!(exit_of_child(|| crate::spawn(async {})), EXIT_FAILED);
        let has_none = || {
            let refused = Local::try_with(Local::here).is_none() && why_no_place().contains("is not a place");
            // NEED: the child says what it found by its exit code.
            // SOUND: it ends the process.
            unsafe { libc::_exit(if refused { 3 } else { 4 }) };
        };
        assert_eq!(exit_of_child(has_none), 3);
    }
}
