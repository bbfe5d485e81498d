//! How far many jobs are: a bar on a terminal, a line now and then elsewhere.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use tokio::time::Instant;

use super::note;

/// Between two lines at least.
const LINE_EVERY: Duration = Duration::from_secs(1);
/// Lines in all at most, so that a log is not full of them.
const LINES: usize = 10;
/// Between two redraws of the time that has passed.
const TICK: Duration = Duration::from_millis(200);
/// In one colour: what it says does not depend on any.
const BAR: &str = "{elapsed_precise} [{bar:40}] {pos}/{len}";

/// The same, where nobody knows how much there is.
const SCAN: &str = "{elapsed_precise} looked at {pos} jobs";
/// Jobs looked at between two lines at least.
const SCAN_LINE: usize = 10_000;

/// Shows how far it is, until it is dropped.
pub(crate) struct Progress {
    all: usize,
    bar: Option<ProgressBar>,
    /// When the last line was written, and what it said.
    said: (Instant, usize),
}

impl Progress {
    pub(crate) fn new(all: usize) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| bar_of(all));
        Self {
            all,
            bar,
            said: (Instant::now(), 0),
        }
    }

    /// A count of what was looked at, where nobody knows how much there is.
    pub(crate) fn scan() -> Self {
        let terminal = std::io::stderr().is_terminal();
        Self {
            all: 0,
            bar: terminal.then(spinner),
            said: (Instant::now(), 0),
        }
    }

    /// So many have ended.
    pub(crate) fn show(&mut self, ended: usize) {
        if let Some(bar) = &self.bar {
            bar.set_position(ended as u64);
            return;
        }
        let (when, before) = self.said;
        if self.all == 0 {
            if ended >= before + SCAN_LINE && when.elapsed() >= LINE_EVERY {
                note(format_args!("looked at {ended} jobs"));
                self.said = (Instant::now(), ended);
            }
            return;
        }
        let step = ended.saturating_sub(before) * LINES >= self.all;
        if step && ended < self.all && when.elapsed() >= LINE_EVERY {
            note(format_args!("{ended} of {}", self.all));
            self.said = (Instant::now(), ended);
        }
    }

    /// Prints something while the bar is out of the way.
    pub(crate) fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        match &self.bar {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }
}

fn spinner() -> ProgressBar {
    let style = ProgressStyle::with_template(SCAN).expect("the template is valid");
    ProgressBar::new_spinner().with_style(style)
}

fn bar_of(all: usize) -> ProgressBar {
    let style = ProgressStyle::with_template(BAR).expect("the template is valid");
    let bar = ProgressBar::new(all as u64).with_style(style.progress_chars("=> "));
    bar.enable_steady_tick(TICK);
    bar
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
