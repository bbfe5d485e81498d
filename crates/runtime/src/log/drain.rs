//! Reader of a log: bounded, and emptied in bounded batches.

use meshwork_macros::boxed;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::{Entry, Progress, Stream};

/// Greatest size of the text in one buffer, in bytes: a worker may run a thousand jobs.
pub(super) const MAX_BYTES: usize = 512 * 1024;
/// Greatest number of lines in one batch, which bounds a call to the server.
const MAX_BATCH: usize = 200;
/// Greatest size of the text in one batch, in bytes, except for a single longer line.
const MAX_BATCH_BYTES: usize = 256 * 1024;

/// Output since the last batch.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Batch {
    /// Lines, oldest first.
    pub entries: Vec<Entry>,
    /// The latest progress, if reported since then.
    pub progress: Option<Progress>,
}

/// Reads the output of a run, in order.
#[derive(Debug)]
pub struct LogDrain(Arc<Queue>);

impl LogDrain {
    pub(super) fn new(capacity: usize) -> (Self, Arc<Queue>) {
        let queue = Arc::new(Queue {
            capacity: capacity.max(1),
            pending: Mutex::default(),
            changed: Notify::new(),
        });
        (Self(Arc::clone(&queue)), queue)
    }

    /// Waits until a batch is available.
    pub async fn filled(&self) {
        loop {
            let changed = self.0.changed.notified();
            if self.is_filled() {
                return;
            }
            changed.await;
        }
    }

    /// Returns true if a batch is available.
    pub fn is_filled(&self) -> bool {
        !self.0.pending().is_told()
    }

    /// Waits for the next batch. Returns `None` when the run has ended and all output was returned. Cancel-safe.
    #[boxed]
    pub async fn next(&mut self) -> Option<Batch> {
        loop {
            // A queue has one reader, and a notification before the wait is kept.
            let changed = self.0.changed.notified();
            {
                let mut pending = self.0.pending();
                if pending.is_told() {
                    if pending.closed {
                        return None;
                    }
                } else {
                    return Some(pending.batch());
                }
            }
            changed.await;
        }
    }
}

/// Buffer between a sink and a drain.
#[derive(Debug)]
pub(super) struct Queue {
    capacity: usize,
    pending: Mutex<Pending>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Pending {
    /// Number of lines dropped before the first one.
    dropped: u64,
    lines: VecDeque<(Stream, Arc<str>)>,
    bytes: usize,
    progress: Option<Progress>,
    closed: bool,
}

impl Queue {
    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Pending)) {
        change(&mut self.pending());
        self.changed.notify_one();
    }

    pub(super) fn push(&self, stream: Stream, text: Arc<str>) {
        self.change(|pending| {
            pending.bytes += text.len();
            pending.lines.push_back((stream, text));
            while pending.lines.len() > self.capacity || pending.bytes > MAX_BYTES {
                let Some((_, oldest)) = pending.lines.pop_front() else {
                    return;
                };
                pending.bytes -= oldest.len();
                pending.dropped += 1;
            }
        });
    }

    pub(super) fn progress(&self, progress: Progress) {
        self.change(|pending| pending.progress = Some(progress));
    }

    pub(super) fn close(&self) {
        self.change(|pending| pending.closed = true);
    }
}

impl Pending {
    fn is_told(&self) -> bool {
        self.dropped == 0 && self.lines.is_empty() && self.progress.is_none()
    }

    fn batch(&mut self) -> Batch {
        let mut batch = Batch {
            entries: Vec::new(),
            progress: self.progress.take(),
        };
        let dropped = std::mem::take(&mut self.dropped);
        if dropped > 0 {
            batch.entries.push(Entry::Dropped(dropped));
        }
        let mut bytes = 0;
        while batch.entries.len() < MAX_BATCH && bytes < MAX_BATCH_BYTES {
            let Some((stream, text)) = self.lines.pop_front() else {
                break;
            };
            self.bytes -= text.len();
            bytes += text.len();
            batch.entries.push(Entry::Line { stream, text });
        }
        batch
    }
}
