//! The attempts of a job that failed or were lost.

use maud::{Markup, html};

use crate::ui::caller::Caller;
use crate::ui::text::{cell_of, when};
use crate::ui::views::{Attempt, between};
use meshwork_model::time::duration;

/// Renders the attempts, the newest first; nothing if there are none.
pub(super) fn attempts(caller: &Caller, attempts: &[Attempt]) -> Markup {
    html! {
        @if !attempts.is_empty() {
            section.card {
                h2 { "Failed attempts" }
                div.table tabindex="0" role="region" aria-label="Failed attempts" { table {
                    thead { tr { th { "Attempt" } th { "Outcome" } th { "Ended" } th { "Ran" } th { "Worker" } th.wide { "Error" } } }
                    tbody { @for one in attempts.iter().rev() { (line(caller, one)) } }
                } }
            }
        }
    }
}

fn line(caller: &Caller, attempt: &Attempt) -> Markup {
    let ran = between(attempt.started_at.as_deref(), Some(&attempt.ended_at));
    html! {
        tr {
            td { @if let Some(number) = attempt.number { (number) } @else { "–" } }
            td { (cell_of(&attempt.outcome, 20)) }
            td { (when(&attempt.ended_at, caller.now_ms)) }
            td { @if let Some(ran) = ran { (duration(ran)) } }
            td.mono { (cell_of(&attempt.worker, 60)) }
            td.wide { (cell_of(&attempt.error, 500)) }
        }
    }
}
