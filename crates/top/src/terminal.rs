//! The terminal in raw mode on its alternate screen, restored however the process ends.
//!
//! Dropping it restores the terminal: also after an error, on a panic before its message is printed, and after the
//! signals TERM and HUP, which end the drawing loop. A terminal that has hung up ends the process. Invariant: the
//! terminal is restored after the last drop.

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::crossterm::{cursor, execute};
use ratatui::{Frame, Terminal};
use rustix::event::{PollFd, PollFlags, poll};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io::{self, Stdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The terminal of this process.
pub struct OwnTerminal {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    /// `true` once a signal has requested the end of the program.
    ended: Arc<AtomicBool>,
}

impl OwnTerminal {
    /// Takes the terminal.
    ///
    /// # Errors
    /// Standard output is not a terminal, or a system call failed; the terminal is then unchanged.
    pub fn take() -> io::Result<OwnTerminal> {
        let ended = Arc::new(AtomicBool::new(false));
        for signal in [SIGTERM, SIGHUP, SIGINT] {
            signal_hook::flag::register(signal, Arc::clone(&ended))?;
        }
        std::thread::Builder::new().name("hang-up".to_owned()).spawn(end_without_terminal)?;
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            before(panic);
        }));
        enable_raw_mode()?;
        let entered = execute!(io::stdout(), EnterAlternateScreen, cursor::Hide);
        let terminal = entered.and_then(|()| Terminal::new(CrosstermBackend::new(io::stdout())));
        match terminal {
            Ok(terminal) => Ok(OwnTerminal { terminal, ended }),
            Err(cause) => {
                restore();
                Err(cause)
            }
        }
    }

    /// Draws a picture.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn draw(&mut self, picture: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.terminal.draw(picture).map(drop)
    }

    /// Returns `true` once a signal has requested the end of the program.
    pub fn is_over(&self) -> bool {
        // Relaxed: the flag orders no other memory.
        self.ended.load(Ordering::Relaxed)
    }
}

impl Drop for OwnTerminal {
    fn drop(&mut self) {
        restore();
    }
}

/// Ends the process when the terminal has hung up; there is nothing to restore.
///
/// Runs in a thread of its own, because crossterm 0.28 reads a terminal that has hung up in an endless loop.
fn end_without_terminal() {
    let stdin = io::stdin();
    loop {
        let mut terminal = [PollFd::new(&stdin, PollFlags::empty())];
        let is_polled = poll(&mut terminal, None).is_ok();
        if is_polled && terminal[0].revents().intersects(PollFlags::HUP | PollFlags::ERR) {
            std::process::exit(0);
        }
    }
}

/// Restores the terminal; idempotent.
fn restore() {
    // A terminal that has hung up needs no restoring.
    let _ = execute!(io::stdout(), LeaveAlternateScreen, cursor::Show);
    let _ = disable_raw_mode();
}
