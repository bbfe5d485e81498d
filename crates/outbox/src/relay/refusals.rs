//! Log lines about rows that the store refused: one for many, since a fault of a program makes thousands of them.

use std::time::Duration;

use tokio::time::Instant;
use tracing::warn;

use crate::database::Refused;

/// Shortest pause between two lines.
const PAUSE: Duration = Duration::from_secs(60);

/// Rows that the store refused since the last line.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    rows: u64,
    set_aside: u64,
    /// Id and error of the first one.
    first: Option<(String, String)>,
    last_line: Option<Instant>,
}

impl Refusals {
    pub(crate) fn add(&mut self, refused: Vec<Refused>) {
        self.rows += refused.len() as u64;
        self.set_aside += refused.iter().filter(|row| row.pause_ms.is_none()).count() as u64;
        if self.first.is_none() {
            let first = refused.into_iter().next();
            self.first = first.map(|row| (row.id, row.error));
        }
    }

    /// Writes a line, unless the last one is younger than a minute.
    pub(crate) fn tell(&mut self) {
        if self.last_line.is_none_or(|at| at.elapsed() >= PAUSE) {
            self.tell_now();
        }
    }

    /// Writes a line if there were rows since the last one.
    pub(crate) fn tell_now(&mut self) {
        let Some((job, error)) = self.first.take() else {
            return;
        };
        let (rows, set_aside) = (self.rows, self.set_aside);
        warn!(
            rows,
            set_aside,
            job,
            error,
            "outbox rows refused, with the first one's error; `outbox list` shows all"
        );
        *self = Self {
            last_line: Some(Instant::now()),
            ..Self::default()
        };
    }
}
