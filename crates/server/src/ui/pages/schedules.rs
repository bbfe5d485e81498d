//! Schedules: recurrence, next times, last jobs, and the buttons that run, pause and resume them.

use std::sync::Arc;

use maud::{Markup, html};
use serde_json::json;

use crate::api::ApiError;
use crate::ui::caller::Caller;
use crate::ui::layout::Page;
use crate::ui::parts::{button, confirmed, nothing};
use crate::ui::text::{cell, cell_of, number, when};
use crate::ui::views::{Schedule, Schedules, job_link};

/// Renders the page.
pub(super) async fn show(caller: Arc<Caller>) -> Result<Page, ApiError> {
    let (mut schedules, next) = match caller.query("name") {
        Some(name) => (
            vec![caller.read("schedule.get", json!({"name": name})).await?],
            None,
        ),
        None => {
            let params = match caller.query("cursor") {
                Some(cursor) => json!({"cursor": cursor}),
                None => json!({}),
            };
            let page: Schedules = caller.read("schedule.list", params).await?;
            (page.schedules, page.next)
        }
    };
    schedules.sort_by(|a, b| a.name.cmp(&b.name));
    let body = html! {
        h1 { "Schedules" }
        section #schedules data-part {
            @if schedules.is_empty() { (nothing("No schedules", &html! { code { "meshwork schedule add" } " makes one." })) }
            @else { (table(&caller, &schedules)) }
            @if caller.query("name").is_some() { p { a.button href=(caller.here_with(&[("name", "")])) { "All schedules" } } }
            @else { (crate::ui::views::pager(&caller, next.as_deref(), schedules.len())) }
        }
    };
    Ok(Page::new("Schedules", "/schedules", body).live("figures"))
}

fn table(caller: &Caller, schedules: &[Schedule]) -> Markup {
    html! {
        div.table tabindex="0" role="region" aria-label="Schedules" { table {
            thead { tr {
                th { "Schedule" } th { "Recurrence" } th { "Type" } th { "State" } th { "Next" } th { "Last job" }
                th.right { "Jobs" } th.right { "Skipped" } th.right { "Refused" } th { span.hidden { "Changes" } }
            } }
            tbody { @for schedule in schedules { (line(caller, schedule)) } }
        } }
    }
}

fn line(caller: &Caller, schedule: &Schedule) -> Markup {
    let name = schedule.name.as_str();
    html! {
        tr {
            td { a href=(caller.url("/schedules", &[("name", name)])) { (cell_of(name, 40)) } }
            td { span.mono { (cell_of(schedule.rhythm.as_deref().unwrap_or("unreadable"), 40)) } @if let Some(zone) = &schedule.zone { span.note { " " (cell_of(zone, 32)) } } }
            td { (cell_of(schedule.script_type.as_deref().unwrap_or("–"), 24)) }
            td {
                @if schedule.paused { span.badge.wait { "paused" } } @else { span.badge.good { "active" } }
                @if let Some(trouble) = &schedule.trouble { " " span.bad { (cell(trouble)) } }
            }
            td {
                @if let Some(at) = &schedule.next_at { (when(at, caller.now_ms)) } @else { span.note { "–" } }
                @if !schedule.upcoming.is_empty() {
                    details { summary { "Next five" } ol.plain { @for at in &schedule.upcoming { li { (cell_of(at, 40)) } } } }
                }
            }
            td { @if let Some(id) = &schedule.last_job { (job_link(caller, id)) } @else { span.note { "none yet" } } }
            td.right { (number(schedule.runs)) }
            td.right { (number(schedule.skipped)) }
            td.right { (number(schedule.refused)) }
            td.buttons {
                (button(caller, ("schedule.run", "Run now"), &[("name", name)]))
                @if schedule.paused { (button(caller, ("schedule.resume", "Resume"), &[("name", name)])) }
                @else { (button(caller, ("schedule.pause", "Pause"), &[("name", name)])) }
                (confirmed(caller, ("schedule.delete", "Delete…"), &[("name", name)]))
            }
        }
    }
}
