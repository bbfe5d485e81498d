//! The plan of a flow: pure data, made from a file or by the builder, and stored as JSON when the flow is submitted.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::name::{NodeName, Position};
use crate::peer::MessageTarget;
use crate::spread::SpreadName;

/// All that is known of a flow before it runs. It does not change while the flow runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The name of the flow: 1 to 64 of the characters `A-Z a-z 0-9 _ -`.
    pub name: String,
    /// Environment of all jobs: templates by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, Text>,
    /// Inputs by name. `null`: must be given when the flow is submitted.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inputs: BTreeMap<String, Value>,
    /// The most time that the flow may take, in milliseconds. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The first final failure skips all that has not started. Default: true.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub fail_fast: bool,
    /// Tags of all its jobs.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub tags: BTreeSet<String>,
    /// The times at which a deployed flow starts. The plan of a submitted flow has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<FlowSchedule>,
    /// The spread queue in one of whose parts a file's flow runs. The plan of a submitted flow has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<SpreadName>,
    /// The jobs, in the order of the file.
    pub jobs: Vec<Node>,
    /// Templates whose values are the flow's result, by name. Empty: the results of the jobs that nobody needs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub outputs: BTreeMap<String, Text>,
    /// The scripts of the jobs by the SHA-256 of their text, in hexadecimal digits.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub scripts: BTreeMap<String, String>,
    /// The plans of nested flows by the key that [`Work::Flow`] names. Each plan holds those that it names itself.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub flows: BTreeMap<String, Self>,
}

/// The times at which a deployed flow starts, as the file has them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowSchedule {
    /// The recurrence: a cron expression, or an interval as `@every 30s`.
    pub rhythm: String,
    /// The IANA name of the time zone. Default: UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// The rule for a slot whose predecessor has not ended: `skip`, `allow` or `replace`. Default: `skip`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap: Option<String>,
    /// The rule for missed slots: `one`, `skip` or `all:N`. Default: `one`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catch_up: Option<String>,
    /// Inputs by name, instead of their defaults.
    #[serde(default, rename = "with", skip_serializing_if = "BTreeMap::is_empty")]
    pub inputs: BTreeMap<String, Value>,
    /// The place in the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Position>,
}

/// An expression or a template, and where the file has it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Text {
    /// The text, as it was written.
    pub text: String,
    /// The place of the first character. None: the flow was not read from a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Position>,
}

/// An input of a job: a JSON value, whose texts are templates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The value.
    pub value: Value,
    /// Its place in the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Position>,
}

/// One job of a flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// Its name, which is unique in the flow.
    pub name: NodeName,
    /// Its place in the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Position>,
    /// The work that the job does.
    pub work: Work,
    /// The jobs that have to end first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<NodeName>,
    /// An expression: the job is skipped if its value is false.
    #[serde(default, rename = "if", skip_serializing_if = "Option::is_none")]
    pub condition: Option<Text>,
    /// An expression whose value is a list, a map or a whole number: the job runs once for each item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreach: Option<Text>,
    /// The most items that run at once. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// Further attempts after the first one failed. Default: 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retries: u32,
    /// The pause before the first retry, in milliseconds. Default: that of jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff_ms: Option<u64>,
    /// The most time of one attempt, or of a wait or approval, in milliseconds. Default: that of jobs, 7 days for approvals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The flow goes on if the job fails. Default: false.
    #[serde(default, rename = "continue", skip_serializing_if = "is_no")]
    pub continue_on_failure: bool,
    /// The job that this one undoes. Such a job is no part of the DAG.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compensates: Option<NodeName>,
    /// The job runs when the others have ended, after `on_failure` or `finally`. Its result is not that of the flow. Default:
    /// false.
    #[serde(default, skip_serializing_if = "is_no")]
    pub closes: bool,
    /// Environment of the job: templates by name. It goes before that of the flow.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, Text>,
    /// Input of the job, by name; inputs of a nested flow.
    #[serde(default, rename = "with", skip_serializing_if = "BTreeMap::is_empty")]
    pub inputs: BTreeMap<String, Input>,
    /// Tags of the job, beside those of the flow.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub tags: BTreeSet<String>,
}

/// The work of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Work {
    /// Runs a script.
    Run(Run),
    /// Waits until somebody approves.
    Approve(Approve),
    /// Waits for a time or a message.
    Wait(Wait),
    /// Runs the nested flow of this key in [`Plan::flows`].
    Flow(String),
}

/// A script to run, and where.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// The SHA-256 of the script's text, in hexadecimal digits: a key of [`Plan::scripts`].
    pub script: String,
    /// The type of the script, as `python` or `osis`.
    pub script_type: String,
    /// The file that the script was read from, as the flow's file names it. None: inline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The group of workers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The routing key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<String>,
    /// `high`, `normal` or `low`. Default: `normal`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<String>,
    /// The context in which the job runs, reached by a message. Default: the context of the flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<MessageTarget>,
}

/// A question that somebody has to answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approve {
    /// The question: a template.
    pub question: Text,
    /// The actors who may answer. Empty: the admins of the context.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvers: Vec<u32>,
    /// The actor who submitted the flow may not answer. Default: false.
    #[serde(default, skip_serializing_if = "is_no")]
    pub four_eyes: bool,
}

/// The event that a job waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Wait {
    /// A span from the time at which all needs have ended, in milliseconds.
    For(u64),
    /// A time, in milliseconds since 1970.
    Until(u64),
    /// A message of this type from this actor.
    Message {
        /// The type of the message.
        message_type: String,
        /// The actor that sends it.
        from: u32,
    },
}

impl Node {
    /// A job with this name and work, and the default of all else.
    #[must_use]
    pub const fn new(name: NodeName, work: Work) -> Self {
        Self {
            name,
            at: None,
            work,
            needs: Vec::new(),
            condition: None,
            foreach: None,
            concurrency: None,
            retries: 0,
            backoff_ms: None,
            timeout_ms: None,
            continue_on_failure: false,
            compensates: None,
            closes: false,
            env: BTreeMap::new(),
            inputs: BTreeMap::new(),
            tags: BTreeSet::new(),
        }
    }

    /// Returns true if a worker of the flow's context runs the job. All others end by the steps of the flow alone.
    #[must_use]
    pub const fn has_worker(&self) -> bool {
        matches!(&self.work, Work::Run(run) if run.context.is_none())
    }

    /// Returns true if the end of the job is that of a message: one that brings the job to another context, or one that
    /// somebody sends.
    #[must_use]
    pub const fn waits_for_message(&self) -> bool {
        match &self.work {
            Work::Run(run) => run.context.is_some(),
            Work::Wait(wait) => matches!(wait, Wait::Message { .. }),
            Work::Approve(_) | Work::Flow(_) => false,
        }
    }

    /// The kind of the job, as it is shown: the script's type, `approve`, `wait` or `flow`; `group` for a `foreach`.
    #[must_use]
    pub fn kind(&self) -> &str {
        match &self.work {
            _ if self.foreach.is_some() => "group",
            Work::Run(run) => &run.script_type,
            Work::Approve(_) => "approve",
            Work::Wait(_) => "wait",
            Work::Flow(_) => "flow",
        }
    }
}

impl Plan {
    /// A flow of this name without jobs.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            env: BTreeMap::new(),
            inputs: BTreeMap::new(),
            timeout_ms: None,
            fail_fast: true,
            tags: BTreeSet::new(),
            schedule: None,
            spread: None,
            jobs: Vec::new(),
            outputs: BTreeMap::new(),
            scripts: BTreeMap::new(),
            flows: BTreeMap::new(),
        }
    }

    /// The job of this name.
    #[must_use]
    pub fn job(&self, name: &str) -> Option<&Node> {
        self.jobs.iter().find(|job| job.name.as_str() == name)
    }

    /// The tags of one of its jobs, with those of the flow.
    pub fn tags_of<'a>(&'a self, job: &'a Node) -> BTreeSet<&'a str> {
        let all = self.tags.iter().chain(&job.tags);
        all.map(String::as_str).collect()
    }

    /// The number of its jobs, with those of nested flows.
    #[must_use]
    pub fn total_jobs(&self) -> usize {
        let nested = self.jobs.iter().filter_map(|job| match &job.work {
            Work::Flow(key) => self.flows.get(key),
            _ => None,
        });
        nested.fold(self.jobs.len(), |sum, plan| {
            sum.saturating_add(plan.total_jobs())
        })
    }

    /// The number of levels of nested flows, this one included.
    #[must_use]
    pub fn depth(&self) -> usize {
        1 + self.flows.values().map(Self::depth).max().unwrap_or(0)
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            at: None,
        }
    }
}

const fn yes() -> bool {
    true
}

const fn is_yes(value: &bool) -> bool {
    *value
}

const fn is_no(value: &bool) -> bool {
    !*value
}

const fn is_zero(value: &u32) -> bool {
    *value == 0
}
