//! The tools: methods of the API under names for agents.

use meshwork_model::api_key::Scope;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::api::{Method, find};

/// Items of a page where an agent gives no number: it has little room for them.
const FEW: u64 = 20;

/// A tool.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tool {
    /// Its name for agents.
    pub(super) name: &'static str,
    title: &'static str,
    /// Name of its method.
    method: &'static str,
    /// The end of its description.
    note: &'static str,
    kind: Kind,
}

/// Effect of a tool, as its annotations say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Changes nothing.
    Reads,
    /// Adds something. A repeated call adds it again, unless it has the same id.
    Adds,
    /// Ends or changes something that is there.
    Changes,
}

const fn reads(
    name: &'static str,
    title: &'static str,
    method: &'static str,
    note: &'static str,
) -> Tool {
    Tool {
        name,
        title,
        method,
        note,
        kind: Kind::Reads,
    }
}

/// All tools.
const TOOLS: &[Tool] = &[
    reads(
        "search_jobs",
        "Search jobs",
        "job.list",
        "Filter by type, group, queue, status, tag, batch or time. `next` continues as `cursor`.",
    ),
    reads(
        "get_job",
        "Read a job",
        "job.get",
        "With its status, error, output and attempts.",
    ),
    reads(
        "explain_job",
        "Explain why a job does not run",
        "job.why",
        "Use it for jobs that wait.",
    ),
    reads(
        "get_job_logs",
        "Read the log of a job",
        "job.logs",
        "`last` continues as `after`.",
    ),
    reads(
        "get_job_events",
        "Read the events of a job",
        "job.events",
        "They tell what has happened to it, when, and by whom.",
    ),
    reads(
        "list_queues",
        "List the queues",
        "queue.list",
        "With the number of waiting and running jobs.",
    ),
    reads(
        "get_queue",
        "Read a queue",
        "queue.get",
        "With its jobs by state, its limits and its pause.",
    ),
    reads(
        "list_workers",
        "List the workers",
        "worker.list",
        "With the types of jobs that they run.",
    ),
    reads(
        "list_dead_letters",
        "List the dead letters",
        "dead.list",
        "Jobs that failed for good, with the reason.",
    ),
    reads(
        "list_schedules",
        "List the schedules",
        "schedule.list",
        "With the next run of each.",
    ),
    reads(
        "list_flows",
        "List the flows",
        "flow.list",
        "With the state of each.",
    ),
    reads(
        "get_flow",
        "Read a flow",
        "flow.get",
        "With the state of each of its jobs.",
    ),
    Tool {
        name: "create_job",
        title: "Enqueue a job",
        method: "job.create",
        note: "Give an `id`: a repeated call with the same id creates no second job.",
        kind: Kind::Adds,
    },
    Tool {
        name: "cancel_job",
        title: "Cancel a job",
        method: "job.cancel",
        note: "Ask the user first: its work is lost.",
        kind: Kind::Changes,
    },
    Tool {
        name: "retry_job",
        title: "Run a job again",
        method: "job.retry",
        note: "For a job that has ended.",
        kind: Kind::Changes,
    },
];

/// A tool as clients see it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    name: &'static str,
    title: &'static str,
    description: String,
    input_schema: Value,
    annotations: Value,
}

impl Tool {
    /// Its method. A tool without one is not listed.
    pub(super) fn method(&self) -> Option<&'static Method> {
        find(self.method)
    }

    fn is_allowed(&self, changes: bool) -> bool {
        changes || self.kind == Kind::Reads
    }

    /// Adds what an agent leaves out.
    pub(super) fn complete(&self, method: &Method, arguments: &mut Map<String, Value>) {
        let has_limit = schema(method)["properties"].get("limit").is_some();
        if has_limit && !arguments.contains_key("limit") {
            arguments.insert("limit".to_owned(), json!(FEW));
        }
    }

    fn listed(&self, method: &Method) -> Listed {
        let (reads, destroys) = (self.kind == Kind::Reads, self.kind == Kind::Changes);
        Listed {
            name: self.name,
            title: self.title,
            description: format!("{}. {}", method.summary, self.note),
            input_schema: schema(method),
            annotations: json!({
                "title": self.title,
                "readOnlyHint": reads,
                "destructiveHint": destroys && method.scope != Scope::Viewer && self.name != "retry_job",
                "idempotentHint": self.kind != Kind::Adds,
                "openWorldHint": self.kind == Kind::Adds,
            }),
        }
    }
}

/// Schema of the parameters of a method, in one piece.
fn schema(method: &Method) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut generator = settings.for_deserialize().into_generator();
    let mut schema = method.params(&mut generator).to_value();
    if let Some(object) = schema.as_object_mut() {
        object.remove("title");
        object.remove("$schema");
    }
    schema
}

/// Finds a tool; those that change something only with `changes`.
pub(super) fn tool(name: &str, changes: bool) -> Option<&'static Tool> {
    let mut tools = TOOLS.iter().filter(|tool| tool.is_allowed(changes));
    tools.find(|tool| tool.name == name)
}

/// Returns true for a tool that needs the permission to change something.
pub(super) fn is_withheld(name: &str) -> bool {
    tool(name, false).is_none() && tool(name, true).is_some()
}

/// The list of tools.
pub(super) fn list(changes: bool) -> Value {
    let tools = TOOLS.iter().filter(|tool| tool.is_allowed(changes));
    let listed: Vec<_> = tools
        .filter_map(|tool| Some(tool.listed(tool.method()?)))
        .collect();
    json!(listed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_that_change_need_the_option_and_no_reader_changes() {
        for tool in TOOLS {
            let Some(method) = tool.method() else {
                // Methods of flows come with contexts.
                assert!(tool.method.starts_with("flow."), "{}", tool.name);
                continue;
            };
            let reads = method.scope == Scope::Viewer;
            assert_eq!(tool.kind == Kind::Reads, reads, "{}", tool.name);
            let schema = schema(method);
            assert_eq!(schema["type"], "object", "{}", tool.name);
            assert!(!schema.to_string().contains("$ref"), "{}", tool.name);
        }
        let names = |changes| list(changes).as_array().map_or(0, Vec::len);
        assert_eq!(names(true), names(false) + 3);
        assert!(is_withheld("cancel_job") && !is_withheld("get_job") && !is_withheld("x"));
    }
}
