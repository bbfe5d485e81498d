//! Output of a run: its lines and progress. Runners write into a [`LogSink`]; a [`LogDrain`] reads from it. The worker
//! stores the output in the store's stream or a file.
//!
//! A run never waits for its drain: a full drain drops its oldest lines and counts them. Of progress the latest is
//! kept. Secrets of the job are masked before the output reaches the drain.

mod drain;
mod tail;
mod writer;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use meshwork_model::secret::Secrets;

use drain::Queue;
pub use drain::{Batch, LogDrain};
pub use writer::LogWriter;

/// The longest line in bytes; what is longer is cut, and ends with [`CUT`].
pub const MAX_LINE: usize = 8 * 1024;
/// End of a line that was cut.
pub const CUT: &str = " [line cut]";
/// The longest message of a progress report in bytes: it is a word beside a bar.
pub const MAX_MESSAGE: usize = 1024;

/// The stream of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl Stream {
    /// `stdout` or `stderr`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

/// One entry of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A line, without its end.
    Line {
        /// The stream.
        stream: Stream,
        /// The text, at most [`MAX_LINE`] bytes.
        text: Arc<str>,
    },
    /// So many lines were dropped here, since they were not taken in time.
    Dropped(u64),
}

/// Progress of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    fraction: f64,
    message: Option<String>,
}

impl Progress {
    /// A fraction from 0 to 1 (what is outside is brought to the nearest end, what is no number to 0), and
    /// what is being done, cut to [`MAX_MESSAGE`].
    #[must_use]
    pub fn new(fraction: f64, message: Option<&str>) -> Self {
        let fraction = if fraction.is_nan() {
            0.0
        } else {
            fraction.clamp(0.0, 1.0)
        };
        let short = |text: &str| text[..text.floor_char_boundary(MAX_MESSAGE)].to_owned();
        Self {
            fraction,
            message: message.filter(|text| !text.is_empty()).map(short),
        }
    }

    /// From 0 to 1.
    #[must_use]
    pub const fn fraction(&self) -> f64 {
        self.fraction
    }

    /// The text that describes the current step.
    #[must_use]
    pub fn message(&self) -> Option<&str> {
        self.message.as_deref()
    }
}

/// Takes in what a run says; cheap to clone, all clones are one. Without a drain it says it to nobody.
#[derive(Debug, Clone, Default)]
pub struct LogSink(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    secrets: Secrets,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    queues: Vec<Weak<Queue>>,
    closed: bool,
}

impl LogSink {
    /// A sink that lets none of `secrets` through.
    #[must_use]
    pub fn new(secrets: Secrets) -> Self {
        Self(Arc::new(Inner {
            secrets,
            state: Mutex::default(),
        }))
    }

    /// A drain for what comes in from now on. It holds at most `capacity` lines, and no more than
    /// 512 KiB of text.
    #[must_use]
    pub fn drain(&self, capacity: usize) -> LogDrain {
        let (drain, queue) = LogDrain::new(capacity);
        let mut state = self.state();
        if state.closed {
            queue.close();
        } else {
            state.queues.push(Arc::downgrade(&queue));
        }
        drain
    }

    /// A writer for one of the streams: for what comes in pieces that are no lines.
    #[must_use]
    pub fn writer(&self, stream: Stream) -> LogWriter {
        LogWriter::new(self.clone(), stream)
    }

    /// Says how far the run is.
    pub fn progress(&self, fraction: f64, message: Option<&str>) {
        let message = message.map(|text| self.0.secrets.mask(text));
        let progress = Progress::new(fraction, message.as_deref());
        self.each(|queue| queue.progress(progress.clone()));
    }

    /// Lets nothing more in: the run has ended. Each drain ends when it is empty.
    pub fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        for queue in state.queues.drain(..).filter_map(|queue| queue.upgrade()) {
            queue.close();
        }
    }

    fn send(&self, stream: Stream, text: &str) {
        let mut shared = None;
        self.each(|queue| {
            let text = Arc::clone(shared.get_or_insert_with(|| Arc::from(text)));
            queue.push(stream, text);
        });
    }

    fn each(&self, mut tell: impl FnMut(&Queue)) {
        // Drains that are gone are forgotten.
        self.state().queues.retain(|queue| {
            let queue = queue.upgrade();
            if let Some(queue) = &queue {
                tell(queue);
            }
            queue.is_some()
        });
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let state = self.state.get_mut();
        let state = state.unwrap_or_else(PoisonError::into_inner);
        for queue in state.queues.drain(..).filter_map(|queue| queue.upgrade()) {
            queue.close();
        }
    }
}

#[cfg(test)]
mod tests;
