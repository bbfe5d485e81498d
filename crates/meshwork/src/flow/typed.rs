//! Flows of typed jobs: the output of a job is the input of the next one, as types.

use std::marker::PhantomData;
use std::ops::Deref;

use meshwork_model::flow::{Node, Plan, Work};
use meshwork_model::job::limits::DEFAULT_TIMEOUT;
use meshwork_model::job::{NewJob, OnFailure};
use meshwork_model::route::Priority;
use meshwork_model::sandbox::SandboxSettings;
use serde::de::DeserializeOwned;

use super::{Flow, FlowFaults, FlowView, Task};
use crate::handler::ITEM;
use crate::{Enqueueable, Job};

/// A chain of typed jobs. `T` is the output of its last job, and so the [`Job::Input`] of the next one.
///
/// ```
/// use meshwork::flow::Flow;
///
/// #[meshwork::job(output = Vec<String>)]
/// struct Fetch { day: String }
///
/// #[meshwork::job(input = String, output = u64, retries = 3)]
/// struct Parse { strict: bool }
///
/// #[meshwork::job(input = Vec<u64>, output = String)]
/// struct Report;
///
/// let flow = Flow::new("nightly")
///     .start(Fetch { day: "mon".into() })
///     .each(Parse { strict: true })
///     .options(|parse| parse.concurrency(8))
///     .then(Report)
///     .plan()?;
/// assert_eq!(flow.jobs[1].retries, 3);
/// # Ok::<(), meshwork::flow::FlowFaults>(())
/// ```
///
/// Each job is named by its type ([`Job::NAME`]), of `a-z`, `0-9` and `_`, and is in a flow once. The options of its type
/// apply: `retries`, `backoff`, `timeout`, `priority`, `group` and tags. [`Chain::plan`] refuses the others by name.
///
/// The compiler checks the types of outputs and inputs. It cannot check that the worker has a handler for each job, or
/// that its program has the same types: an input that does not fit fails the job permanently.
#[derive(Debug, Clone)]
#[must_use = "a flow is submitted by its plan"]
pub struct Chain<T> {
    flow: Flow,
    last: &'static str,
    of: PhantomData<fn() -> T>,
}

/// A plan whose last job has the output `T`. [`FlowSession::submit`](super::FlowSession::submit) takes it as a [`Plan`].
///
/// [`Chain`] has an example.
#[derive(Debug, Clone)]
pub struct TypedPlan<T> {
    plan: Plan,
    last: &'static str,
    of: PhantomData<fn() -> T>,
}

impl Flow {
    /// Adds a typed job without an input. The [`Chain`] goes on with its output.
    pub fn start<J: Job<Input = ()>>(self, job: J) -> Chain<J::Output> {
        Chain::new(self.typed(job), J::NAME)
    }

    /// Adds a typed job with the options of its type.
    fn typed<J: Job>(self, job: J) -> Self {
        let name = J::NAME;
        let built = job.into_request().map_err(|error| error.to_string());
        let built = built.and_then(|it| it.build().map_err(|error| error.to_string()));
        match built {
            Ok(job) => self.job(name, Task::script(name, &*job.script)).set(&job),
            Err(error) => self.faulty(format!("the job `{name}`: {error}")),
        }
    }

    /// Sets the options of a job on the last one.
    fn set(mut self, job: &NewJob) -> Self {
        let refused = impossible(job);
        if !refused.is_empty() {
            let (name, refused) = (&job.route.script_type, refused.join("`, `"));
            return self.faulty(format!(
                "the job `{name}` has the option `{refused}`, which no job of a flow has: leave it out of the type"
            ));
        }
        // A name that no job of a flow can have is a fault already.
        if let Some(node) = self.last_mut(job.route.script_type.as_str()) {
            apply(job, node);
        }
        self
    }
}

/// Writes the options of a job into a job of a plan.
fn apply(job: &NewJob, node: &mut Node) {
    node.retries = job.retries;
    node.backoff_ms = job.backoff_ms;
    node.timeout_ms = (job.timeout != DEFAULT_TIMEOUT).then(|| job.timeout.saturating_mul(1000));
    node.tags = job.tags.iter().map(ToString::to_string).collect();
    if let Work::Run(run) = &mut node.work {
        run.group = job.route.group.as_ref().map(ToString::to_string);
        let priority = job.route.priority;
        run.priority = (priority != Priority::default()).then(|| priority.to_string());
    }
}

/// Returns the names of the options that no job of a flow has.
fn impossible(job: &NewJob) -> Vec<&'static str> {
    // All fields, so that a new option is either written by `apply` or refused here.
    let NewJob {
        id: _,
        route,
        script: _,
        input,
        caller_id,
        context_id,
        timeout: _,
        retries: _,
        concurrent,
        env_vars,
        log_path,
        reply,
        depends_on,
        input_names: _,
        on_failure,
        prerequisite_timeout,
        fallback,
        backoff_ms: _,
        start_timeout_ms,
        when,
        key,
        sandbox,
        tags: _,
        unique,
        trace: _,
        request_digest,
        batch,
        spread,
    } = job;
    let options = [
        ("instance", route.instance.is_some()),
        ("input", input.is_some()),
        ("caller", !caller_id.is_empty() || !context_id.is_empty()),
        ("concurrent", !concurrent),
        ("env", env_vars.iter().next().is_some()),
        ("log_path", log_path.is_some()),
        ("reply", *reply),
        ("depends_on", !depends_on.is_empty()),
        ("on_failure", *on_failure != OnFailure::Fail),
        ("prerequisite_timeout", prerequisite_timeout.is_some()),
        ("fallback", fallback.is_some()),
        ("start_timeout", start_timeout_ms.is_some()),
        ("delay", when.is_some()),
        ("key", key.is_some()),
        ("sandbox", *sandbox != SandboxSettings::default()),
        ("unique", unique.is_some()),
        ("request_digest", request_digest.is_some()),
        ("batch", batch.is_some()),
        ("spread", spread.is_some()),
    ];
    let set = options.into_iter().filter(|(_, is_set)| *is_set);
    set.map(|(name, _)| name).collect()
}

impl<T> Chain<T> {
    fn new(flow: Flow, last: &'static str) -> Self {
        let of = PhantomData;
        Self { flow, last, of }
    }

    /// Adds a job whose input is the output before it.
    pub fn then<J: Job<Input = T>>(self, job: J) -> Chain<J::Output> {
        let flow = self.flow.typed(job).needs([self.last]);
        Chain::new(flow, J::NAME)
    }

    /// Sets options of the last job by the methods of [`Flow`], such as [`Flow::retries`] or [`Flow::condition`].
    pub fn options(mut self, set: impl FnOnce(Flow) -> Flow) -> Self {
        self.flow = set(self.flow);
        self
    }

    /// Returns the plan, checked as that of a file.
    ///
    /// # Errors
    /// All faults that were found.
    pub fn plan(self) -> Result<TypedPlan<T>, FlowFaults> {
        Ok(TypedPlan {
            plan: self.flow.plan()?,
            last: self.last,
            of: PhantomData,
        })
    }
}

impl<T> Chain<Vec<T>> {
    /// Adds a job that runs once for each item of the output before it. The next job gets the outputs of all runs, in
    /// order. A whole number in an item has at most 64 bits with a sign.
    pub fn each<J: Job<Input = T>>(self, job: J) -> Chain<Vec<J::Output>> {
        let flow = self.flow.typed(job).needs([self.last]);
        let flow = flow.foreach(format!("{}.result", self.last));
        // As a part of the input an item keeps its type.
        Chain::new(flow.with(ITEM, "{{item}}"), J::NAME)
    }
}

impl<T: DeserializeOwned> TypedPlan<T> {
    /// Returns the output of the last job of a flow of this plan; `None` if it has not finished.
    ///
    /// # Errors
    /// The result is not of the type.
    pub fn output(&self, view: &FlowView) -> Result<Option<T>, serde_json::Error> {
        let last = view.jobs.iter().find(|job| job.name == self.last);
        let finished = last.filter(|job| job.status == "finished");
        finished.map(|job| T::deserialize(&job.result)).transpose()
    }
}

impl<T> Deref for TypedPlan<T> {
    type Target = Plan;

    fn deref(&self) -> &Plan {
        &self.plan
    }
}
