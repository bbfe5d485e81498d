//! SIGINT and SIGTERM: the first one starts an orderly end, the second one ends the process at once. If the process holds
//! jobs, it releases them before. A dedicated thread receives the signals, even if a script or a full pipe blocks all others.

use std::fmt::Display;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use futures_util::future::select_all;
use meshwork::{Client, Monitor, WorkerHandle};
use meshwork_model::job::Job;
use meshwork_model::name::JobId;
use meshwork_model::number::counted;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::{note, restore};

const SIGINT: u8 = 2;
const SIGTERM: u8 = 15;
/// Longest release of jobs after a second signal: the default lease, after which others take them up.
const RELEASE: Duration = Duration::from_secs(10);
/// The same for workers without jobs, for the answer to a claim under way.
const CLAIM: Duration = Duration::from_secs(1);

/// Notifies of an interruption. All clones notify of the same one.
#[derive(Debug, Clone)]
pub(crate) struct Interrupt {
    token: CancellationToken,
    number: Arc<AtomicU8>,
    /// Cancelled by the second signal.
    urgent: CancellationToken,
    workers: Arc<Workers>,
}

/// Workers of this process.
#[derive(Debug, Default)]
struct Workers {
    monitors: Mutex<Vec<Monitor>>,
    /// True if one had jobs when it began to stop.
    had_jobs: AtomicBool,
}

impl Workers {
    fn monitors(&self) -> MutexGuard<'_, Vec<Monitor>> {
        self.monitors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the longest time that a second signal leaves for the release of jobs; none without a worker.
    fn release_time(&self) -> Option<Duration> {
        let monitors = self.monitors();
        let holds = self.had_jobs.load(Ordering::SeqCst) || monitors.iter().any(|it| it.busy() > 0);
        (!monitors.is_empty()).then_some(if holds { RELEASE } else { CLAIM })
    }
}

/// The command was interrupted.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("interrupted")]
pub(crate) struct Interrupted(u8);

impl Interrupted {
    /// Returns the exit code of the signal, as in shells.
    pub(crate) fn exit(self) -> Exit {
        Exit::signal(self.0)
    }
}

impl From<Interrupted> for CommandError {
    fn from(interrupted: Interrupted) -> Self {
        Self::new(interrupted.exit(), interrupted)
    }
}

impl Interrupt {
    /// Starts to receive signals. The first one prints that a second one ends the command at once.
    pub(crate) fn listen() -> Result<Self, CommandError> {
        Self::start(|| note("stopping; repeat the signal to stop at once"))
    }

    /// Same as [`Self::listen`], without that message, for commands that end at once anyway.
    pub(crate) fn listen_quietly() -> Result<Self, CommandError> {
        Self::start(|| {})
    }

    fn start(announce: fn()) -> Result<Self, CommandError> {
        let interrupt = Self {
            token: CancellationToken::new(),
            number: Arc::default(),
            urgent: CancellationToken::new(),
            workers: Arc::default(),
        };
        let (ready, is_ready) = mpsc::sync_channel(1);
        let handler = interrupt.clone();
        let listening = move || match Signals::listen() {
            Ok(signals) => {
                ready.send(Ok(())).ok();
                handler.handle(signals, announce);
            }
            Err(error) => {
                ready.send(Err(error)).ok();
            }
        };
        let started = thread::Builder::new()
            .name("signals".to_owned())
            .spawn(listening);
        let gone = |_| Err(io::Error::other("its thread is gone"));
        let listens = started.and_then(|_| is_ready.recv().unwrap_or_else(gone));
        listens.map_err(|source| CommandError::system("signal handler", &source))?;
        Ok(interrupt)
    }

    /// Handles the two signals, on its own thread; the second one ends the process.
    fn handle(self, mut signals: Signals, announce: fn()) {
        self.number.store(signals.next(), Ordering::SeqCst);
        let token = self.token.clone();
        // On its own thread, since a full stderr would block this one.
        let announcing = thread::Builder::new().spawn(move || {
            announce();
            token.cancel();
        });
        if announcing.is_err() {
            self.token.cancel();
        }
        self.number.store(signals.next(), Ordering::SeqCst);
        self.urgent.cancel();
        if let Some(time) = self.workers.release_time() {
            // The command ends before, when its workers have released their jobs.
            let (_sender, never) = mpsc::channel::<()>();
            never.recv_timeout(time).ok();
        }
        restore();
        std::process::exit(self.interrupted().exit().code().into());
    }

    fn interrupted(&self) -> Interrupted {
        Interrupted(self.number.load(Ordering::SeqCst))
    }

    /// Notes a worker of this process: a second signal makes [`Self::stop`] release its jobs, and ends the process after that.
    pub(crate) fn holds(&self, worker: &WorkerHandle) {
        self.workers.monitors().push(worker.monitor());
    }

    /// Stops a worker of this process; a second signal makes it release its jobs at once. Returns the number of released
    /// jobs.
    pub(crate) async fn stop(&self, worker: WorkerHandle) -> usize {
        if worker.monitor().busy() > 0 {
            self.workers.had_jobs.store(true, Ordering::SeqCst);
        }
        let urgent = self.urgent.clone();
        worker.stop_or_abort(urgent.cancelled_owned()).await
    }

    /// Returns true after a second signal.
    pub(crate) fn is_urgent(&self) -> bool {
        self.urgent.is_cancelled()
    }

    /// Returns the exit code of a worker that has stopped: success, unless a second signal cut its jobs off.
    pub(crate) fn exit(&self) -> Exit {
        match self.is_urgent() {
            true => self.interrupted().exit(),
            false => Exit::DONE,
        }
    }

    /// Returns when the command has to end.
    pub(crate) async fn heard(&self) -> Interrupted {
        self.token.cancelled().await;
        self.interrupted()
    }

    /// Returns an error if the command has to end.
    pub(crate) fn check(&self) -> Result<(), Interrupted> {
        if self.token.is_cancelled() {
            return Err(self.interrupted());
        }
        Ok(())
    }

    /// Returns the result of `call`, or the interruption if that comes first.
    pub(crate) async fn or<T, E>(
        &self,
        call: impl Future<Output = Result<T, E>>,
    ) -> Result<T, CommandError>
    where
        CommandError: From<E>,
    {
        tokio::select! {
            biased;
            interrupted = self.heard() => Err(interrupted.into()),
            result = call => Ok(result?),
        }
    }

    /// Waits for what goes on without this command. An interruption ends the wait, and prints how to go on.
    ///
    /// # Errors
    /// The wait fails, or is interrupted.
    pub(crate) async fn or_detach<T, E>(
        &self,
        wait: impl Future<Output = Result<T, E>>,
        how: impl Display,
    ) -> Result<T, CommandError>
    where
        CommandError: From<E>,
    {
        let ended = self.or(wait).await;
        if ended.is_err() && self.check().is_err() {
            note(how);
        }
        ended
    }
}

/// Prints the number of jobs that a command has released because it ends.
pub(crate) fn tell_released(jobs: usize) {
    if jobs > 0 {
        note(format_args!("{} released", counted(jobs, "job")));
    }
}

/// Waits for a job as [`Interrupt::or_detach`].
///
/// # Errors
/// The wait fails, or is interrupted.
pub(crate) async fn wait_for_job(
    client: &Client,
    id: &JobId,
    patience: Duration,
) -> Result<Job, CommandError> {
    let how = format!("job {id} goes on: `meshwork job wait {id}` waits for it");
    let interrupt = Interrupt::listen_quietly()?;
    interrupt.or_detach(client.wait(id, patience), how).await
}

/// SIGTSTP, which makes workers quiet; received after [`Quiet::listen`].
#[derive(Debug)]
pub(crate) struct Quiet(Signal);

impl Quiet {
    pub(crate) fn listen() -> Result<Self, CommandError> {
        let kind = SignalKind::from_raw(rustix::process::Signal::TSTP.as_raw());
        let listening = signal(kind);
        let listening = listening.map_err(|e| CommandError::system("signal handler", &e))?;
        Ok(Self(listening))
    }

    /// Returns when a worker has to stop: by a signal, or by a request. SIGTSTP makes all workers quiet.
    pub(crate) async fn until_stop(&mut self, interrupt: &Interrupt, workers: &[&WorkerHandle]) {
        // A request to stop one worker of the process stops all of them.
        let requested = select_all(workers.iter().map(|it| it.stop_requested()));
        tokio::pin!(requested);
        loop {
            tokio::select! {
                _ = interrupt.heard() => return,
                _ = &mut requested => {
                    note("stopping: requested by `worker stop`");
                    return;
                }
                Some(()) = self.0.recv() => {
                    note("quiet: takes no more jobs");
                    workers.iter().for_each(|worker| worker.quiet());
                }
            }
        }
    }
}

/// Receives both signals, on a runtime of its own.
struct Signals {
    runtime: Runtime,
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn listen() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_io().build()?;
        let entered = runtime.enter();
        let interrupt = signal(SignalKind::interrupt())?;
        let terminate = signal(SignalKind::terminate())?;
        drop(entered);
        Ok(Self {
            runtime,
            interrupt,
            terminate,
        })
    }

    /// Waits for the next signal. Returns its number.
    fn next(&mut self) -> u8 {
        self.runtime.block_on(async {
            tokio::select! {
                _ = self.interrupt.recv() => SIGINT,
                _ = self.terminate.recv() => SIGTERM,
            }
        })
    }
}
