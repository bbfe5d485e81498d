//! Records with times that the server fills in: text with placeholders.

use super::time::micros;

/// A part of a draft.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Literal text.
    Text(String),
    /// The time of the server when it writes the record, plus an offset.
    Now {
        /// The offset, in milliseconds.
        plus_ms: u64,
    },
}

/// A record with placeholders for times.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Draft(Vec<Piece>);

impl Draft {
    /// Adds text.
    pub(super) fn text(&mut self, text: &str) {
        match self.0.last_mut() {
            Some(Piece::Text(before)) => before.push_str(text),
            _ => self.0.push(Piece::Text(text.to_owned())),
        }
    }

    /// Adds a part.
    pub(super) fn piece(&mut self, piece: &Piece) {
        match piece {
            Piece::Text(text) => self.text(text),
            now @ Piece::Now { .. } => self.0.push(now.clone()),
        }
    }

    /// The parts, in order.
    #[must_use]
    pub fn pieces(&self) -> &[Piece] {
        &self.0
    }

    /// Returns the record for a server time of `ms` since 1970.
    #[must_use]
    pub fn at(&self, ms: u64) -> String {
        let text = |piece: &Piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Now { plus_ms } => micros(ms + plus_ms),
        };
        self.0.iter().map(text).collect()
    }
}

impl From<String> for Draft {
    /// Makes a draft of a record that has all its times.
    fn from(text: String) -> Self {
        Self(vec![Piece::Text(text)])
    }
}
