//! Results of a `foreach` of which items failed.

use meshwork_flow::run::End;
use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::results::ResultSlot;
use super::view::View;

/// Returns the results of the items of a failed `foreach` as a JSON list, with null for those without one, and their errors
/// by index.
pub(super) fn partial(view: &View, (job, item): ResultSlot, end: &End) -> Option<(String, String)> {
    let items = view.state.jobs[job]
        .items
        .as_ref()
        .filter(|it| !it.is_empty());
    let (None, End::Failed(_), Some(items)) = (item, end, items) else {
        return None;
    };
    let (mut results, mut errors) = (Vec::new(), BTreeMap::new());
    for (index, item) in items.iter().enumerate() {
        let mut result = &Value::Null;
        match item.phase.end() {
            Some(End::Finished(value)) => result = value,
            Some(End::Failed(error)) => drop(errors.insert(index, error.as_str())),
            Some(End::Cancelled) => drop(errors.insert(index, "stopped")),
            Some(End::Skipped) | None => {}
        }
        results.push(result);
    }
    Some((json!(results).to_string(), json!(errors).to_string()))
}
