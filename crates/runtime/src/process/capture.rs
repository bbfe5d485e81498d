//! Captures a script's output while it runs: into its log, and up to the limit as its possible result.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use meshwork_model::job::limits::MAX_OUTPUT;
use meshwork_model::sandbox::Limit;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::super::log::LogWriter;
use super::super::sandbox::LimitExceeded;

/// Size of one read: the capacity of a pipe.
const CHUNK: usize = 64 * 1024;

/// Time after which the log gets a line without its end: a question to nobody, or progress over carriage returns.
const SHOWN_AFTER: Duration = Duration::from_secs(1);

/// Captured output.
#[derive(Debug)]
pub(in super::super) struct Printed {
    /// End of the output.
    pub(in super::super) log: Vec<u8>,
    /// Whole output; `None` if it exceeds the limit of a result.
    pub(in super::super) whole: Option<Vec<u8>>,
    /// Full size, in bytes.
    pub(in super::super) size: u64,
}

#[derive(Debug)]
struct State {
    log: LogWriter,
    whole: Option<Vec<u8>>,
    size: u64,
}

/// Limit of the output of a run, on both streams together.
#[derive(Debug, Default)]
pub(super) struct OutputLimit {
    most: Option<u64>,
    size: AtomicU64,
    exceeded: CancellationToken,
}

impl OutputLimit {
    pub(super) fn new(most: Option<u64>) -> Arc<Self> {
        Arc::new(Self {
            most,
            ..Self::default()
        })
    }

    fn add(&self, bytes: usize) {
        let bytes = bytes as u64;
        let size = self.size.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if self.most.is_some_and(|most| size > most) {
            self.exceeded.cancel();
        }
    }

    /// Waits until the output exceeds the limit, and returns it.
    pub(super) async fn exceeded(&self) -> LimitExceeded {
        self.exceeded.cancelled().await;
        LimitExceeded {
            limit: Limit::Output,
            value: self.most.unwrap_or_default(),
        }
    }
}

/// A stream that a task reads until its end.
#[derive(Debug)]
pub(super) struct Capture {
    state: Arc<Mutex<State>>,
    task: AbortOnDropHandle<()>,
}

impl Capture {
    /// Reads a stream into the log.
    pub(super) fn log_of(
        stream: impl AsyncRead + Unpin + Send + 'static,
        log: LogWriter,
        limit: &Arc<OutputLimit>,
    ) -> Self {
        Self::start(stream, log, None, limit)
    }

    /// Reads a stream into the log, and keeps all of it up to the limit of a result.
    pub(super) fn whole_of(
        stream: impl AsyncRead + Unpin + Send + 'static,
        log: LogWriter,
        limit: &Arc<OutputLimit>,
    ) -> Self {
        Self::start(stream, log, Some(Vec::new()), limit)
    }

    fn start(
        mut stream: impl AsyncRead + Unpin + Send + 'static,
        log: LogWriter,
        whole: Option<Vec<u8>>,
        limit: &Arc<OutputLimit>,
    ) -> Self {
        let limit = Arc::clone(limit);
        let state = Arc::new(Mutex::new(State {
            log,
            whole,
            size: 0,
        }));
        let into = Arc::clone(&state);
        let task: JoinHandle<()> = tokio::spawn(async move {
            let mut chunk = vec![0; CHUNK];
            // The time at which the log gets a line that has not ended.
            let mut shows = None;
            loop {
                let late = async {
                    match shows {
                        Some(time) => tokio::time::sleep_until(time).await,
                        None => std::future::pending().await,
                    }
                };
                let read = tokio::select! {
                    read = stream.read(&mut chunk) => read,
                    () = late => {
                        locked(&into).log.show();
                        shows = None;
                        continue;
                    }
                };
                // A stream that cannot be read has ended.
                let Ok(length @ 1..) = read else {
                    return;
                };
                let mut state = locked(&into);
                state.take_in(&chunk[..length]);
                limit.add(length);
                shows = match state.log.is_behind() {
                    true => shows.or_else(|| Some(Instant::now() + SHOWN_AFTER)),
                    false => None,
                };
            }
        });
        Self {
            state,
            task: AbortOnDropHandle::new(task),
        }
    }

    /// Waits for the end of the stream.
    pub(super) async fn ended(&mut self) {
        // The task does not panic and is not aborted before.
        let _ = (&mut self.task).await;
    }

    /// Ends the capture and returns the output so far.
    pub(super) fn finish(self) -> Printed {
        self.task.abort();
        let mut state = locked(&self.state);
        Printed {
            log: state.log.finish(),
            whole: state.whole.take(),
            size: state.size,
        }
    }
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    fn take_in(&mut self, bytes: &[u8]) {
        self.log.push(bytes);
        self.size += bytes.len() as u64;
        if self.size > MAX_OUTPUT as u64 {
            self.whole = None;
        }
        if let Some(whole) = &mut self.whole {
            whole.extend_from_slice(bytes);
        }
    }
}
