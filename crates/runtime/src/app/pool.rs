//! The processes of an app: each place has one, which is replaced when it ends.

use std::fs;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::process::{Loaded, Process, Slot};
use super::spawner::Spawner;
use super::suspects::ALONE;
use super::{AppCommand, AppError, AppOptions};

/// First pause after a process could not start, or ended without a run. It doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// Longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Time between two looks at the memory of a process.
const LOOKS: Duration = Duration::from_secs(1);

/// The processes of an app.
#[derive(Debug)]
pub(super) struct Pool {
    command: AppCommand,
    options: AppOptions,
    spawner: Spawner,
    state: Mutex<State>,
    freed: Arc<Notify>,
    closing: CancellationToken,
    keepers: TaskTracker,
}

#[derive(Debug, Default)]
struct State {
    processes: Vec<Arc<Process>>,
    /// Reason why the last start has failed.
    fault: Option<String>,
}

impl Pool {
    /// Starts the processes. Returns when one has loaded the app, with the content of the app.
    pub(super) async fn start(
        command: AppCommand,
        options: AppOptions,
    ) -> Result<(Arc<Self>, Loaded), AppError> {
        let spawner = Spawner::start().map_err(AppError::Start)?;
        let freed = Arc::new(Notify::new());
        let started = Process::start(&command, &spawner, options.concurrency, Arc::clone(&freed));
        let (first, loaded) = started.await?;
        let pool = Arc::new(Self {
            command,
            options,
            spawner,
            state: Mutex::default(),
            freed,
            closing: CancellationToken::new(),
            keepers: TaskTracker::new(),
        });
        for first in std::iter::once(Some(first))
            .chain(std::iter::repeat_with(|| None))
            .take(pool.options.processes as usize)
        {
            pool.keepers.spawn(Arc::clone(&pool).keep(first));
        }
        pool.keepers.close();
        Ok((pool, loaded))
    }

    /// Waits for a place for a run.
    ///
    /// # Errors
    /// No process can be started here; the text is the reason.
    pub(super) async fn slot(&self) -> Result<Slot, String> {
        self.find_slot(false).await
    }

    /// Waits for a place without other runs beside it, for [`ALONE`], and then for any.
    ///
    /// # Errors
    /// As [`Self::slot`].
    pub(super) async fn slot_alone(&self) -> Result<Slot, String> {
        match tokio::time::timeout(ALONE, self.find_slot(true)).await {
            Ok(slot) => slot,
            Err(_) => self.slot().await,
        }
    }

    async fn find_slot(&self, alone: bool) -> Result<Slot, String> {
        let most = self.options.max_jobs_per_process;
        loop {
            let freed = self.freed.notified();
            tokio::pin!(freed);
            freed.as_mut().enable();
            let (mut processes, fault) = {
                let state = self.state();
                (state.processes.clone(), state.fault.clone())
            };
            // The one with the most room first.
            processes.sort_by_key(|process| std::cmp::Reverse(process.room()));
            for process in &processes {
                let slot = match alone {
                    true => process.whole(most).await,
                    false => process.try_slot(most),
                };
                if let Some(slot) = slot {
                    return Ok(slot);
                }
            }
            if let (true, Some(fault)) = (processes.is_empty(), fault) {
                return Err(fault);
            }
            freed.await;
        }
    }

    /// Returns the reason why no run can start.
    pub(super) fn fault(&self) -> Option<String> {
        let state = self.state();
        state.fault.clone().filter(|_| state.processes.is_empty())
    }

    /// Ends all processes.
    pub(super) async fn close(&self) {
        self.closing.cancel();
        self.keepers.wait().await;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps one process alive.
    async fn keep(self: Arc<Self>, mut first: Option<Arc<Process>>) {
        let mut pause = FIRST_PAUSE;
        while !self.closing.is_cancelled() {
            let worked = match first.take() {
                Some(process) => self.serve(process).await,
                None => match self.another().await {
                    Ok(process) => self.serve(process).await,
                    Err(error) => {
                        self.failed(&error);
                        false
                    }
                },
            };
            if worked {
                pause = FIRST_PAUSE;
                continue;
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.closing.cancelled() => {}
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn another(&self) -> Result<Arc<Process>, AppError> {
        let freed = Arc::clone(&self.freed);
        let started = Process::start(
            &self.command,
            &self.spawner,
            self.options.concurrency,
            freed,
        );
        tokio::select! {
            started = started => started.map(|(process, _)| process),
            () = self.closing.cancelled() => Err(AppError::NotReady("the worker stops".to_owned())),
        }
    }

    fn failed(&self, error: &AppError) {
        if self.closing.is_cancelled() {
            return;
        }
        tracing::error!(%error, "a process of the app cannot be started");
        self.state().fault = Some(error.to_string());
        // Those who wait for a place learn why there is none.
        self.freed.notify_waiters();
    }

    /// Lets a process run tasks until it has ended. Returns true if it ran one.
    async fn serve(&self, process: Arc<Process>) -> bool {
        {
            let mut state = self.state();
            state.processes.push(Arc::clone(&process));
            state.fault = None;
        }
        self.freed.notify_waiters();
        let started = Instant::now();
        tokio::select! {
            () = process.ended() => {}
            () = self.watch_memory(&process) => {}
            () = self.closing.cancelled() => process.stop().await,
        }
        self.state()
            .processes
            .retain(|one| !Arc::ptr_eq(one, &process));
        let worked = process.given() > 0;
        if !worked && !self.closing.is_cancelled() {
            let lived = started.elapsed().as_secs();
            tracing::error!(
                pid = process.pid(),
                lived,
                "a process of the app ended without a run"
            );
        }
        worked
    }

    /// Retires a process that takes more memory than it may. Returns at its end.
    async fn watch_memory(&self, process: &Arc<Process>) {
        let Some(most) = self.options.max_memory else {
            return std::future::pending().await;
        };
        loop {
            tokio::select! {
                () = process.ended() => return,
                () = tokio::time::sleep(LOOKS) => {}
            }
            if memory(process.pid()).is_some_and(|bytes| bytes > most) {
                tracing::info!(
                    pid = process.pid(),
                    "a process of the app takes more than --max-memory: it is replaced"
                );
                process.retire();
                return process.ended().await;
            }
        }
    }
}

/// Returns the resident memory of a process, in bytes.
fn memory(pid: u32) -> Option<u64> {
    let statm = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let pages: u64 = statm.split(' ').nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}
