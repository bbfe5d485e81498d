//! The tools: methods of the API under names for agents.

use std::sync::LazyLock;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::schema;
use crate::api::{ApiError, METHODS, Method, find};

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
    /// Runs code of a job, which may change or delete anything. A repeated call runs it again.
    Runs,
    /// Ends something that is there. A repeated call changes nothing more.
    Ends,
}

/// The part of a result that an agent reads on.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Part {
    /// Field, as `cut` names it; `None` for the whole result.
    pub(super) field: Option<String>,
    pub(super) offset: usize,
}

const fn tool(
    kind: Kind,
    (name, method): (&'static str, &'static str),
    title: &'static str,
    note: &'static str,
) -> Tool {
    Tool {
        name,
        title,
        method,
        note,
        kind,
    }
}

/// All tools.
const TOOLS: [Tool; 17] = [
    tool(
        Kind::Reads,
        ("search_jobs", "job.list"),
        "Search jobs",
        "Filter by type, group, queue, state, tag, batch or time. `next` continues as `cursor`.",
    ),
    tool(
        Kind::Reads,
        ("get_job", "job.get"),
        "Read a job",
        "With its state, error, output and attempts.",
    ),
    tool(
        Kind::Reads,
        ("wait_for_job", "job.result"),
        "Wait for a job",
        "Give `wait`. A job that has not ended then is an error, and goes on.",
    ),
    tool(
        Kind::Reads,
        ("explain_job", "job.why"),
        "Explain why a job does not run",
        "Use it for jobs that wait.",
    ),
    tool(
        Kind::Reads,
        ("get_job_logs", "job.logs"),
        "Read the log of a job",
        "`last` continues as `after`.",
    ),
    tool(
        Kind::Reads,
        ("get_job_events", "job.events"),
        "Read the events of a job",
        "They tell what has happened to it, when, and by whom.",
    ),
    tool(
        Kind::Reads,
        ("list_queues", "queue.list"),
        "List the queues",
        "With the number of waiting and running jobs.",
    ),
    tool(
        Kind::Reads,
        ("get_queue", "queue.get"),
        "Read a queue",
        "With its jobs by state, its limits and its pause.",
    ),
    tool(
        Kind::Reads,
        ("list_workers", "worker.list"),
        "List the workers",
        "With the types of jobs that they run.",
    ),
    tool(
        Kind::Reads,
        ("list_dead_letters", "dead.list"),
        "List the dead letters",
        "Jobs that failed for good, with the reason.",
    ),
    tool(
        Kind::Reads,
        ("list_schedules", "schedule.list"),
        "List the schedules",
        "With the next run of each.",
    ),
    tool(
        Kind::Reads,
        ("list_flows", "flow.list"),
        "List the flows",
        "With the state of each.",
    ),
    tool(
        Kind::Reads,
        ("get_flow", "flow.get"),
        "Read a flow",
        "With the state of each of its jobs.",
    ),
    tool(
        Kind::Reads,
        ("list_contexts", "context.list"),
        "List the contexts",
        "Other tools take the number of one as `context`.",
    ),
    tool(
        Kind::Runs,
        ("create_job", "job.create"),
        "Enqueue a job",
        "Its script may do anything that its worker may. Give an `id`: a repeated call with the same id creates no second job.",
    ),
    tool(
        Kind::Ends,
        ("cancel_job", "job.cancel"),
        "Cancel a job",
        "Ask the user first: its work is lost.",
    ),
    tool(
        Kind::Runs,
        ("retry_job", "job.retry"),
        "Run a job again",
        "For a job that has ended. Its script runs again, and its result is replaced.",
    ),
];

/// Schemas of all tools, in their order.
static SCHEMAS: LazyLock<Vec<Value>> =
    LazyLock::new(|| TOOLS.iter().map(Tool::make_schema).collect());

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

    pub(super) fn reads(&self) -> bool {
        self.kind == Kind::Reads
    }

    fn is_allowed(&self, changes: bool) -> bool {
        changes || self.reads()
    }

    fn schema(&self) -> &'static Value {
        let place = TOOLS.iter().position(|it| it.name == self.name);
        &SCHEMAS[place.unwrap_or_default()]
    }

    fn make_schema(&self) -> Value {
        let mut schema = self.method().map(schema::of).unwrap_or_default();
        let Some(properties) = schema["properties"].as_object_mut() else {
            return schema;
        };
        if let Some(limit) = properties.get_mut("limit") {
            limit["default"] = json!(FEW);
            let text = limit["description"].as_str().unwrap_or_default();
            let text = text
                .replace("Default: 1000.", "")
                .replace("Default: 100.", "");
            limit["description"] = json!(format!("{} Default: {FEW}.", text.trim_end()));
        }
        if self.reads() {
            let field = json!({
                "type": "string",
                "description": "Field to read on, as `cut` of the result names it. The other arguments stay the same.",
            });
            let offset = json!({
                "type": "integer", "minimum": 0, "default": 0,
                "description": "Position in that field, as `next` in `cut`: a byte of a text, an item of a list.",
            });
            properties.insert("field".to_owned(), field);
            properties.insert("offset".to_owned(), offset);
        }
        schema
    }

    /// Adds what an agent leaves out, and takes the part of the result that it wants.
    ///
    /// # Errors
    /// An argument about the part is wrong.
    pub(super) fn complete(&self, arguments: &mut Map<String, Value>) -> Result<Part, ApiError> {
        let has_limit = self.schema()["properties"].get("limit").is_some();
        if has_limit && arguments.get("limit").is_none_or(Value::is_null) {
            arguments.insert("limit".to_owned(), json!(FEW));
        }
        if !self.reads() {
            return Ok(Part::default());
        }
        let mut taken = |name: &str| arguments.remove(name).filter(|value| !value.is_null());
        let (field, offset) = (taken("field"), taken("offset"));
        let wrong = |name: &str, what: &str| ApiError::invalid(format!("{name}: expected {what}"));
        let field = match field {
            None => None,
            Some(Value::String(field)) => Some(field),
            Some(_) => return Err(wrong("field", "a field that `cut` names")),
        };
        let offset = match offset.map(|offset| offset.as_u64()) {
            None => 0,
            Some(Some(_)) if field.is_none() => {
                return Err(ApiError::invalid("offset: give the field too"));
            }
            Some(offset) => {
                let offset = offset.and_then(|offset| usize::try_from(offset).ok());
                offset.ok_or_else(|| wrong("offset", "a whole number, 0 or more"))?
            }
        };
        Ok(Part { field, offset })
    }

    fn listed(&self, method: &Method) -> Listed {
        Listed {
            name: self.name,
            title: self.title,
            description: format!("{}. {}", method.summary, self.note),
            input_schema: self.schema().clone(),
            annotations: json!({
                "title": self.title,
                "readOnlyHint": self.reads(),
                "destructiveHint": !self.reads(),
                "idempotentHint": self.kind != Kind::Runs,
                "openWorldHint": self.kind == Kind::Runs,
            }),
        }
    }
}

/// Finds a tool; those that change something only with `changes`.
pub(super) fn named(name: &str, changes: bool) -> Option<&'static Tool> {
    let mut tools = TOOLS.iter().filter(|tool| tool.is_allowed(changes));
    tools.find(|tool| tool.name == name)
}

/// Returns true for a tool that needs the permission to change something.
pub(super) fn is_withheld(name: &str) -> bool {
    named(name, false).is_none() && named(name, true).is_some()
}

/// The list of tools.
pub(super) fn list(changes: bool) -> Value {
    let tools = TOOLS.iter().filter(|tool| tool.is_allowed(changes));
    let listed: Vec<_> = tools
        .filter_map(|tool| Some(tool.listed(tool.method()?)))
        .collect();
    json!(listed)
}

/// Returns a text about methods in the words of an agent: its tools, and for the rest commands. Words that are in `given`, the
/// arguments of the call, stay.
pub(super) fn in_tools(text: &str, given: &Map<String, Value>) -> String {
    let is_part = |char: char| char.is_ascii_alphanumeric() || "._".contains(char);
    let mut words = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(is_part) {
        let (before, from) = rest.split_at(start);
        let end = from.find(|char| !is_part(char)).unwrap_or(from.len());
        // A sentence may end with a name.
        let word = from[..end].trim_end_matches('.');
        words.push_str(before);
        let is_given = given.values().any(|value| value == word);
        match METHODS
            .iter()
            .find(|method| method.name == word && !is_given)
        {
            None => words.push_str(word),
            Some(method) => match TOOLS.iter().find(|tool| tool.method == method.name) {
                Some(tool) => words.push_str(tool.name),
                None => words.push_str(&format!("`meshwork {}`", word.replace('.', " "))),
            },
        }
        rest = &from[word.len()..];
        if word.is_empty() {
            words.push('.');
            rest = &rest[1..];
        }
    }
    words.push_str(rest);
    words.replace(" or Idempotency-Key", "")
}

#[cfg(test)]
mod tests {
    use meshwork_model::api_key::Scope;

    use super::*;

    #[test]
    fn tools_that_change_need_the_option_and_no_reader_changes() {
        for tool in &TOOLS {
            let method = tool.method().unwrap_or_else(|| panic!("{}", tool.name));
            let reads = method.scope == Scope::Viewer;
            assert_eq!(tool.reads(), reads, "{}", tool.name);
        }
        let names = |changes| list(changes).as_array().map_or(0, Vec::len);
        assert_eq!(names(true), names(false) + 3);
        assert!(is_withheld("cancel_job") && !is_withheld("get_job") && !is_withheld("x"));
    }

    #[test]
    fn schemas_are_in_one_piece_with_true_defaults() {
        for tool in &TOOLS {
            let (schema, name) = (tool.schema(), tool.name);
            assert_eq!(schema["type"], "object", "{name}");
            for word in ["$ref", "\"format\"", "\"null\"", "Default: 100", ":null"] {
                assert!(
                    !schema.to_string().contains(word),
                    "{name}: {word} in {schema}"
                );
            }
        }
        let listed = &named("search_jobs", false).unwrap().schema()["properties"];
        assert_eq!(listed["limit"]["default"], FEW);
        assert_eq!(listed["context"]["maximum"], u32::MAX);
        let text = listed["limit"]["description"].as_str().unwrap();
        assert!(text.ends_with("more follow. Default: 20."), "{text}");
        let state = &listed["state"];
        assert!(
            state.get("anyOf").is_none() && state["description"].is_string(),
            "{state}"
        );
    }

    #[test]
    fn an_agent_names_a_part_by_its_field() {
        let part = |arguments: Value| {
            let mut arguments = arguments.as_object().unwrap().clone();
            let part = named("get_job", false).unwrap().complete(&mut arguments);
            part.map(|part| (part, Value::Object(arguments)))
        };
        let whole = part(json!({"id": "a", "field": null})).unwrap();
        assert_eq!(whole, (Part::default(), json!({"id": "a"})));
        let field = Some("/output".to_owned());
        let (read, rest) = part(json!({"id": "a", "field": "/output", "offset": 7})).unwrap();
        assert_eq!(
            (read, rest),
            (Part { field, offset: 7 }, json!({"id": "a"}))
        );
        for wrong in [
            json!({"offset": 1}),
            json!({"field": 1}),
            json!({"field": "", "offset": -1}),
        ] {
            assert!(part(wrong).is_err());
        }
    }

    #[test]
    fn hints_name_tools_or_commands() {
        let given = json!({"id": "job.list"}).as_object().unwrap().clone();
        let changed = |text| in_tools(text, &given);
        for (text, words) in [
            (
                "queue.get shows the limits, queue.limit changes one",
                "get_queue shows the limits, `meshwork queue limit` changes one",
            ),
            ("see job.result.", "see wait_for_job."),
            ("there is no job job.list… é", "there is no job job.list… é"),
            (
                "use `meshwork key create`, e.g. ... .",
                "use `meshwork key create`, e.g. ... .",
            ),
            (
                "repeat the call with the same id or Idempotency-Key",
                "repeat the call with the same id",
            ),
            ("", ""),
        ] {
            assert_eq!(changed(text), words);
        }
    }
}
