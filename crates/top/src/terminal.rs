//! The terminal while it is ours: raw, on its other screen, and given back however the process ends.
//!
//! It is given back when this is dropped, so by an error too, by a panic before its message is printed, and after the
//! signals TERM and HUP, which end the loop that draws. Invariant: who drops it last has restored the terminal.

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::crossterm::{cursor, execute};
use ratatui::{Frame, Terminal};
use rustix::termios::tcgetattr;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io::{self, Stdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The terminal of this process.
pub struct OwnTerminal {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    /// Whether a signal has said that it is enough.
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

    /// Whether a signal has said that it is enough, or the terminal is gone: it says so only when it is asked or
    /// written to.
    pub fn is_over(&self) -> bool {
        // Relaxed: a flag that stands for itself.
        self.ended.load(Ordering::Relaxed) || tcgetattr(io::stdin()).is_err()
    }
}

impl Drop for OwnTerminal {
    fn drop(&mut self) {
        restore();
    }
}

/// Gives the terminal back; more than once does no harm.
fn restore() {
    // A terminal that is gone needs nothing.
    let _ = execute!(io::stdout(), LeaveAlternateScreen, cursor::Show);
    let _ = disable_raw_mode();
}
