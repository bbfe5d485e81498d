//! Output of a run: its lines and progress. Runtimes write into a [`LogSink`]; a [`LogDrain`] reads from it. The worker
//! stores the output in the store's stream or a file.
//!
//! A run never waits for its reader: a full buffer drops its oldest lines and counts them. Only the latest progress is
//! kept. Secrets of the job are masked first.

mod drain;
mod tail;
mod writer;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use meshwork_model::secret::Secrets;

use drain::Queue;
pub use drain::{Batch, LogDrain};
pub use writer::LogWriter;

/// Greatest length of a line, in bytes. A longer line is cut and ends with [`CUT`].
pub const MAX_LINE: usize = 8 * 1024;
/// End of a line that was cut.
pub const CUT: &str = " [line cut]";
/// Greatest length of a progress message, in bytes.
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
    /// Returns `stdout` or `stderr`.
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
    /// Number of lines that were dropped here, since the reader was too slow.
    Dropped(u64),
}

/// Progress of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    fraction: f64,
    message: Option<String>,
}

impl Progress {
    /// Creates a report of a fraction from 0 to 1 and a message, which is cut to [`MAX_MESSAGE`]. A fraction outside of
    /// the range is limited to it; NaN becomes 0.
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

    /// Returns the fraction, from 0 to 1.
    #[must_use]
    pub const fn fraction(&self) -> f64 {
        self.fraction
    }

    /// Returns the message.
    #[must_use]
    pub fn message(&self) -> Option<&str> {
        self.message.as_deref()
    }
}

/// Receives the output of a run; cheap to clone, clones share it. Without a reader it drops the output.
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
    /// Creates a sink that masks `secrets`.
    #[must_use]
    pub fn new(secrets: Secrets) -> Self {
        Self(Arc::new(Inner {
            secrets,
            state: Mutex::default(),
        }))
    }

    /// Returns a reader of later output. Its buffer has at most `capacity` lines and 512 KiB of text.
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

    /// Returns a writer for one of the streams, which takes pieces of any size.
    #[must_use]
    pub fn writer(&self, stream: Stream) -> LogWriter {
        LogWriter::new(self.clone(), stream)
    }

    /// Reports progress.
    pub fn progress(&self, fraction: f64, message: Option<&str>) {
        let message = message.map(|text| self.0.secrets.mask(text));
        let progress = Progress::new(fraction, message.as_deref());
        self.each(|queue| queue.progress(progress.clone()));
    }

    /// Ends the log of a run. Each reader ends when it is empty.
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
        // Buffers without a reader are removed.
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
