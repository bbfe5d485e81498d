//! Builder of jobs.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use meshwork_model::batch::Membership;
use meshwork_model::job::limits::MAX_TIMEOUT;
use meshwork_model::job::{Invalid, NewJob, OnDuplicate, OnFailure, Tag, Unique, Until, When};
use meshwork_model::name::{BatchId, Group, Instance, JobId, RoutingKey, ScriptType};
use meshwork_model::retry::RetryBackoff;
use meshwork_model::route::bindings::Bindings;
use meshwork_model::route::topic::Topic;
use meshwork_model::route::{Fallback, Priority, Route};
use meshwork_model::trace::TraceContext;
use serde::Serialize;

use crate::{Error, runner, span};

/// Allowance for the time in the queue, on top of the runs.
const QUEUEING: Duration = Duration::from_secs(3600);

/// A job to be submitted.
#[derive(Debug, Clone)]
pub struct JobRequest {
    job: NewJob,
    /// The caller has chosen the id.
    has_id: bool,
}

impl JobRequest {
    /// A script for workers of `script_type`.
    #[must_use]
    pub fn new(script_type: ScriptType, script: impl Into<String>) -> Self {
        let id = JobId::foreign(uuid::Uuid::new_v4().to_string());
        Self {
            job: NewJob::new(id, Route::to(script_type), script),
            has_id: false,
        }
    }

    /// With an id of the caller's (default: a UUID v4; in a context the caller's next number). An id that exists is
    /// refused. In a context it is the key of the job there
    /// ([`ContextKeys::job_id`](meshwork_model::keys::context::ContextKeys::job_id)).
    #[must_use]
    pub fn id(mut self, id: JobId) -> Self {
        self.job.id = id;
        self.has_id = true;
        self
    }

    /// True if the caller has chosen the id.
    pub(super) fn has_id(&self) -> bool {
        self.has_id
    }

    /// For workers of one group only.
    #[must_use]
    pub fn group(mut self, group: Group) -> Self {
        self.job.route.group = Some(group);
        self
    }

    /// For workers of this route only: those of the group that is called so; `default` is whichever worker
    /// of the type takes what names no group.
    #[must_use]
    pub fn route(mut self, route: &RoutingKey) -> Self {
        self.job.route = self.job.route.via(route);
        self
    }

    /// For workers of the route that `bindings` say, unless it is for a group or an instance already. They see the
    /// script type as its name, `topic`, and as payload the input, or the script if there is none, where that is
    /// JSON.
    #[must_use]
    pub fn bound(self, bindings: &Bindings, topic: Option<&Topic>) -> Self {
        if self.job.route.group.is_some() || self.job.route.instance.is_some() {
            return self;
        }
        let given = self.job.input.as_deref();
        let given = given.unwrap_or(self.job.script.as_bytes());
        let route = bindings.route(self.job.route.script_type.as_str(), topic, given);
        self.route(route)
    }

    /// For one worker only; the job waits for it, unless it has a [`JobRequest::fallback`].
    #[must_use]
    pub fn instance(mut self, instance: Instance) -> Self {
        self.job.route.instance = Some(instance);
        self
    }

    /// Destination of a job for one worker while that worker is not registered, at submission or later. Default: the
    /// job waits. Refused for a job without an instance.
    #[must_use]
    pub fn fallback(mut self, fallback: Fallback) -> Self {
        self.job.fallback = Some(fallback);
        self
    }

    /// Priority of the job. Default: normal. A worker claims from all its queues of one priority before the next one.
    /// Now and then it starts with the lowest, so that none starves.
    #[must_use]
    pub fn priority(mut self, priority: Priority) -> Self {
        self.job.route.priority = priority;
        self
    }

    /// It is not to run before this job has ended; may be said of up to 1,000 jobs, which must be there
    /// when it is submitted. Hero's protocol calls these jobs `prerequisites`.
    #[must_use]
    pub fn depends_on(mut self, id: JobId) -> Self {
        self.job.depends_on.push(id);
        self
    }

    /// The same of a job whose result the runs find under `name`: `inputs["name"]` in Python, `INPUTS.name` in Rhai,
    /// [`Context::inputs`](crate::runner::Context::inputs) in Rust. By the id they find each. Names are 1 to 64 letters, digits,
    /// `_`, `-` or `.`; results are handed over up to 16 MiB in all.
    #[must_use]
    pub fn depends_on_as(mut self, name: impl Into<String>, id: JobId) -> Self {
        self.job.input_names.insert(name.into(), id.clone());
        self.depends_on(id)
    }

    /// Longest wait for prerequisites, in whole seconds rounded up: 1 s to 7 days. The job ends in error after that.
    /// Default: no limit. The job's timeout starts with its run.
    #[must_use]
    pub fn prerequisite_timeout(mut self, timeout: Duration) -> Self {
        self.job.prerequisite_timeout = Some(seconds(timeout));
        self
    }

    /// Policy for a prerequisite that fails. Default: this job ends in error at once, without a run.
    #[must_use]
    pub fn on_failure(mut self, on_failure: OnFailure) -> Self {
        self.job.on_failure = on_failure;
        self
    }

    /// Not before this time, by the server's clock (default: at once). Workers start it within 100 ms of it
    /// if one has room; a time that is over means at once.
    #[must_use]
    pub fn run_at(self, at: SystemTime) -> Self {
        let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
        self.run_at_ms(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    /// The same in milliseconds since 1970.
    #[must_use]
    pub fn run_at_ms(mut self, ms: u64) -> Self {
        self.job.when = Some(When::At(ms));
        self
    }

    /// Not before so long after it was submitted, by the server's clock; at most ten years.
    #[must_use]
    pub fn run_in(mut self, delay: Duration) -> Self {
        self.job.when = Some(When::In(millis(delay)));
        self
    }

    /// Time within which a worker has to begin the job, in whole milliseconds rounded up: 1 ms to ten years. Default: no
    /// limit. It counts from [`run_at`](Self::run_at) or [`run_in`](Self::run_in), else from the submission, and includes
    /// waits for other jobs. A job that has begun once has no such limit any more, also if it runs again.
    ///
    /// A job whose time is over ends in error `timeout: no worker began it within …`, and is no dead letter. No worker
    /// claims it then; a worker ends it within about a second. While no worker is alive, it stays open.
    #[must_use]
    pub fn start_timeout(mut self, timeout: Duration) -> Self {
        self.job.start_timeout_ms = Some(millis(timeout));
        self
    }

    /// Whose job it is, a tenant's say: up to 256 bytes. In a fair queue keys take turns, and a queue can
    /// bound what runs and starts of each key ([`Client::set_queue`](crate::Client::set_queue)).
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.job.key = Some(key.into());
        self
    }

    /// A label by which lists find it ([`JobFilter::tags`](crate::JobFilter)); may be said of up to 10. Jobs that its runs
    /// submit have it too.
    #[must_use]
    pub fn tag(mut self, tag: Tag) -> Self {
        self.job.tags.insert(tag);
        self
    }

    /// That no other job of the same type and name is accepted until this one is done, was started, or for a
    /// time; and what becomes of a later one. [`Unique`] says the rest.
    #[must_use]
    pub fn unique(mut self, name: impl Into<String>, until: Until, policy: OnDuplicate) -> Self {
        self.job.unique = Some(Unique {
            name: name.into(),
            until,
            policy,
        });
        self
    }

    /// Debounce: it runs when no other job of this name has been submitted for the pause; each that comes
    /// before replaces the one before it, which ends in error `replaced by` the later.
    #[must_use]
    pub fn debounce(mut self, name: impl Into<String>, pause: Duration) -> Self {
        self.job.unique = Some(Unique::debounce(name));
        self.run_in(pause)
    }

    /// Throttle: of all jobs of this name that are submitted within the window, only the first is stored.
    #[must_use]
    pub fn throttle(mut self, name: impl Into<String>, window: Duration) -> Self {
        self.job.unique = Some(Unique::throttle(name, millis(window)));
        self
    }

    /// The pause before the first retry, in whole milliseconds, at most an hour (default: the worker's,
    /// one second). It doubles with each further one, up to ten minutes, and up to a quarter of it is left
    /// to chance.
    #[must_use]
    pub fn backoff(mut self, first: Duration) -> Self {
        self.job.backoff_ms = Some(u64::try_from(first.as_millis()).unwrap_or(u64::MAX));
        self
    }

    /// Bytes for the script: the value `INPUT` in Rhai, stdin in Python. At most 16 MiB.
    #[must_use]
    pub fn input(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.job.input = Some(input.into());
        self
    }

    /// A payload for a handler, as JSON.
    ///
    /// # Errors
    /// If it cannot be written as JSON.
    pub fn payload<T: Serialize + ?Sized>(mut self, payload: &T) -> Result<Self, Error> {
        self.job.script = serde_json::to_string(payload).map_err(|source| Error::Payload {
            what: "payload",
            id: self.job.id.clone(),
            source,
        })?;
        Ok(self)
    }

    /// The caller's id and context: `CALLER_ID` and `CONTEXT_ID` of the script.
    #[must_use]
    pub fn caller(mut self, caller_id: impl Into<String>, context_id: impl Into<String>) -> Self {
        self.job.caller_id = caller_id.into();
        self.job.context_id = context_id.into();
        self
    }

    /// Longest time of one run, in whole seconds rounded up. Default: 1,800 s.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.job.timeout = seconds(timeout);
        self
    }

    /// Runs after the first, should it fail (default: none).
    #[must_use]
    pub fn retries(mut self, retries: u32) -> Self {
        self.job.retries = retries;
        self
    }

    /// True if the job may run beside other jobs of its worker (default). An exclusive job waits until running jobs
    /// have ended, and no other starts beside it. Its timeout starts with its run.
    #[must_use]
    pub fn concurrent(mut self, concurrent: bool) -> Self {
        self.job.concurrent = concurrent;
        self
    }

    /// Environment variables of the script.
    #[must_use]
    pub fn env(mut self, env_vars: BTreeMap<String, String>) -> Self {
        self.job.env_vars = env_vars.into();
        self
    }

    /// A file on the worker's host that its lines are appended to. It has to lie inside a folder that the
    /// worker allows ([`Worker::log_dir`](crate::Worker::log_dir)), or the job fails; a relative path is
    /// relative to the first of them.
    #[must_use]
    pub fn log_path(mut self, path: impl Into<String>) -> Self {
        self.job.log_path = Some(path.into());
        self
    }

    /// The trace that it belongs to, and the span that asks for it (W3C trace context). Its runs learn it.
    #[must_use]
    pub fn trace(mut self, trace: TraceContext) -> Self {
        self.job.trace = Some(trace);
        self
    }

    /// The batch that it belongs to, which has to be there and open ([`Client::batch`](crate::Client::batch)).
    #[must_use]
    pub fn batch(mut self, batch: BatchId) -> Self {
        self.job.batch = Some(Membership { batch, by: None });
        self
    }

    /// Pushes the result to the reply list, so that a waiting client need not poll.
    #[must_use]
    pub fn reply(mut self, reply: bool) -> Self {
        self.job.reply = reply;
        self
    }

    /// Checks the job, and the syntax of its script with the parser of its runtime. Python scripts need an interpreter
    /// on this host.
    ///
    /// # Errors
    /// If the job or its script is invalid, with the position; or if no parser is available, as for payloads of
    /// handlers.
    pub async fn check_syntax(&self) -> Result<(), Error> {
        self.job.check()?;
        let script_type = self.job.route.script_type.as_str();
        let checked = runner::check(script_type, self.job.script.as_bytes()).await;
        checked.map_err(|source| Error::Script {
            id: self.job.id.clone(),
            source,
        })
    }

    /// Builds the job and checks it. With the feature `opentelemetry` a job without a trace joins that of the current
    /// span.
    ///
    /// # Errors
    /// If the job is invalid.
    pub fn build(mut self) -> Result<NewJob, Invalid> {
        self.job.check()?;
        self.job.trace = self.job.trace.or_else(span::current);
        Ok(self.job)
    }

    /// Default wait of a caller: all runs with backoff, the prerequisite timeout, the delay, and 1 h in the queue. Add
    /// the time until [`JobRequest::run_at`], which is not included.
    #[must_use]
    pub fn patience(&self) -> Duration {
        let job = &self.job;
        let pause = RetryBackoff::default().cap;
        let times = u64::from(job.retries) + 1;
        let waits = match job.prerequisite_timeout {
            _ if job.depends_on.is_empty() => 0,
            // One of them may run for so long.
            None => MAX_TIMEOUT,
            Some(seconds) => seconds,
        };
        let delay = match job.when {
            Some(When::In(ms)) => Duration::from_millis(ms),
            _ => Duration::ZERO,
        };
        Duration::from_secs(job.timeout.saturating_mul(times).saturating_add(waits))
            .saturating_add(pause.saturating_mul(job.retries))
            .saturating_add(QUEUEING)
            .saturating_add(delay)
    }
}

/// In whole seconds, rounded up.
fn seconds(duration: Duration) -> u64 {
    let more = u64::from(duration.subsec_nanos() > 0);
    duration.as_secs().saturating_add(more)
}

/// In whole milliseconds, rounded up.
fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}
