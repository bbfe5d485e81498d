//! Changes of all jobs that match: counted first, then made by a task of this process, which pages follow. What a process
//! that ends has not done stays undone.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use data_encoding::HEXLOWER;
use futures_util::StreamExt;
use meshwork_model::name::JobId;
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_util::sync::CancellationToken;

use super::caller::Caller;
use super::reads;
use super::selection::{Selection, Walk};
use crate::api::{ApiError, Code, Method, Params};

/// Greatest number of changes that count or run at once.
const AT_ONCE: usize = 2;
/// Greatest number of changes that are remembered; beyond it the oldest is forgotten.
const MOST_KNOWN: usize = 16;
/// Greatest number of jobs of one change: their ids are in memory.
const MOST_JOBS: usize = 100_000;
/// Greatest number of jobs that one count compares with the filters.
const MOST_COMPARED: u64 = 1_000_000;
/// Jobs in one step of a count.
const STEP: usize = 500;
/// Longest pause after a step of a count, which is as long as the step.
const PAUSE: Duration = Duration::from_millis(50);
/// Jobs whose records are compared with those that were counted, in one step of a change.
const CHUNK: usize = 100;
/// Jobs that are changed at once.
const PARALLEL: usize = 16;

/// A job as it was counted.
#[derive(Debug)]
struct Counted {
    id: String,
    /// Tells a later job of the same id apart.
    created_at: String,
}

/// Phase of a change.
#[derive(Debug, Clone)]
pub(super) enum Phase {
    Counting,
    /// The number is known, and the button shows it.
    Counted,
    Running,
    Ended,
    /// Somebody has stopped it.
    Stopped,
    Failed(ApiError),
}

/// Figures of a change.
#[derive(Debug, Clone)]
pub(super) struct Figures {
    pub(super) phase: Phase,
    /// Jobs that were compared with the filters.
    pub(super) compared: u64,
    /// Jobs that match.
    pub(super) jobs: u64,
    /// True if more jobs may match.
    pub(super) is_cut: bool,
    pub(super) changed: u64,
    /// Jobs that stay as they are, since they have changed since the count.
    pub(super) left: u64,
    /// Reason of one of them.
    pub(super) reason: Option<String>,
}

#[derive(Debug)]
struct State {
    figures: Figures,
    jobs: Vec<Counted>,
}

/// A change of all jobs of a selection.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) id: String,
    pub(super) method: &'static Method,
    pub(super) label: &'static str,
    pub(super) selection: Selection,
    /// Rights of the caller: others do not see it.
    owner: String,
    context: Option<u32>,
    state: Mutex<State>,
    changes: watch::Sender<u64>,
    stop: CancellationToken,
}

/// The changes of this process.
#[derive(Debug)]
pub(super) struct ManyChanges {
    known: Mutex<VecDeque<Arc<Change>>>,
    slots: Arc<Semaphore>,
}

impl Default for ManyChanges {
    fn default() -> Self {
        let slots = Arc::new(Semaphore::new(AT_ONCE));
        let known = Mutex::default();
        Self { known, slots }
    }
}

fn owner(caller: &Caller) -> String {
    let access = &caller.access;
    let actor = caller.call().actor();
    let (scope, key, context) = (access.scope(), access.key_name(), access.context());
    format!("{scope:?} {key:?} {actor:?} {context:?}")
}

impl ManyChanges {
    fn known(&self) -> MutexGuard<'_, VecDeque<Arc<Change>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn slot(&self) -> Result<OwnedSemaphorePermit, ApiError> {
        Arc::clone(&self.slots).try_acquire_owned().map_err(|_| {
            let message = format!("{AT_ONCE} changes of many jobs are under way: try again later");
            ApiError::new(Code::TooManyRequests, message)
        })
    }

    /// Begins to count the jobs of a selection. Returns the id of the change.
    pub(super) fn count(
        &self,
        caller: &Arc<Caller>,
        (method, label): (&'static Method, &'static str),
        selection: Selection,
    ) -> Result<String, ApiError> {
        let slot = self.slot()?;
        let change = Arc::new(Change::new(caller, (method, label), selection));
        let mut known = self.known();
        if known.len() >= MOST_KNOWN {
            let is_over = |it: &Arc<Change>| !it.is_active();
            let oldest = known.iter().position(is_over).unwrap_or(0);
            known.remove(oldest);
        }
        known.push_back(Arc::clone(&change));
        drop(known);
        let id = change.id.clone();
        let caller = Arc::clone(caller);
        tokio::spawn(async move {
            let counted = change.count(&caller).await;
            change.end(counted, Phase::Counted);
            drop(slot);
        });
        Ok(id)
    }

    /// Returns a change of this caller.
    pub(super) fn get(&self, caller: &Caller, id: &str) -> Result<Arc<Change>, ApiError> {
        let owner = owner(caller);
        let is_it = |it: &&Arc<Change>| it.id == id && it.owner == owner;
        let none = || {
            let message = "this process does not know the change: it was started again, or has made others since";
            ApiError::new(Code::NotFound, message)
                .hint("what it has done is done, and the rest is not: count the jobs again")
        };
        self.known().iter().find(is_it).cloned().ok_or_else(none)
    }

    /// Changes the jobs that were counted. Does nothing for a change that has begun.
    pub(super) fn start(&self, caller: &Arc<Caller>, change: &Arc<Change>) -> Result<(), ApiError> {
        let slot = self.slot()?;
        let jobs = {
            let mut state = change.state();
            if !matches!(state.figures.phase, Phase::Counted) {
                return Ok(());
            }
            state.figures.phase = Phase::Running;
            std::mem::take(&mut state.jobs)
        };
        change.tell();
        let (caller, change) = (Arc::clone(caller), Arc::clone(change));
        tokio::spawn(async move {
            let ran = change.run(&caller, &jobs).await;
            change.end(ran, Phase::Ended);
            drop(slot);
        });
        Ok(())
    }
}

impl Change {
    fn new(
        caller: &Caller,
        (method, label): (&'static Method, &'static str),
        selection: Selection,
    ) -> Self {
        let figures = Figures {
            phase: Phase::Counting,
            compared: 0,
            jobs: 0,
            is_cut: false,
            changed: 0,
            left: 0,
            reason: None,
        };
        let jobs = Vec::new();
        Self {
            id: HEXLOWER.encode(&rand::random::<[u8; 12]>()),
            method,
            label,
            selection,
            owner: owner(caller),
            context: caller.context,
            state: Mutex::new(State { figures, jobs }),
            changes: watch::Sender::new(0),
            stop: CancellationToken::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn figures(&self) -> Figures {
        self.state().figures.clone()
    }

    /// Returns true while it counts or runs.
    pub(super) fn is_active(&self) -> bool {
        matches!(self.state().figures.phase, Phase::Counting | Phase::Running)
    }

    /// Tells pages of its progress.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn tell(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// Leaves the rest as it is.
    pub(super) fn stop(&self) {
        self.stop.cancel();
    }

    fn end(&self, result: Result<(), ApiError>, next: Phase) {
        let phase = match result {
            Ok(()) if self.stop.is_cancelled() => Phase::Stopped,
            Ok(()) => next,
            Err(error) => Phase::Failed(error),
        };
        self.state().figures.phase = phase;
        self.tell();
    }

    async fn count(&self, caller: &Caller) -> Result<(), ApiError> {
        let mut walk = Walk::begin(caller, &self.selection).await?;
        // Jobs that move in their list may come twice.
        let mut seen = HashSet::new();
        loop {
            let began = Instant::now();
            let Some(step) = walk.next(caller, STEP).await? else {
                return Ok(());
            };
            {
                let mut state = self.state();
                state.figures.compared += step.read as u64;
                for job in step
                    .jobs
                    .into_iter()
                    .filter(|job| self.selection.is_match(job))
                {
                    if seen.insert(job.id.clone()) && state.jobs.len() < MOST_JOBS {
                        let (id, created_at) = (job.id, job.created_at);
                        state.jobs.push(Counted { id, created_at });
                    }
                }
                state.figures.jobs = state.jobs.len() as u64;
                state.figures.is_cut =
                    state.jobs.len() == MOST_JOBS || state.figures.compared >= MOST_COMPARED;
                if state.figures.is_cut || self.stop.is_cancelled() {
                    return Ok(());
                }
            }
            self.tell();
            tokio::time::sleep(began.elapsed().min(PAUSE)).await;
        }
    }

    async fn run(&self, caller: &Caller, jobs: &[Counted]) -> Result<(), ApiError> {
        for chunk in jobs.chunks(CHUNK) {
            if self.stop.is_cancelled() {
                return Ok(());
            }
            if !caller.call().rights.is_caller(&caller.access).await {
                let message = "the key of this session was revoked";
                return Err(ApiError::new(Code::InvalidCredentials, message));
            }
            let same = self.unchanged(caller, chunk).await?;
            let gone = chunk.len() - same.len();
            let calls: Vec<_> = same.into_iter().map(|id| self.change(caller, id)).collect();
            let mut calls = futures_util::stream::iter(calls).buffer_unordered(PARALLEL);
            let mut failure = Ok(());
            while let Some(result) = calls.next().await {
                failure = failure.and(self.note(result));
            }
            self.state().figures.left += gone as u64;
            // Pages show what is left.
            caller.shared.reads.forget();
            self.tell();
            failure?;
        }
        Ok(())
    }

    /// Returns the ids of jobs that are those that were counted, and no later ones.
    async fn unchanged(&self, caller: &Caller, chunk: &[Counted]) -> Result<Vec<String>, ApiError> {
        let needs = crate::api::READ_JOBS;
        let call = caller.call().enter(self.context, needs).await?;
        let ids: Vec<_> = chunk
            .iter()
            .map(|it| JobId::foreign(it.id.clone()))
            .collect();
        let jobs = call.client.broker().summaries(&ids).await;
        let jobs = jobs.map_err(meshwork::Error::from)?;
        let mut same = Vec::new();
        for (counted, job) in chunk.iter().zip(jobs) {
            // A dead letter without a record is deleted all the same.
            let created_at = job.map(|job| job.created_at).unwrap_or_default();
            if created_at == counted.created_at {
                same.push(counted.id.clone());
            }
        }
        Ok(same)
    }

    async fn change(&self, caller: &Caller, id: String) -> Result<(), ApiError> {
        let mut params = json!({"id": id});
        if let Some(context) = self.context {
            params["context"] = context.into();
        }
        let params: Params = reads::params(params)?;
        let reply = self.method.call(caller.call(), params).await?;
        let reply: Value = serde_json::from_str(reply.get()).unwrap_or_default();
        match reply["result"].as_str() {
            Some("ended") => {
                let message = format!("job {id} has ended");
                Err(ApiError::new(Code::Conflict, message))
            }
            _ => Ok(()),
        }
    }

    /// Counts a result. An error that other jobs would meet too ends the change.
    fn note(&self, result: Result<(), ApiError>) -> Result<(), ApiError> {
        let mut state = self.state();
        match result {
            Ok(()) => state.figures.changed += 1,
            Err(error) if matches!(error.code, Code::Conflict | Code::NotFound) => {
                state.figures.left += 1;
                state.figures.reason.get_or_insert(error.message);
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }
}
