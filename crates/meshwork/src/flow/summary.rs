//! Flows as JSON: a line of a list, and the graph. [`super::FlowView`] is the whole.

use meshwork_model::flow::{Cycle, Dag, JobState, Plan};
use meshwork_model::keys::context::{ContextId, FlowId};
use meshwork_model::time;
use serde::{Deserialize, Serialize};

use super::FlowView;

/// Flow in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlowSummary {
    /// Number of the flow.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// `dispatched`, `started`, `finished` or `error`.
    pub status: String,
    /// Time of its submission (RFC 3339).
    pub created_at: Option<String>,
    /// The reason why it did not finish.
    pub error: Option<String>,
    /// The schedule that has started the flow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
}

impl FlowSummary {
    /// Fields of the record that it needs.
    pub(crate) const FIELDS: [&'static str; 6] = [
        "status",
        "mw_name",
        "created_at",
        "error",
        "mw_schedule",
        "mw_created_ms",
    ];

    /// Returns a flow whose key is no record.
    pub(crate) fn damaged(id: FlowId, key: &str) -> Self {
        let why = format!("the key {key} holds a value of another kind: rename or delete it");
        Self {
            id: id.0,
            name: String::new(),
            status: "error".to_owned(),
            created_at: None,
            error: Some(why),
            schedule: None,
        }
    }

    /// Reads these fields; `None` if there is no record.
    pub(crate) fn read(id: FlowId, fields: &[Option<Vec<u8>>]) -> Option<Self> {
        fields.iter().any(Option::is_some).then_some(())?;
        let text = |at: usize| {
            let bytes = fields.get(at)?.as_deref()?;
            Some(String::from_utf8_lossy(bytes).into_owned())
        };
        let number = |at: usize| text(at).and_then(|text| text.parse::<u64>().ok());
        Some(Self {
            id: id.0,
            name: text(1).unwrap_or_default(),
            status: text(0).unwrap_or_default(),
            created_at: number(2).map(|seconds| time::iso(time::exact(seconds, number(5)))),
            error: text(3),
            schedule: text(4),
        })
    }
}

/// Graph of a flow, with the names of its jobs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FlowDag(pub Dag<String>);

impl FlowDag {
    /// Returns the graph of a flow that was not submitted.
    ///
    /// # Errors
    /// A cycle.
    pub fn of_plan(plan: &Plan) -> Result<Self, Cycle> {
        let name = |number: usize| plan.jobs[number].name.to_string();
        Dag::new(plan, name, |_| JobState::default()).map(Self)
    }

    /// Returns the graph of a submitted flow.
    pub(crate) fn of(plan: &Plan, view: &FlowView, context: ContextId) -> Result<Self, Cycle> {
        let name = |number: usize| plan.jobs[number].name.to_string();
        let ms = |at: &Option<String>| at.as_deref().and_then(time::parse_iso);
        let state = |number: usize| {
            let job = view.jobs.get(number);
            job.map_or_else(JobState::default, |job| JobState {
                status: Some(record_word(job.status).to_owned()),
                started_ms: ms(&job.started_at),
                finished_ms: ms(&job.ended_at),
                error: job.error.clone(),
            })
        };
        let mut dag = Dag::new(plan, name, state)?;
        dag.flow_id = Some(view.id.0);
        dag.caller_id = Some(view.caller);
        dag.context_id = Some(context.get());
        dag.status = Some(view.status.clone());
        if view.is_finished() {
            let outputs = view.outputs.clone().into_iter().collect();
            dag.result = Some(serde_json::Value::Object(outputs));
        }
        Ok(Self(dag))
    }
}

/// Returns the word that a record has for a status of a flow's job.
fn record_word(status: &str) -> &str {
    match status {
        "waiting" => "waiting_for_prerequisites",
        "ready" => "dispatched",
        other => other,
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for FlowDag {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "FlowDag".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let names = |about: &str| serde_json::json!({"type": "array", "items": {"type": "string"}, "description": about});
        let number =
            |about: &str| serde_json::json!({"type": ["integer", "null"], "description": about});
        let whole = |about: &str| serde_json::json!({"type": "integer", "description": about});
        let text = |about: &str| serde_json::json!({"type": "string", "description": about});
        schemars::json_schema!({
            "type": "object",
            "description": "Graph of a flow, with the names of its jobs.",
            "properties": {
                "flow_id": number("The flow."),
                "caller_id": number("The actor that submitted it."),
                "context_id": number("The context in which it runs."),
                "status": {"type": ["string", "null"], "description": "State of the flow."},
                "nodes": {"type": "array", "description": "The jobs, in the order of the plan.", "items": {
                    "type": "object",
                    "properties": {
                        "id": text("The job."),
                        "script_type": text("Type of its script, or `approve`, `wait`, `flow`, `group`."),
                        "status": {"type": ["string", "null"], "description": "State of the job."},
                        "depends": names("The jobs that it needs."),
                        "level": whole("One more than the highest level of its needs; 0 for a compensation."),
                        "compensates": text("The job that this one undoes."),
                        "started_at": whole("Start, in seconds since 1970."),
                        "finished_at": whole("End, in seconds since 1970."),
                        "started_ms": whole("Start, in milliseconds since 1970."),
                        "finished_ms": whole("End, in milliseconds since 1970."),
                        "error": text("The reason why it failed."),
                    },
                    "required": ["id", "script_type", "status", "depends", "level"],
                }},
                "edges": {"type": "array", "description": "Pairs of jobs: the second one needs the first one.",
                    "items": {"type": "array", "items": {"type": "string"}}},
                "levels": {"type": "array", "description": "The jobs of each level, from level 1.",
                    "items": {"type": "array", "items": {"type": "string"}}},
                "ready": names("The jobs that could start now."),
                "started": names("The jobs that have started."),
                "completed": names("The jobs that have finished."),
                "failed": names("The jobs that have failed."),
                "result": {"description": "Outputs of the flow, if it has finished."},
            },
            "required": ["flow_id", "caller_id", "context_id", "status", "nodes", "edges", "levels", "ready", "started", "completed", "failed", "result"],
        })
    }
}
