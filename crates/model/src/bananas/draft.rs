//! A record whose times are still to be written, by the server that takes it: text with gaps.

use super::time::micros;

/// A part of a draft.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Text as it stands.
    Text(String),
    /// The time at which the record is written, so many milliseconds later.
    Now {
        /// How much later.
        plus_ms: u64,
    },
}

/// A record with gaps for times.
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

    /// The record as it is when it is written at `ms` since 1970.
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
    /// A record that has its times already.
    fn from(text: String) -> Self {
        Self(vec![Piece::Text(text)])
    }
}
