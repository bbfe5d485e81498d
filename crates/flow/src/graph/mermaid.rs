//! The graph in the language of Mermaid, which GitHub and many editors draw.

use std::fmt::Write as _;

use meshwork_model::flow::Dag;

use super::{colours, numbers};

/// The statuses that have a colour.
const STATUSES: [&str; 4] = ["finished", "error", "started", "skipped"];

/// A flowchart of the flow. Jobs are called `n0`, `n1` …, since names such as `end` mean something in Mermaid.
#[must_use]
pub fn mermaid(dag: &Dag<String>) -> String {
    let numbers = numbers(dag);
    let mut out = String::from("flowchart TD\n");
    for (number, node) in dag.nodes.iter().enumerate() {
        let label = format!("{}<br/>{}", quoted(&node.id), quoted(&node.script_type));
        let _ = match node.script_type.as_str() {
            "approve" => writeln!(out, "  n{number}{{\"{label}\"}}"),
            "wait" => writeln!(out, "  n{number}([\"{label}\"])"),
            "group" | "flow" => writeln!(out, "  n{number}[[\"{label}\"]]"),
            _ => writeln!(out, "  n{number}[\"{label}\"]"),
        };
    }
    for (from, to) in &dag.edges {
        let _ = writeln!(
            out,
            "  n{} --> n{}",
            numbers[from.as_str()],
            numbers[to.as_str()]
        );
    }
    for (number, node) in dag.nodes.iter().enumerate() {
        if let Some(undone) = &node.compensates {
            let _ = writeln!(out, "  n{} -. undo .-> n{number}", numbers[undone.as_str()]);
        }
    }
    for status in STATUSES {
        let with =
            |node: &meshwork_model::flow::DagNode<String>| node.status.as_deref() == Some(status);
        let jobs = dag.nodes.iter().enumerate().filter(|(_, node)| with(node));
        let jobs: Vec<String> = jobs.map(|(number, _)| format!("n{number}")).collect();
        if !jobs.is_empty() {
            let (fill, line) = colours(Some(status));
            let _ = writeln!(out, "  classDef {status} fill:{fill},stroke:{line}");
            let _ = writeln!(out, "  class {} {status}", jobs.join(","));
        }
    }
    out
}

/// A label within quotes.
fn quoted(text: &str) -> String {
    let plain = text.chars().filter(|c| !c.is_control());
    let escaped = plain.map(|c| match c {
        c if c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ' ') => c.to_string(),
        c => format!("#{};", u32::from(c)),
    });
    escaped.collect()
}
