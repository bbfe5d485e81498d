//! Flows built in Rust: the same plan as that of a file.

use std::time::Duration;

use meshwork_flow::{FlowFault, FlowFaults, digest, expr};
use meshwork_model::flow::{self, Approve, Input, Node, NodeName, Plan, Run, Text, Wait, Work};
use meshwork_model::name::ScriptType;
use serde_json::Value;

/// A flow that is built job by job. Options after [`Flow::job`] belong to that job.
///
/// ```
/// use meshwork::flow::{Flow, Task};
///
/// let plan = Flow::new("nightly")
///     .env("REGION", "eu")
///     .job("fetch", Task::python("result = {'files': ['a', 'b']}"))
///     .retries(3)
///     .job("parse", Task::rhai("INPUT.len()"))
///     .needs(["fetch"])
///     .foreach("fetch.result.files")
///     .concurrency(8)
///     .job("publish", Task::approve("Publish {{parse.total}} files?"))
///     .needs(["parse"])
///     .plan()?;
/// assert_eq!(plan.jobs.len(), 3);
/// # Ok::<(), meshwork::flow::FlowFaults>(())
/// ```
#[derive(Debug, Clone)]
pub struct Flow {
    plan: Plan,
    faults: Vec<FlowFault>,
}

/// The work of a job of a [`Flow`].
#[derive(Debug, Clone)]
pub struct Task(Kind);

#[derive(Debug, Clone)]
enum Kind {
    Script { script_type: String, text: String },
    Gate(Work),
    Nested(Box<Plan>),
}

impl Task {
    /// A script of this type.
    #[must_use]
    pub fn script(script_type: impl Into<String>, text: impl Into<String>) -> Self {
        Self(Kind::Script {
            script_type: script_type.into(),
            text: text.into(),
        })
    }

    /// A script in Rhai.
    #[must_use]
    pub fn rhai(text: impl Into<String>) -> Self {
        Self::script(ScriptType::OSIS, text)
    }

    /// A script in Python.
    #[must_use]
    pub fn python(text: impl Into<String>) -> Self {
        Self::script(ScriptType::PYTHON, text)
    }

    /// A question, a template, that an admin of the context answers.
    #[must_use]
    pub fn approve(question: impl Into<String>) -> Self {
        Self::gate(Work::Approve(Approve {
            question: text(question),
            ..Approve::default()
        }))
    }

    /// A wait of this length, counted in milliseconds.
    #[must_use]
    pub fn wait_for(span: Duration) -> Self {
        Self::gate(Work::Wait(Wait::For(millis(span))))
    }

    /// A wait until a time, in milliseconds since 1970.
    #[must_use]
    pub const fn wait_until(ms: u64) -> Self {
        Self::gate(Work::Wait(Wait::Until(ms)))
    }

    /// A wait for a message of this type from an actor.
    #[must_use]
    pub fn wait_for_message(message_type: impl Into<String>, from: u32) -> Self {
        let message_type = message_type.into();
        Self::gate(Work::Wait(Wait::Message { message_type, from }))
    }

    /// A nested flow.
    #[must_use]
    pub fn flow(plan: Plan) -> Self {
        Self(Kind::Nested(Box::new(plan)))
    }

    const fn gate(work: Work) -> Self {
        Self(Kind::Gate(work))
    }
}

impl Flow {
    /// A flow of this name: 1 to 64 of the characters `A-Z a-z 0-9 _ -`.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            plan: Plan::new(name),
            faults: Vec::new(),
        }
    }

    /// Adds a job. The following options belong to it.
    #[must_use]
    pub fn job(mut self, name: &str, task: Task) -> Self {
        let Some(name) = self.name(name) else {
            return self;
        };
        let work = match task.0 {
            Kind::Script { script_type, text } => {
                let script = digest(&text);
                self.plan.scripts.insert(script.clone(), text);
                Work::Run(Run {
                    script,
                    script_type,
                    ..Run::default()
                })
            }
            Kind::Gate(work) => work,
            Kind::Nested(plan) => {
                let key = digest(&serde_json::to_string(&plan).unwrap_or_default());
                self.plan.flows.insert(key.clone(), *plan);
                Work::Flow(key)
            }
        };
        self.plan.jobs.push(Node::new(name, work));
        self
    }

    /// The jobs that the last job needs.
    #[must_use]
    pub fn needs<'n>(mut self, names: impl IntoIterator<Item = &'n str>) -> Self {
        let names: Vec<&str> = names.into_iter().collect();
        let names: Vec<NodeName> = names
            .into_iter()
            .filter_map(|name| self.name(name))
            .collect();
        self.last("needs", |job| job.needs.extend(names))
    }

    /// An expression: the last job is skipped if it is false. `if` in a file.
    #[must_use]
    pub fn condition(self, expression: impl Into<String>) -> Self {
        self.last("condition", |job| job.condition = Some(text(expression)))
    }

    /// An expression: the last job runs once for each item.
    #[must_use]
    pub fn foreach(self, expression: impl Into<String>) -> Self {
        self.last("foreach", |job| job.foreach = Some(text(expression)))
    }

    /// The most items of the last job that run at once. Default: no limit.
    #[must_use]
    pub fn concurrency(self, most: u32) -> Self {
        self.last("concurrency", |job| job.concurrency = Some(most))
    }

    /// The attempts of the last job after the first one failed. Default: 0.
    #[must_use]
    pub fn retries(self, retries: u32) -> Self {
        self.last("retries", |job| job.retries = retries)
    }

    /// The pause before the first retry of the last job, counted in milliseconds.
    #[must_use]
    pub fn backoff(self, pause: Duration) -> Self {
        self.last("backoff", |job| job.backoff_ms = Some(millis(pause)))
    }

    /// The longest time of an attempt of the last job; of the flow, if there is no job yet. Counted in milliseconds.
    #[must_use]
    pub fn timeout(mut self, most: Duration) -> Self {
        match self.plan.jobs.last_mut() {
            Some(job) => job.timeout_ms = Some(millis(most)),
            None => self.plan.timeout_ms = Some(millis(most)),
        }
        self
    }

    /// Lets the flow go on if the last job fails. `continue` in a file.
    #[must_use]
    pub fn continue_on_failure(self) -> Self {
        self.last("continue_on_failure", |job| job.continue_on_failure = true)
    }

    /// The job that the last job undoes.
    #[must_use]
    pub fn compensates(mut self, name: &str) -> Self {
        let name = self.name(name);
        self.last("compensates", |job| job.compensates = name)
    }

    /// A variable of the last job, a template; of the flow, if there is no job yet.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let env = match self.plan.jobs.last_mut() {
            Some(job) => &mut job.env,
            None => &mut self.plan.env,
        };
        env.insert(name.into(), text(value));
        self
    }

    /// A tag of the last job; of all jobs of the flow, if there is no job yet.
    #[must_use]
    pub fn tag(mut self, tag: impl Into<String>) -> Self {
        let tags = match self.plan.jobs.last_mut() {
            Some(job) => &mut job.tags,
            None => &mut self.plan.tags,
        };
        tags.insert(tag.into());
        self
    }

    /// An input of the last job, whose texts are templates. `with` in a file.
    #[must_use]
    pub fn with(self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        let input = Input {
            value: value.into(),
            at: None,
        };
        self.last("with", |job| {
            job.inputs.insert(name.into(), input);
        })
    }

    /// An input of the flow with its default; `null`: it must be given.
    #[must_use]
    pub fn input(mut self, name: impl Into<String>, default: impl Into<Value>) -> Self {
        self.plan.inputs.insert(name.into(), default.into());
        self
    }

    /// An output of the flow: a template.
    #[must_use]
    pub fn output(mut self, name: impl Into<String>, template: impl Into<String>) -> Self {
        self.plan.outputs.insert(name.into(), text(template));
        self
    }

    /// Lets independent jobs go on after a failure. `fail_fast: false` in a file.
    #[must_use]
    pub fn keep_going(mut self) -> Self {
        self.plan.fail_fast = false;
        self
    }

    /// The plan, checked as that of a file.
    ///
    /// # Errors
    ///
    /// All faults that were found.
    pub fn plan(self) -> Result<Plan, FlowFaults> {
        let mut faults = self.faults;
        let fault = |message: String| FlowFault {
            file: None,
            at: None,
            message,
        };
        if faults.is_empty() {
            faults.extend(
                flow::check(&self.plan)
                    .iter()
                    .map(|found| fault(found.to_string())),
            );
        }
        if faults.is_empty() {
            let found = expr::check(&self.plan).into_iter();
            faults.extend(found.map(|found| fault(found.message)));
        }
        match faults.is_empty() {
            true => Ok(self.plan),
            false => Err(FlowFaults(faults)),
        }
    }

    /// Adds a fault.
    pub(super) fn faulty(mut self, message: String) -> Self {
        self.fault(message);
        self
    }

    /// Returns the last job, if it has this name.
    pub(super) fn last_mut(&mut self, name: &str) -> Option<&mut Node> {
        let last = self.plan.jobs.last_mut();
        last.filter(|job| job.name.as_str() == name)
    }

    fn fault(&mut self, message: String) {
        let (file, at) = (None, None);
        self.faults.push(FlowFault { file, at, message });
    }

    fn name(&mut self, name: &str) -> Option<NodeName> {
        let read = name.parse();
        read.map_err(|error: flow::NodeNameError| self.fault(error.to_string()))
            .ok()
    }

    fn last(mut self, option: &str, change: impl FnOnce(&mut Node)) -> Self {
        match self.plan.jobs.last_mut() {
            Some(job) => change(job),
            None => self.fault(format!("`{option}` belongs to a job: add one before it")),
        }
        self
    }
}

fn text(text: impl Into<String>) -> Text {
    Text {
        text: text.into(),
        at: None,
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A plan without the places of its file.
    fn placeless(plan: &Plan) -> Value {
        fn strip(value: &mut Value) {
            match value {
                Value::Object(entries) => {
                    entries.remove("at");
                    entries.values_mut().for_each(strip);
                }
                Value::Array(items) => items.iter_mut().for_each(strip),
                _ => {}
            }
        }
        let mut json = serde_json::to_value(plan).unwrap();
        strip(&mut json);
        json
    }

    #[test]
    fn a_flow_in_rust_is_that_of_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("f.yaml");
        let yaml = r#"
flow: nightly
env: {REGION: eu}
timeout: 2h
fail_fast: false
tags: [nightly]
inputs: {limit: 3}
jobs:
  fetch: {script: "1", type: python, retries: 3, backoff: 5s, tags: [io, team:a]}
  parse:
    script: "2"
    type: osis
    needs: [fetch]
    foreach: fetch.result.files
    concurrency: 8
    continue: true
    with: {limit: "{{inputs.limit}}"}
  publish: {approve: "Publish {{fetch.result.count}}?", needs: [parse], timeout: 1d}
  upload: {script: "1", type: python, needs: [publish], if: parse.failed == 0}
  rollback: {script: "3", type: python, compensates: upload, env: {A: "{{upload.result}}"}}
  pause: {wait: {for: 90s}, needs: [upload]}
outputs: {count: "{{fetch.result.count}}"}
"#;
        std::fs::write(&file, yaml).unwrap();
        let hour = Duration::from_secs(3600);
        let built = Flow::new("nightly")
            .env("REGION", "eu")
            .timeout(2 * hour)
            .keep_going()
            .tag("nightly")
            .input("limit", 3)
            .output("count", "{{fetch.result.count}}")
            .job("fetch", Task::python("1"))
            .retries(3)
            .backoff(Duration::from_secs(5))
            .tag("team:a")
            .tag("io")
            .job("parse", Task::rhai("2"))
            .needs(["fetch"])
            .foreach("fetch.result.files")
            .concurrency(8)
            .continue_on_failure()
            .with("limit", "{{inputs.limit}}")
            .job("publish", Task::approve("Publish {{fetch.result.count}}?"))
            .needs(["parse"])
            .timeout(24 * hour)
            .job("upload", Task::python("1"))
            .needs(["publish"])
            .condition("parse.failed == 0")
            .job("rollback", Task::python("3"))
            .compensates("upload")
            .env("A", "{{upload.result}}")
            .job("pause", Task::wait_for(Duration::from_secs(90)))
            .needs(["upload"])
            .plan()
            .unwrap();
        assert_eq!(
            placeless(&built),
            placeless(&crate::flow::load(&file).unwrap())
        );
    }

    #[test]
    fn nested_flows_and_other_waits() {
        let inner = Flow::new("inner")
            .input("n", Value::Null)
            .job("x", Task::rhai("1"));
        let flow = Flow::new("outer")
            .job("a", Task::flow(inner.plan().unwrap()))
            .with("n", json!([1]))
            .job("b", Task::wait_until(5))
            .job("c", Task::wait_for_message("done", 3))
            .needs(["a", "b"]);
        assert_eq!(flow.plan().unwrap().total_jobs(), 4);
    }

    #[test]
    fn faults_are_those_of_a_file() {
        for (flow, says) in [
            (
                Flow::new("f").needs(["a"]),
                "`needs` belongs to a job: add one before it",
            ),
            (
                Flow::new("f").job("A", Task::rhai("1")),
                "\"A\" is no name of a job",
            ),
            (
                Flow::new("f").job("a", Task::rhai("1")).needs(["a"]),
                "a → a",
            ),
            (
                Flow::new("f")
                    .job("a", Task::rhai("1"))
                    .condition("b.failed == 0"),
                "there is no `b` here",
            ),
            (
                Flow::new("f").tag("a b").job("a", Task::rhai("1")),
                "the tag \"a b\" is not possible",
            ),
            (
                Flow::new("f").job("a", Task::rhai(" ")),
                "the script is empty",
            ),
        ] {
            let said = flow.plan().unwrap_err().to_string();
            assert!(said.contains(says), "{said}");
        }
    }
}
