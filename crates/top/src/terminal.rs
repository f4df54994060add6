//! The terminal while it is ours: raw, on its other screen, and given back however the process ends.
//!
//! It is given back when this is dropped, so by an error too, by a panic before its message is printed, and after the
//! signals TERM and HUP, which end the loop that draws. A terminal that is gone ends the process. Invariant: who drops
//! it last has restored the terminal.

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
    /// `true` once a signal has asked the program to end.
    ended: Arc<AtomicBool>,
}

impl OwnTerminal {
    /// Takes the terminal.
    ///
    /// # Errors
    /// It is none, or the system refuses something; then it is as it was.
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

    /// Returns `true` once a signal has asked the program to end.
    pub fn is_over(&self) -> bool {
        // Relaxed: a flag that stands for itself.
        self.ended.load(Ordering::Relaxed)
    }
}

impl Drop for OwnTerminal {
    fn drop(&mut self) {
        restore();
    }
}

/// Ends the process when the terminal is gone, of which nothing is left to restore.
///
/// In a thread of its own, because crossterm 0.28 reads a terminal that has hung up without end.
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

/// Gives the terminal back; more than once does no harm.
fn restore() {
    // A terminal that is gone needs nothing.
    let _ = execute!(io::stdout(), LeaveAlternateScreen, cursor::Show);
    let _ = disable_raw_mode();
}
