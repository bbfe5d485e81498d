//! One process of an app: the runs in it, its messages, and its end.

use std::collections::HashMap;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream as Pair;
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::Child;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::super::process::exit_words;
use super::super::sandbox;
use super::active::{Active, Outcome};
use super::spawner::Spawner;
use super::wire::{self, FromApp, PROTOCOL, Task, TaskSchedule, ToApp};
use super::{AppCommand, AppError};

/// Longest time for an app to load.
const LOADS: Duration = Duration::from_secs(60);
/// Longest time for a process without runs to end by itself.
const ENDS: Duration = Duration::from_secs(5);
/// Longest wait for the last messages of a process that has ended.
const DRAINS: Duration = Duration::from_secs(1);
/// Greatest number of messages that wait for a process to read them. More make their senders wait.
const MESSAGES: usize = 64;

/// A process of an app. It is killed when it is retired, and when the pool ends.
#[derive(Debug)]
pub(super) struct Process {
    pid: u32,
    concurrency: u32,
    slots: Arc<Semaphore>,
    freed: Arc<Notify>,
    /// Number of runs that it was given.
    given: AtomicU32,
    retired: AtomicBool,
    to_app: mpsc::Sender<Vec<u8>>,
    runs: Mutex<Runs>,
    kill: CancellationToken,
    ended: CancellationToken,
}

/// The content of the app that a process has loaded.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) tasks: Vec<Task>,
    pub(super) schedules: Vec<TaskSchedule>,
}

/// The runs in a process.
#[derive(Debug, Default)]
struct Runs {
    next: u64,
    active: HashMap<u64, Active>,
    /// The run for whose end the process is killed.
    culprit: Option<u64>,
    /// The end of the process, in words.
    end: Option<String>,
}

/// A place for a run in a process.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) process: Arc<Process>,
    permits: Option<OwnedSemaphorePermit>,
}

impl Slot {
    /// Lets others run beside this run.
    pub(super) fn share(&mut self) {
        if let Some(permits) = &mut self.permits {
            drop(permits.split(permits.num_permits() - 1));
        }
        self.process.freed.notify_waiters();
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.permits.take();
        self.process.freed.notify_waiters();
        if self.process.retired.load(Ordering::SeqCst) {
            self.process.stop_if_idle();
        }
    }
}

impl Process {
    /// Starts a process, and waits until its app is loaded.
    pub(super) async fn start(
        command: &AppCommand,
        spawner: &Spawner,
        concurrency: u32,
        freed: Arc<Notify>,
    ) -> Result<(Arc<Self>, Loaded), AppError> {
        let (ours, theirs) = Pair::pair().map_err(AppError::Start)?;
        ours.set_nonblocking(true).map_err(AppError::Start)?;
        let (from, to) = UnixStream::from_std(ours)
            .map_err(AppError::Start)?
            .into_split();
        let mut order = command.command();
        // What the app prints outside of its runs must not be in the worker's own output.
        let output = io::stderr().as_fd().try_clone_to_owned();
        order
            .stdin(Stdio::from(std::os::fd::OwnedFd::from(theirs)))
            .stdout(output.map_err(AppError::Start)?);
        let started = spawner.spawn(order).await;
        let (mut child, own) = started.map_err(|error| AppError::program(command, error))?;
        let mut from = BufReader::new(from);
        let ready = tokio::time::timeout(LOADS, wire::read(&mut from)).await;
        let loaded = match ready {
            Ok(Ok(Some(FromApp::Ready {
                protocol,
                tasks,
                schedules,
            }))) if protocol == PROTOCOL => Loaded { tasks, schedules },
            other => {
                let why = not_ready(other.ok(), &mut child).await;
                return Err(AppError::NotReady(why));
            }
        };
        let (to_app, messages) = mpsc::channel(MESSAGES);
        let process = Arc::new(Self {
            pid: child.id().unwrap_or_default(),
            concurrency,
            slots: Arc::new(Semaphore::new(concurrency as usize)),
            freed,
            given: AtomicU32::new(0),
            retired: AtomicBool::new(false),
            to_app,
            runs: Mutex::default(),
            kill: CancellationToken::new(),
            ended: CancellationToken::new(),
        });
        tokio::spawn(write(to, messages));
        tokio::spawn(Arc::clone(&process).serve(child, own, from));
        Ok((process, loaded))
    }

    /// Returns its pid.
    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns how many runs it was given.
    pub(super) fn given(&self) -> u32 {
        self.given.load(Ordering::SeqCst)
    }

    /// Returns how many more runs it can take.
    pub(super) fn room(&self) -> usize {
        match self.retired.load(Ordering::SeqCst) {
            true => 0,
            false => self.slots.available_permits(),
        }
    }

    /// Takes a place for a run, if one is free.
    pub(super) fn try_slot(self: &Arc<Self>, most: Option<u32>) -> Option<Slot> {
        if self.retired.load(Ordering::SeqCst) {
            return None;
        }
        let permits = Arc::clone(&self.slots).try_acquire_owned().ok()?;
        self.took(permits, most)
    }

    /// Waits until no other run is in the process, and takes all its places.
    pub(super) async fn whole(self: &Arc<Self>, most: Option<u32>) -> Option<Slot> {
        let all = Arc::clone(&self.slots).acquire_many_owned(self.concurrency);
        let permits = tokio::select! {
            permits = all => permits.ok()?,
            () = self.ended.cancelled() => return None,
        };
        self.took(permits, most)
    }

    /// Counts a run. The process is retired with the last of `most`.
    fn took(self: &Arc<Self>, permits: OwnedSemaphorePermit, most: Option<u32>) -> Option<Slot> {
        let given = self.given.fetch_add(1, Ordering::SeqCst) + 1;
        let over = |most| given > most;
        if most.is_some_and(over) {
            return None;
        }
        if most == Some(given) {
            self.retired.store(true, Ordering::SeqCst);
        }
        Some(Slot {
            process: Arc::clone(self),
            permits: Some(permits),
        })
    }

    /// Lets the process end after its runs.
    pub(super) fn retire(self: &Arc<Self>) {
        if !self.retired.swap(true, Ordering::SeqCst) {
            self.stop_if_idle();
        }
    }

    fn stop_if_idle(self: &Arc<Self>) {
        if self.slots.available_permits() == self.concurrency as usize {
            let process = Arc::clone(self);
            tokio::spawn(async move { process.stop().await });
        }
    }

    /// Asks the process to end, and kills it if it does not.
    pub(super) async fn stop(&self) {
        self.retired.store(true, Ordering::SeqCst);
        let stopped = async {
            self.send(&ToApp::Stop {}).await;
            self.ended.cancelled().await;
        };
        if tokio::time::timeout(ENDS, stopped).await.is_err() {
            self.kill.cancel();
            self.ended.cancelled().await;
        }
    }

    /// Kills the process, since this run does not end.
    pub(super) async fn kill_for(&self, run: u64) {
        self.runs().culprit.get_or_insert(run);
        self.kill.cancel();
        self.ended.cancelled().await;
    }

    /// Waits until the process has ended.
    pub(super) async fn ended(&self) {
        self.ended.cancelled().await;
    }

    /// Registers a run, and returns its number.
    ///
    /// # Errors
    /// The process has ended; the text says how.
    pub(super) fn begin(&self, active: Active) -> Result<u64, String> {
        let mut runs = self.runs();
        if let Some(end) = &runs.end {
            return Err(end.clone());
        }
        let number = runs.next;
        runs.next += 1;
        runs.active.insert(number, active);
        Ok(number)
    }

    /// Sends a message. A process that has ended loses it.
    pub(super) async fn send(&self, message: &ToApp<'_>) {
        match wire::line(message) {
            Ok(line) => drop(self.to_app.send(line).await),
            Err(error) => tracing::error!(%error, "a message to an app has no form in JSON"),
        }
    }

    fn runs(&self) -> MutexGuard<'_, Runs> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the messages until the process has ended.
    async fn serve(
        self: Arc<Self>,
        mut child: Child,
        own: Option<sandbox::Own>,
        from: BufReader<OwnedReadHalf>,
    ) {
        let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let mut reads = std::pin::pin!(self.read_all(from));
        let (mut broken, mut status) = (None, None);
        tokio::select! {
            ended = child.wait() => status = Some(ended),
            reason = &mut reads => broken = Some(reason),
            () = self.kill.cancelled() => {}
        }
        if status.is_none() {
            if broken.as_ref().is_some_and(Option::is_none) {
                // The socket was closed by the end of the process, or by its code: the next lines tell.
                status = tokio::time::timeout(DRAINS, child.wait()).await.ok();
            }
            if let (None, Some(group)) = (&status, group) {
                // It may have ended by itself meanwhile.
                let _ = kill_process_group(group, Signal::KILL);
            }
        }
        let status = match status {
            Some(status) => status,
            None => child.wait().await,
        };
        drop(own);
        if broken.is_none() && tokio::time::timeout(DRAINS, reads).await.is_err() {
            tracing::debug!("a process that an app has started keeps its socket");
        }
        self.end(how(status, broken.flatten()));
    }

    /// Reads messages to the end of the stream. Returns the fault that ended it, if there was one.
    async fn read_all(self: &Arc<Self>, mut from: BufReader<OwnedReadHalf>) -> Option<io::Error> {
        loop {
            match wire::read(&mut from).await {
                Ok(Some(message)) => self.received(message),
                Ok(None) => return None,
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return None,
                Err(error) => return Some(error),
            }
        }
    }

    fn received(self: &Arc<Self>, message: FromApp) {
        let mut runs = self.runs();
        match message {
            FromApp::Ready { .. } => {}
            FromApp::Done { run, result } => {
                if let Some(active) = runs.active.remove(&run) {
                    active.end(Outcome::done(result));
                }
            }
            FromApp::Failed(failure) => {
                if let Some(active) = runs.active.remove(&failure.run) {
                    active.end(Outcome::failed(failure));
                }
            }
            FromApp::Log { run, text, stderr } => {
                if let Some(active) = runs.active.get(&run) {
                    active.log(&text, stderr);
                }
            }
            FromApp::Progress {
                run,
                fraction,
                message,
            } => {
                if let Some(active) = runs.active.get(&run) {
                    active.progress(fraction, message.as_deref());
                }
            }
            FromApp::AddChild {
                run,
                call,
                payload,
                script,
                input,
                options,
            } => {
                let Some(active) = runs.active.get(&run) else {
                    return;
                };
                let script = payload.map(|it| it.get().to_owned()).or(script);
                let child = active.add_child(script.unwrap_or_default(), input, options);
                let process = Arc::clone(self);
                tokio::spawn(async move {
                    let (id, error) = match child.await {
                        Ok(id) => (Some(id), None),
                        Err(error) => (None, Some(error)),
                    };
                    let answer = ToApp::Child {
                        run,
                        call,
                        id,
                        error,
                    };
                    process.send(&answer).await;
                });
            }
        }
    }

    /// Ends the runs that are left.
    fn end(&self, how: String) {
        self.retired.store(true, Ordering::SeqCst);
        let mut runs = self.runs();
        runs.end = Some(how.clone());
        let (culprit, together) = (runs.culprit, runs.active.len());
        for (number, active) in runs.active.drain() {
            active.end(Outcome::Died {
                how: how.clone(),
                together,
                for_other: culprit.is_some_and(|culprit| culprit != number),
            });
        }
        drop(runs);
        self.ended.cancel();
        self.freed.notify_waiters();
    }
}

/// Writes messages until the process or the pool ends.
async fn write(mut to: OwnedWriteHalf, mut messages: mpsc::Receiver<Vec<u8>>) {
    while let Some(line) = messages.recv().await {
        if to.write_all(&line).await.is_err() {
            return;
        }
    }
}

/// Returns the reason why an app is not ready, and ends its process.
async fn not_ready(read: Option<io::Result<Option<FromApp>>>, child: &mut Child) -> String {
    let why = match read {
        None => format!("it was not ready within {} s", LOADS.as_secs()),
        Some(Ok(Some(FromApp::Ready { protocol, .. }))) => format!(
            "it speaks version {protocol} of the messages, this worker version {PROTOCOL}: install the same version of both"
        ),
        Some(Ok(Some(_))) => "its first message was not `ready`".to_owned(),
        Some(Ok(None)) => match tokio::time::timeout(DRAINS, child.wait()).await {
            Ok(status) => format!("it ended: {}", how(status, None)),
            Err(_) => "it closed its socket".to_owned(),
        },
        Some(Err(error)) => error.to_string(),
    };
    // Kills it, if it still runs.
    let _ = child.start_kill();
    let _ = child.wait().await;
    why
}

fn how(status: io::Result<ExitStatus>, broken: Option<io::Error>) -> String {
    match (broken, status) {
        (Some(fault), _) => format!("ended by the worker: {fault}"),
        (None, Ok(status)) => exit_words(status),
        (None, Err(error)) => error.to_string(),
    }
}

/// Creates the two ends of the outcome of a run.
pub(super) fn outcome() -> (oneshot::Sender<Outcome>, oneshot::Receiver<Outcome>) {
    oneshot::channel()
}
