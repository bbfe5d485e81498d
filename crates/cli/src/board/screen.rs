//! The terminal while something is watched: a page of its own, drawn over again, and the old one back at the
//! end.

use std::io;

use console::Term;

use super::Board;
use crate::out::OutError;

/// Enters a page of its own and hides the cursor.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
/// The other way round.
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
/// To the first line.
const HOME: &str = "\x1b[H";
/// What is left of an older drawing goes: to the end of a line, and below.
const LINE_END: &str = "\x1b[K\r\n";
const BELOW: &str = "\x1b[J";

/// A terminal's page; left when this is dropped.
pub(crate) struct Screen(Term);

impl Screen {
    pub(crate) fn enter() -> Self {
        let term = Term::buffered_stdout();
        term.write_str(ENTER).ok();
        Self(term)
    }

    /// Draws the board as large as the terminal is now.
    pub(crate) fn draw(&mut self, board: &Board) -> Result<(), OutError> {
        let (height, width) = self.0.size();
        // The last line stays free, or the page would move up.
        let size = (usize::from(height).saturating_sub(1), usize::from(width));
        let lines = board.drawn(Some(size));
        let lines: Vec<_> = lines.lines().collect();
        self.write(&format!("{HOME}{}{LINE_END}{BELOW}", lines.join(LINE_END)))
            .map_err(OutError::from)
    }

    fn write(&self, text: &str) -> io::Result<()> {
        self.0.write_str(text)?;
        self.0.flush()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Whoever watches is gone if this fails.
        self.write(LEAVE).ok();
    }
}
