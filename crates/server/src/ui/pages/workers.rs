//! Workers: hosts, versions, slots, and the buttons that make them quiet or stop them.

use std::sync::Arc;

use maud::{Markup, html};
use serde_json::json;

use super::views::{Worker, Workers};
use crate::api::ApiError;
use crate::ui::caller::Caller;
use crate::ui::layout::Page;
use crate::ui::parts::{bar, button, confirmed, nothing};
use crate::ui::text::{cell, cell_of, number, rough, when};

/// Greatest number of rows.
const MOST: usize = 500;

/// Renders the page.
pub(super) async fn show(caller: Arc<Caller>) -> Result<Page, ApiError> {
    let list: Workers = caller.read("worker.list", json!({})).await?;
    let (own, foreign): (Vec<_>, Vec<_>) = list.workers.iter().partition(|it| it.worker.is_some());
    let body = html! {
        h1 { "Workers" }
        section #workers data-part {
            @if own.is_empty() { (nothing("No workers", &html! { code { "meshwork worker --type python" } " starts one." })) }
            @else { (table(&caller, &own)) }
            @if !foreign.is_empty() {
                h2 { "Foreign workers" }
                (table(&caller, &foreign))
            }
            p.note { (number(list.workers.len() as u64)) " registrations, found " (rough(list.age_ms)) " ago" }
        }
    };
    Ok(Page::new("Workers", "/workers", body).live("figures"))
}

fn table(caller: &Caller, workers: &[&Worker]) -> Markup {
    html! {
        div.table tabindex="0" role="region" aria-label="Workers" { table {
            thead { tr {
                th { "Worker" } th { "Type" } th { "State" } th { "Slots in use" } th { "Host" } th { "Version" } th { "Started" } th { "Heartbeat" }
                th { span.hidden { "Changes" } }
            } }
            tbody { @for worker in workers.iter().take(MOST) { (line(caller, worker)) } }
        } }
    }
}

fn line(caller: &Caller, worker: &Worker) -> Markup {
    let time =
        |text: &Option<String>| html! { @if let Some(text) = text { (when(text, caller.now_ms)) } };
    html! {
        tr {
            td.mono { (cell_of(worker.worker.as_deref().unwrap_or(&worker.instance), 40)) @if worker.named { span.note { " named" } } }
            td { (cell_of(&worker.script_type, 24)) @if !worker.group.is_empty() { span.note { " / " (cell_of(&worker.group, 24)) } } }
            td {
                @if let Some(fault) = &worker.fault { span.badge.bad title=(crate::ui::text::visible(fault)) { "cannot start" } " " span.bad { (cell(fault)) } }
                @else if worker.quiet { span.badge.wait { "quiet" } }
                @else { span.badge.good { "live" } }
            }
            td { @if let (Some(used), Some(slots)) = (worker.in_flight, worker.slots) { span.slots { (bar(used, slots, "Slots in use")) span { (used) " / " (slots) } } } }
            td { (cell_of(worker.hostname.as_deref().unwrap_or("–"), 32)) @if let Some(pid) = worker.pid { span.note { " pid " (pid) } } }
            td { (cell_of(worker.version.as_deref().unwrap_or("–"), 16)) }
            td { (time(&worker.started_at)) }
            td { (time(&worker.last_heartbeat)) }
            td.buttons {
                @if let Some(name) = &worker.worker {
                    @if !worker.quiet { (button(caller, ("worker.quiet", "Quiet"), &[("worker", name)])) }
                    (confirmed(caller, ("worker.stop", "Stop…"), &[("worker", name)]))
                }
            }
        }
    }
}
