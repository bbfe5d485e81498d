//! Progress of many jobs: a bar on a terminal, else a line now and then.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use tokio::time::Instant;

use super::{can_draw, note};

/// Shortest time between two lines.
const LINE_EVERY: Duration = Duration::from_secs(1);
/// Greatest number of lines, so that logs stay short.
const LINES: usize = 10;
/// Interval of redraws of the elapsed time.
const TICK: Duration = Duration::from_millis(200);
/// Without colour, which would add no information.
const BAR: &str = "{elapsed_precise} [{bar:40}] {pos}/{len}";

/// Format for an unknown total.
const SCAN: &str = "{elapsed_precise} {pos} jobs scanned";
/// Jobs scanned between two lines.
const SCAN_LINE: usize = 10_000;

/// Progress display; removed on drop.
pub(crate) struct Progress {
    all: usize,
    bar: Option<ProgressBar>,
    /// Time and content of the last line.
    said: (Instant, usize),
}

impl Progress {
    pub(crate) fn new(all: usize) -> Self {
        let bar = can_draw(&std::io::stderr()).then(|| bar_of(all));
        Self {
            all,
            bar,
            said: (Instant::now(), 0),
        }
    }

    /// Starts a count of scanned jobs, with an unknown total.
    pub(crate) fn scan() -> Self {
        let terminal = can_draw(&std::io::stderr());
        Self {
            all: 0,
            bar: terminal.then(spinner),
            said: (Instant::now(), 0),
        }
    }

    /// Shows the number of ended jobs.
    pub(crate) fn show(&mut self, ended: usize) {
        if let Some(bar) = &self.bar {
            bar.set_position(ended as u64);
            return;
        }
        let (when, before) = self.said;
        if self.all == 0 {
            if ended >= before + SCAN_LINE && when.elapsed() >= LINE_EVERY {
                note(format_args!("{ended} jobs scanned"));
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

    /// Prints something while the bar is hidden.
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
