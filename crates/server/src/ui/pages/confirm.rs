//! The question before a change that cannot be taken back.

use std::sync::Arc;

use maud::html;

use crate::api::{ApiError, Code, find};
use crate::ui::caller::Caller;
use crate::ui::changes::done;
use crate::ui::forms::back;
use crate::ui::layout::Page;
use crate::ui::parts::is_in_context;
use crate::ui::text::{cell_of, cut, visible};
use crate::ui::views::queue_name;

/// Renders the page.
pub(super) async fn show(caller: Arc<Caller>) -> Result<Page, ApiError> {
    let name = caller.needed("method")?;
    let none = || ApiError::new(Code::NotFound, "there is no such button");
    let method = done(name).and_then(|_| find(name)).ok_or_else(none)?;
    caller.access.check(method.scope, method.name)?;
    let Some((question, label, field)) = question(name) else {
        return Err(none());
    };
    let value = caller.needed(field)?;
    let shown = match field {
        "queue" => queue_name(&caller, value),
        _ => value,
    };
    let count = caller.query("count").filter(|text| text.len() < 20);
    let from = back(&caller.shared, caller.query("back"));
    // The page of a deleted object is no place to go back to.
    let next = match name {
        "job.delete" => caller.url("/jobs", &[("state", "ended")]),
        "flow.delete" => caller.url("/flows", &[]),
        _ => from.clone(),
    };
    let body = html! {
        div.card.confirm {
            h1 { (question) }
            p.mono { (cell_of(shown, 200)) }
            form method="post" action=(format!("{}/do/{name}", caller.shared.base)) {
                input type="hidden" name=(field) value=(value);
                input type="hidden" name="back" value=(next);
                @if let Some(context) = caller.context.filter(|_| is_in_context(name)) { input type="hidden" name="context" value=(context); }
                @if name == "queue.purge" {
                    input type="hidden" name="must" value=(shown);
                    label for="typed" { "Type the name of the queue" }
                    input #typed name="typed" required autocomplete="off" spellcheck="false";
                }
                div.buttons {
                    button.danger type="submit" { (label) @if let Some(count) = count { " " (cut(&visible(count), 20)) (if count == "1" { " job" } else { " jobs" }) } }
                    a.button href=(from) { "Keep" }
                }
            }
        }
    };
    Ok(Page::new(label, "", body))
}

/// The question, the button, and the parameter that names the object.
fn question(method: &str) -> Option<(&'static str, &'static str, &'static str)> {
    Some(match method {
        "job.delete" => ("Delete this job with its log and result?", "Delete", "id"),
        "dead.delete" => ("Delete this dead letter with its job?", "Delete", "id"),
        "queue.purge" => (
            "Delete the jobs that wait in this queue?",
            "Delete",
            "queue",
        ),
        "worker.stop" => (
            "Shut this worker down after its running jobs?",
            "Stop",
            "worker",
        ),
        "schedule.delete" => ("Delete this schedule? Its jobs stay.", "Delete", "name"),
        "flow.delete" => ("Delete this flow with its jobs?", "Delete", "id"),
        _ => return None,
    })
}
