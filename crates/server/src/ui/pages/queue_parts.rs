//! Parts of a spread queue, with links to the queue in each.

use maud::{Markup, html};
use serde::Deserialize;
use serde_json::json;

use crate::ui::caller::Caller;
use crate::ui::text::number;

#[derive(Debug, Deserialize)]
struct Parts {
    parts: Vec<Part>,
}

#[derive(Debug, Deserialize)]
struct Part {
    context: u32,
    active: bool,
    waiting: u64,
    running: u64,
}

/// Renders the parts; nothing for a queue that is not spread, or whose parts the caller may not read.
pub(super) async fn card(caller: &Caller, name: &str) -> Markup {
    let read = caller.read("queue.parts", json!({"queue": name})).await;
    let Ok(Parts { parts }) = read else {
        return html! {};
    };
    let link = |part: &Part| {
        let context = part.context.to_string();
        caller.here_with(&[("context", &context), ("queue", name), ("cursor", "")])
    };
    html! {
        section.card {
            h2 { "Parts" span.note { "contexts of this spread queue" } }
            div.table tabindex="0" role="region" aria-label="Parts" {
                table {
                    thead { tr { th { "Context" } th { "Waiting" } th { "Running" } th.wide { "New jobs" } } }
                    tbody {
                        @for part in &parts {
                            tr {
                                td { a href=(link(part)) { (part.context) } }
                                td { (number(part.waiting)) }
                                td { (number(part.running)) }
                                td { @if part.active { "yes" } @else { "no" } }
                            }
                        }
                    }
                }
            }
        }
    }
}
