//! Alternate screen of a terminal. It is redrawn in place, and the original screen is restored at the end and while the
//! command is stopped by Ctrl-Z.

use std::io;

use console::Term;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::out::dashboard::Board;
use crate::out::{Keys, OutError};

/// Enters the alternate screen and hides the cursor.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
/// Restores the original screen and the cursor.
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
/// Moves the cursor to the first line.
const HOME: &str = "\x1b[H";
/// Clears the rest of the line, and the lines below the drawing.
const LINE_END: &str = "\x1b[K\r\n";
const BELOW: &str = "\x1b[J";

/// Alternate screen of a terminal; restored on drop.
pub(crate) struct Screen {
    term: Term,
    resized: Signal,
    keys: Keys,
}

impl Screen {
    pub(crate) fn enter() -> io::Result<Self> {
        let screen = Self {
            term: Term::buffered_stdout(),
            resized: signal(SignalKind::window_change())?,
            keys: Keys::listen()?,
        };
        screen.term.write_str(ENTER)?;
        Ok(screen)
    }

    /// Returns when the terminal has another size, or the command goes on after Ctrl-Z: the dashboard is to be drawn.
    pub(crate) async fn outdated(&mut self) -> io::Result<()> {
        tokio::select! {
            _ = self.resized.recv() => Ok(()),
            () = self.keys.suspended() => {
                self.write(LEAVE)?;
                self.keys.suspend()?;
                self.write(ENTER)
            }
        }
    }

    /// Draws the dashboard at the current size of the terminal.
    pub(crate) fn draw(&mut self, board: &Board) -> Result<(), OutError> {
        let (height, width) = self.term.size();
        // The last line stays empty, since a full screen scrolls.
        let size = (usize::from(height).saturating_sub(1), usize::from(width));
        let lines = board.drawn(Some(size));
        let lines: Vec<_> = lines.lines().collect();
        self.write(&format!("{HOME}{}{LINE_END}{BELOW}", lines.join(LINE_END)))
            .map_err(OutError::from)
    }

    fn write(&self, text: &str) -> io::Result<()> {
        self.term.write_str(text)?;
        self.term.flush()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A failure means that the terminal is gone.
        self.write(LEAVE).ok();
    }
}
