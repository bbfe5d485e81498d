//! The work of a job: a script, an approval, a wait or a nested flow, and the options that only one of them has.

use std::path::Path;

use meshwork_model::flow::{Approve, Plan, Position, Run, Text, Wait, Work};
use meshwork_model::mesh::MessageTarget;
use meshwork_model::time;

use super::fields::Fields;
use super::tree::{Data, Tree};
use meshwork_runtime as runtime;

/// Gives scripts and nested flows by the paths that a flow's file has. An error is a sentence without the place.
pub(super) trait Sources {
    /// The text of a script.
    fn script(&self, path: &str) -> Result<String, String>;

    /// A nested flow, checked, and the key under which the plan keeps it.
    fn flow(&mut self, path: &str) -> Result<(String, Plan), String>;
}

/// The options of a wait.
pub(super) const WAIT: &[&str] = &["for", "until", "message", "from"];
/// The options that say what a job does; a job has one of them.
const WORK: [&str; 5] = ["run", "script", "approve", "wait", "flow"];

/// Reads the work of a job at a place. None: there is a fault.
pub(super) fn read(
    fields: &mut Fields<'_>,
    at: Position,
    plan: &mut Plan,
    sources: &mut dyn Sources,
) -> Option<Work> {
    let given = WORK
        .into_iter()
        .filter_map(|key| Some((key, fields.take(key)?)));
    let mut given: Vec<_> = given.collect();
    if given.len() > 1 {
        let names: Vec<_> = given.iter().map(|(key, _)| format!("`{key}`")).collect();
        let message = format!(
            "{} do not go together: a job does one thing",
            names.join(" and ")
        );
        fields.add(given[1].1.at, message);
        return None;
    }
    let Some((key, tree)) = given.pop() else {
        let choice = WORK.map(|key| format!("`{key}`")).join(", ");
        fields.add(at, format!("the work is missing: give one of {choice}"));
        return None;
    };
    let work = match key {
        "run" | "script" => script(key, tree, fields, plan, sources).map(Work::Run),
        "approve" => question(tree, fields).map(Work::Approve),
        "wait" => wait(tree, fields).map(Work::Wait),
        _ => nested(tree, fields, plan, sources),
    };
    misplaced(key, fields);
    work
}

/// Faults for options of another kind of work.
fn misplaced(work: &str, fields: &mut Fields<'_>) {
    let runs = matches!(work, "run" | "script");
    let of_runs = ["type", "group", "route", "priority", "context"]
        .map(|key| (key, runs, "`run` and `script`"));
    let of_questions = ["approvers", "four_eyes"].map(|key| (key, work == "approve", "`approve`"));
    for (key, fits, with) in of_runs.into_iter().chain(of_questions) {
        if !fits && let Some(tree) = fields.take(key) {
            fields.add(
                tree.at,
                format!("`{key}` goes with {with} only: leave it out"),
            );
        }
    }
}

fn script(
    key: &str,
    tree: Tree,
    fields: &mut Fields<'_>,
    plan: &mut Plan,
    sources: &mut dyn Sources,
) -> Option<Run> {
    let type_at = fields.text("type");
    let [group, route, priority] =
        ["group", "route", "priority"].map(|key| fields.text(key).map(|text| text.text));
    let context = fields.take("context");
    let of_flow = context.as_ref().and_then(|tree| target(&tree.data));
    if context.is_some() && of_flow.is_none() {
        let message =
            "`context` is the number of a context, from 1, or NODE/NUMBER on another node";
        fields.add(tree.at, message);
    }
    let Data::Text(text) = tree.data else {
        let wanted = if key == "run" {
            "the path of a script"
        } else {
            "the text of a script"
        };
        fields.add(
            tree.at,
            format!("`{key}` has to be {wanted}, not {}", tree.shown()),
        );
        return None;
    };
    let inline = key == "script";
    if !inline && text.contains("{{") {
        fields.add(tree.at, "`run` is a path: templates are not allowed in it");
        return None;
    }
    let script_type = match (type_at, inline) {
        (Some(given), _) => given.text,
        (None, true) => {
            fields.add(
                tree.at,
                "an inline script needs its `type`, as `type: python`",
            );
            return None;
        }
        (None, false) => match runtime::type_of_file(Path::new(&text)) {
            Some(found) => found.to_owned(),
            None => {
                let message =
                    format!("the name {text:?} does not say the type of the script: give `type`");
                fields.add(tree.at, message);
                return None;
            }
        },
    };
    let (file, text) = match inline {
        true => (None, text),
        false => match sources.script(&text) {
            Ok(script) => (Some(text), script),
            Err(error) => {
                fields.add(tree.at, error);
                return None;
            }
        },
    };
    let script = super::digest(&text);
    plan.scripts.insert(script.clone(), text);
    let context = of_flow;
    Some(Run {
        script,
        script_type,
        file,
        group,
        route,
        priority,
        context,
    })
}

/// Returns the context of a job, as `8` or `bob/8`.
fn target(data: &Data) -> Option<MessageTarget> {
    match data {
        Data::Int(number) => number.to_string().parse().ok(),
        Data::Text(text) => text.parse().ok(),
        _ => None,
    }
}

fn question(tree: Tree, fields: &mut Fields<'_>) -> Option<Approve> {
    let approvers = fields.list("approvers");
    let four_eyes = fields.flag("four_eyes").unwrap_or(false);
    let mut actors = Vec::new();
    for tree in approvers {
        match tree.data {
            Data::Int(id) if u32::try_from(id).is_ok() => actors.push(id as u32),
            _ => {
                let message = format!(
                    "an approver is the number of an actor, not {}",
                    tree.shown()
                );
                fields.add(tree.at, message);
            }
        }
    }
    match tree.data {
        Data::Text(text) => Some(Approve {
            question: Text {
                text,
                at: Some(tree.at),
            },
            approvers: actors,
            four_eyes,
        }),
        _ => {
            let message = format!(
                "`approve` has to be the text of a question, not {}",
                tree.shown()
            );
            fields.add(tree.at, message);
            None
        }
    }
}

fn wait(tree: Tree, fields: &mut Fields<'_>) -> Option<Wait> {
    let at = tree.at;
    let mut options = fields.nested("wait", tree, WAIT)?;
    let span = options.span("for");
    let until = options.text("until");
    let message = options.text("message");
    let from = options.number("from");
    options.finish();
    match (span, until, message, from) {
        (Some(ms), None, None, None) => Some(Wait::For(ms)),
        (None, Some(text), None, None) => {
            let read = time::parse_iso(&text.text);
            if read.is_none() {
                let message = "`until` is a time in UTC, as 2026-01-31T12:00:00Z or 2026-01-31";
                fields.add(text.at.unwrap_or(at), message);
            }
            read.map(Wait::Until)
        }
        (None, None, Some(text), Some(from)) => Some(Wait::Message {
            message_type: text.text,
            from,
        }),
        _ => {
            let message = "`wait` is {for: 2h}, {until: 2026-01-31T12:00:00Z} or {message: TYPE, from: ACTOR}";
            fields.add(at, message);
            None
        }
    }
}

fn nested(
    tree: Tree,
    fields: &mut Fields<'_>,
    plan: &mut Plan,
    sources: &mut dyn Sources,
) -> Option<Work> {
    let Data::Text(path) = &tree.data else {
        let message = format!(
            "`flow` has to be the path of a flow's file, not {}",
            tree.shown()
        );
        fields.add(tree.at, message);
        return None;
    };
    match sources.flow(path) {
        Ok((key, flow)) => {
            plan.flows.insert(key.clone(), flow);
            Some(Work::Flow(key))
        }
        Err(error) => {
            fields.add(tree.at, error);
            None
        }
    }
}
