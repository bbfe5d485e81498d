//! `on_failure` and `finally`: jobs that run when all others have ended.

use std::collections::HashSet;

use meshwork_model::flow::{Node, NodeName, Plan, Text};

use crate::expr;

/// Adds the jobs of an option. Each needs all jobs that no other job needs, unless it needs one of its own option. Its
/// condition goes before its `if`.
pub(super) fn add(plan: &mut Plan, nodes: Vec<Node>, condition: &str) {
    let needed: HashSet<&NodeName> = plan.jobs.iter().flat_map(|job| &job.needs).collect();
    let last = plan.jobs.iter().filter(|job| job.compensates.is_none());
    let last: Vec<NodeName> = last
        .map(|job| job.name.clone())
        .filter(|name| !needed.contains(name))
        .collect();
    let own: HashSet<NodeName> = nodes.iter().map(|node| node.name.clone()).collect();
    for mut node in nodes {
        if !node.needs.iter().any(|need| own.contains(need)) {
            let more = last.iter().filter(|name| !node.needs.contains(name));
            let more: Vec<_> = more.cloned().collect();
            node.needs.extend(more);
        }
        node.closes = true;
        node.condition = Some(match node.condition {
            None => condition.into(),
            Some(text) if expr::asks_for_failure(&text) => text,
            Some(Text { text, at }) => Text {
                text: format!("{condition} && ({text})"),
                at,
            },
        });
        plan.jobs.push(node);
    }
}
