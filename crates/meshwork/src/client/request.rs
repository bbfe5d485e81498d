//! Builder of jobs.

use meshwork_macros::boxed;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use meshwork_model::batch::Membership;
use meshwork_model::job::limits::MAX_TIMEOUT;
use meshwork_model::job::{Invalid, NewJob, OnDuplicate, OnFailure, Tag, Unique, Until, When};
use meshwork_model::name::{BatchId, Group, Instance, JobId, NameError, RoutingKey, ScriptType};
use meshwork_model::retry::RetryBackoff;
use meshwork_model::route::bindings::Bindings;
use meshwork_model::route::topic::Topic;
use meshwork_model::route::{Fallback, Priority, Route};
use meshwork_model::sandbox::SandboxSettings;
use meshwork_model::schedule::zone::Zone;
use meshwork_model::spec::{InvalidSpec, JobSpec, SpecPlace};
use meshwork_model::trace::TraceContext;
use serde::Serialize;

use crate::Error;
use meshwork_runtime as runtime;
use meshwork_runtime::clock::host_ms;
use meshwork_worker::span;

/// Allowance for the time in the queue in [`JobRequest::wait_budget`].
const QUEUEING: Duration = Duration::from_secs(3600);

/// A job to enqueue, as a builder.
///
/// ```
/// use std::time::Duration;
/// use meshwork::{Client, JobRequest, Priority};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), meshwork::Error> {
/// let client = Client::in_memory();
/// let script = "result = 6 * 7";
/// let request = JobRequest::new("python".parse()?, script)
///     .priority(Priority::High)
///     .retries(3)
///     .timeout(Duration::from_secs(60));
/// let id = client.enqueue(request).await?;
/// assert_eq!(client.status(&id).await?.script, script.as_bytes());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct JobRequest {
    job: NewJob,
    /// True if the caller has chosen the id.
    has_id: bool,
}

impl JobRequest {
    /// Creates a job with a script for workers of `script_type`.
    #[must_use]
    pub fn new(script_type: ScriptType, script: impl Into<String>) -> Self {
        let id = JobId::foreign(uuid::Uuid::new_v4().to_string());
        Self {
            job: NewJob::new(id, Route::to(script_type), script),
            has_id: false,
        }
    }

    /// Sets the id. Default: a UUID v4; in a context, the caller's next number. An existing id is refused. In a
    /// context, the id is the key of the job
    /// ([`ContextKeys::job_id`](meshwork_model::keys::context::ContextKeys::job_id)).
    #[must_use]
    pub fn id(mut self, id: JobId) -> Self {
        self.job.id = id;
        self.has_id = true;
        self
    }

    /// Sets what a job in JSON has, and leaves the rest. Its topic is ignored: see [`route_by`](Self::route_by).
    ///
    /// ```
    /// use meshwork_model::spec::{JobSpec, SpecPlace};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let spec: JobSpec = serde_json::from_str(r#"{"retries": 3, "timeout": "90s", "input": [1, 2]}"#)?;
    /// let id = |text: &str| text.parse().map_err(|error: meshwork_model::name::NameError| error.to_string());
    /// let place = SpecPlace { id: &id, awaited: &id, now_ms: 0, zone: &Default::default() };
    /// let job = meshwork::JobRequest::new("python".parse()?, "1").with_spec(spec, &place)?.build()?;
    /// assert_eq!((job.retries, job.timeout), (3, 90));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A value is wrong, or two exclude each other. The text begins with the name of the field.
    pub fn with_spec(mut self, spec: JobSpec, place: &SpecPlace<'_>) -> Result<Self, InvalidSpec> {
        self.has_id |= spec.id.is_some();
        spec.apply(&mut self.job, place)?;
        Ok(self)
    }

    /// Reads a job in JSON with its type, outside of contexts. Times without a zone are in UTC, its topic is ignored.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let spec = serde_json::from_str(r#"{"type": "mail.send", "payload": {"to": "ada"}, "retries": 3}"#)?;
    /// let job = meshwork::JobRequest::from_spec(spec)?.build()?;
    /// assert_eq!((job.script.as_str(), job.retries), (r#"{"to": "ada"}"#, 3));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// It has no type, a value is wrong, or two exclude each other. The text begins with the name of the field.
    pub fn from_spec(mut spec: JobSpec) -> Result<Self, InvalidSpec> {
        let Some(script_type) = spec.script_type.take() else {
            return Err(InvalidSpec("type: give the type of the job".to_owned()));
        };
        let id = |id: &str| id.parse().map_err(|error: NameError| error.to_string());
        let place = SpecPlace {
            id: &id,
            awaited: &id,
            now_ms: host_ms(),
            zone: &Zone::default(),
        };
        Self::new(script_type.0, "").with_spec(spec, &place)
    }

    /// Returns true if the caller has chosen the id.
    pub(crate) fn has_id(&self) -> bool {
        self.has_id
    }

    /// Returns the route: type, group, worker and priority.
    ///
    /// ```
    /// # fn main() -> Result<(), meshwork::Error> {
    /// let request = meshwork::JobRequest::new("python".parse()?, "result = 1");
    /// assert_eq!(request.destination().script_type.as_str(), "python");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn destination(&self) -> &Route {
        &self.job.route
    }

    /// Runs the job only on workers of this group.
    #[must_use]
    pub fn group(mut self, group: Group) -> Self {
        self.job.route.group = Some(group);
        self
    }

    /// Runs the job only on workers of this route, which is the group of the same name. `default`: workers without a
    /// group.
    #[must_use]
    pub fn route(mut self, route: &RoutingKey) -> Self {
        self.job.route = self.job.route.via(route);
        self
    }

    /// Chooses the route by `bindings`, unless the job has a group or instance. Bindings match the script type as name,
    /// `topic`, and as payload the input, or the script if there is no input, as JSON.
    #[must_use]
    pub fn route_by(self, bindings: &Bindings, topic: Option<&Topic>) -> Self {
        if self.job.route.group.is_some() || self.job.route.instance.is_some() {
            return self;
        }
        let given = self.job.input.as_deref();
        let given = given.unwrap_or(self.job.script.as_bytes());
        let route = bindings.route(self.job.route.script_type.as_str(), topic, given);
        self.route(route)
    }

    /// Runs the job only on this worker. The job waits for it, unless it has a [`JobRequest::fallback`].
    #[must_use]
    pub fn instance(mut self, instance: Instance) -> Self {
        self.job.route.instance = Some(instance);
        self
    }

    /// Sets the destination of a job for one worker while that worker is not registered, claims no jobs, or has no free
    /// slot by its last report, when the job is enqueued or later. Default: the job waits. Refused for a job without an
    /// instance.
    #[must_use]
    pub fn fallback(mut self, fallback: Fallback) -> Self {
        self.job.fallback = Some(fallback);
        self
    }

    /// Sets the priority. Default: normal. A worker claims from all its queues of one priority before the next one.
    /// Every eighth claim begins with the lowest, so that none starves.
    #[must_use]
    pub fn priority(mut self, priority: Priority) -> Self {
        self.job.route.priority = priority;
        self
    }

    /// Adds a prerequisite, at most 1,000. The job runs after it has ended. The prerequisite must exist when the job is
    /// enqueued. Hero's protocol has the field `prerequisites`.
    #[must_use]
    pub fn depends_on(mut self, id: JobId) -> Self {
        self.job.depends_on.push(id);
        self
    }

    /// Adds a prerequisite whose result a run finds under `name`: `inputs["name"]` in Python, `INPUTS.name` in Rhai,
    /// [`JobContext::inputs`](crate::runtime::JobContext::inputs) in Rust. All results can also be found by job id. A
    /// name has 1 to 64 letters, digits, `_`, `-` or `.`. At most 16 MiB of results are passed in total.
    #[must_use]
    pub fn depends_on_as(mut self, name: impl Into<String>, id: JobId) -> Self {
        self.job.input_names.insert(name.into(), id.clone());
        self.depends_on(id)
    }

    /// Sets the longest wait for prerequisites, in whole seconds, rounded up. After it the job ends in error. Default:
    /// no limit, minimum: 1 s, maximum: 7 days. The job's timeout begins with its run.
    #[must_use]
    pub fn prerequisite_timeout(mut self, timeout: Duration) -> Self {
        self.job.prerequisite_timeout = Some(seconds(timeout));
        self
    }

    /// Sets what a failed prerequisite means. Default: this job ends in error at once, without a run.
    #[must_use]
    pub fn on_failure(mut self, on_failure: OnFailure) -> Self {
        self.job.on_failure = on_failure;
        self
    }

    /// Delays the job until this time, by the server's clock. Default: no delay; a time in the past means now. A free
    /// worker starts the job within 100 ms.
    #[must_use]
    pub fn run_at(self, at: SystemTime) -> Self {
        let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
        self.run_at_ms(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    /// Delays the job until this time, in milliseconds since 1970.
    #[must_use]
    pub fn run_at_ms(mut self, ms: u64) -> Self {
        self.job.when = Some(When::At(ms));
        self
    }

    /// Delays the job by this time after it was enqueued, by the server's clock. Maximum: ten years.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.job.when = Some(When::In(millis(delay)));
        self
    }

    /// Sets the time within which a worker has to begin the job, in whole milliseconds, rounded up: 1 ms to ten years.
    /// Default: no limit. It counts from [`run_at`](Self::run_at) or [`delay`](Self::delay), else from the
    /// submission, and includes waits for other jobs. A job that has begun once has no such limit any more, also if it
    /// runs again.
    ///
    /// An expired job ends in error `timeout: no worker began it within …`, and is no dead letter. No worker claims it;
    /// a worker ends it within about a second. While no worker is alive, it stays open.
    #[must_use]
    pub fn start_timeout(mut self, timeout: Duration) -> Self {
        self.job.start_timeout_ms = Some(millis(timeout));
        self
    }

    /// Sets the concurrency key, for example a tenant, up to 256 bytes. In a fair queue keys take turns. A queue can
    /// limit the running jobs and the starts of each key ([`Client::update_queue`](crate::Client::update_queue)).
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.job.key = Some(key.into());
        self
    }

    /// Adds a tag, at most 10, by which lists find the job ([`JobFilter::tags`](crate::JobFilter)). Child jobs inherit
    /// it.
    #[must_use]
    pub fn tag(mut self, tag: Tag) -> Self {
        self.job.tags.insert(tag);
        self
    }

    /// Reserves a name, so that no other job of the same type and name is accepted until this one has ended, was
    /// started, or for a time. `policy` decides about a second job of the name; see [`Unique`].
    #[must_use]
    pub fn unique(mut self, name: impl Into<String>, until: Until, policy: OnDuplicate) -> Self {
        self.job.unique = Some(Unique {
            name: name.into(),
            until,
            policy,
        });
        self
    }

    /// Debounces the job: it runs when no other job of this name was enqueued for `pause`. Each such job replaces the
    /// earlier one, which ends in error `replaced by ID`.
    #[must_use]
    pub fn debounce(mut self, name: impl Into<String>, pause: Duration) -> Self {
        self.job.unique = Some(Unique::debounce(name));
        self.delay(pause)
    }

    /// Throttles the job: of all jobs of this name that are enqueued within `window`, only the first is stored.
    #[must_use]
    pub fn throttle(mut self, name: impl Into<String>, window: Duration) -> Self {
        self.job.unique = Some(Unique::throttle(name, millis(window)));
        self
    }

    /// Sets the pause before the first retry, in whole milliseconds, at most an hour. Default: that of the worker, 1 s.
    /// It doubles with each retry, up to ten minutes, and grows at random by up to a quarter.
    #[must_use]
    pub fn backoff(mut self, first: Duration) -> Self {
        self.job.backoff_ms = Some(u64::try_from(first.as_millis()).unwrap_or(u64::MAX));
        self
    }

    /// Sets the input of the script: `INPUT` in Rhai, stdin in Python. At most 16 MiB.
    #[must_use]
    pub fn input(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.job.input = Some(input.into());
        self
    }

    /// Sets the payload of a handler, encoded as JSON.
    ///
    /// # Errors
    /// The payload cannot be encoded.
    pub fn payload<T: Serialize + ?Sized>(mut self, payload: &T) -> Result<Self, Error> {
        self.job.script = serde_json::to_string(payload).map_err(|source| Error::Payload {
            what: "payload",
            id: self.job.id.clone(),
            source,
        })?;
        Ok(self)
    }

    /// Sets the caller's id and context, which scripts read as `CALLER_ID` and `CONTEXT_ID`.
    #[must_use]
    pub fn caller(mut self, caller_id: impl Into<String>, context_id: impl Into<String>) -> Self {
        self.job.caller_id = caller_id.into();
        self.job.context_id = context_id.into();
        self
    }

    /// Sets the longest time of one attempt, in whole seconds, rounded up. Default: 1,800 s.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.job.timeout = seconds(timeout);
        self
    }

    /// Sets the number of attempts after a failed first one. Default: 0.
    #[must_use]
    pub fn retries(mut self, retries: u32) -> Self {
        self.job.retries = retries;
        self
    }

    /// Allows the job to run beside other jobs of its worker. Default: true. With false, the job waits until running
    /// jobs have ended, and no other starts beside it. Its timeout begins with its run.
    #[must_use]
    pub fn concurrent(mut self, concurrent: bool) -> Self {
        self.job.concurrent = concurrent;
        self
    }

    /// Sets the environment variables of the script.
    #[must_use]
    pub fn env(mut self, env_vars: BTreeMap<String, String>) -> Self {
        self.job.env_vars = env_vars.into();
        self
    }

    /// Sets a file on the worker's host to which the job's output is appended. The file must be inside a folder that
    /// the worker allows ([`Worker::log_dir`](crate::Worker::log_dir)), or the job fails. A relative path is relative
    /// to the first of these folders.
    #[must_use]
    pub fn log_path(mut self, path: impl Into<String>) -> Self {
        self.job.log_path = Some(path.into());
        self
    }

    /// Requests a sandbox for the runs. It can only narrow what the queue and the worker give. Default: nothing is
    /// requested.
    #[must_use]
    pub fn sandbox(mut self, sandbox: SandboxSettings) -> Self {
        self.job.sandbox = sandbox;
        self
    }

    /// Sets the trace and parent span of the job (W3C trace context). Its runs can read it.
    #[must_use]
    pub fn trace(mut self, trace: TraceContext) -> Self {
        self.job.trace = Some(trace);
        self
    }

    /// Sets the digest of the request that creates the job, so that a repetition is recognized by its record
    /// ([`Job::request_digest`](meshwork_model::job::Job::request_digest)).
    #[must_use]
    pub fn request_digest(mut self, digest: impl Into<String>) -> Self {
        self.job.request_digest = Some(digest.into());
        self
    }

    /// Adds the job to a batch, which must exist and be open ([`Client::batch`](crate::Client::batch)).
    #[must_use]
    pub fn batch(mut self, batch: BatchId) -> Self {
        self.job.batch = Some(Membership { batch, by: None });
        self
    }

    /// Requests that the result is pushed to the reply list, so that a waiting client need not poll.
    #[must_use]
    pub fn reply(mut self, reply: bool) -> Self {
        self.job.reply = reply;
        self
    }

    /// Checks the job, and the syntax of its script with the parser of its runtime. Python scripts need an interpreter
    /// on this host.
    ///
    /// # Errors
    /// The job or its script is invalid; the error has the position. Or no parser is available, as for payloads of
    /// handlers.
    #[boxed]
    pub async fn check_syntax(&self) -> Result<(), Error> {
        self.job.check()?;
        let script_type = self.job.route.script_type.as_str();
        let checked = runtime::check(script_type, self.job.script.as_bytes()).await;
        checked.map_err(|source| Error::Script {
            id: self.job.id.clone(),
            source,
        })
    }

    /// Checks and returns the job. With the feature `opentelemetry`, a job without a trace joins that of the current
    /// span.
    ///
    /// # Errors
    /// The job is invalid.
    pub fn build(mut self) -> Result<NewJob, Invalid> {
        self.job.check()?;
        self.job.trace = self.job.trace.or_else(span::current);
        Ok(self.job)
    }

    /// Returns the default wait of a caller: all runs with backoff, the prerequisite timeout, the delay, and 1 h in the
    /// queue. The time until [`JobRequest::run_at`] is not included; add it.
    #[must_use]
    pub fn wait_budget(&self) -> Duration {
        let job = &self.job;
        let pause = RetryBackoff::default().cap;
        let times = u64::from(job.retries) + 1;
        let waits = match job.prerequisite_timeout {
            _ if job.depends_on.is_empty() => 0,
            // A prerequisite may take as long.
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

/// Returns whole seconds, rounded up.
fn seconds(duration: Duration) -> u64 {
    let more = u64::from(duration.subsec_nanos() > 0);
    duration.as_secs().saturating_add(more)
}

/// Returns whole milliseconds, rounded up.
fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}
