//! Workers: hosts, versions, slots, and the buttons that make them quiet or stop them.

use std::collections::BTreeMap;
use std::sync::Arc;

use maud::{Markup, html};
use serde_json::json;

use crate::api::ApiError;
use crate::ui::caller::Caller;
use crate::ui::figures::Figures;
use crate::ui::layout::Page;
use crate::ui::parts::{bar, button, confirmed, nothing};
use crate::ui::text::{cell, cell_of, number, rough, when};
use crate::ui::views::{MigratingType, Migrations, Worker};

/// Greatest number of rows.
const MOST: usize = 500;

/// Renders the page.
pub(super) async fn show(caller: Arc<Caller>) -> Result<Page, ApiError> {
    let list = caller.workers().await?;
    let (types, figures) = tokio::join!(
        caller.read::<Migrations>("migration.list", json!({})),
        caller.figures(),
    );
    let types = types?;
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
            (clients(figures.as_deref(), &types.types))
            p.note { (number(list.workers.len() as u64)) " registrations, found " (rough(list.age_ms)) " ago" }
        }
    };
    Ok(Page::new("Workers", "/workers", body).live("figures"))
}

/// Types whose jobs come from foreign clients, or migrate from foreign workers.
fn clients(figures: Option<&Figures>, migrating: &[MigratingType]) -> Markup {
    let mut types: BTreeMap<&str, (u64, u64, Option<&MigratingType>)> = BTreeMap::new();
    for queue in figures
        .into_iter()
        .flat_map(|figures| &figures.stats.queues)
    {
        let Some((_, name)) = queue.queue.split_once(":type:") else {
            continue;
        };
        let of = types
            .entry(name.split(':').next().unwrap_or(name))
            .or_default();
        of.0 += queue.created;
        of.1 += queue.created_foreign;
    }
    for migration in migrating {
        types.entry(&migration.script_type).or_default().2 = Some(migration);
    }
    types.retain(|_, (_, foreign, migration)| *foreign > 0 || migration.is_some());
    html! {
        @if !types.is_empty() {
            h2 { "Foreign clients and migrations" }
            div.table tabindex="0" role="region" aria-label="Foreign clients and migrations" { table {
                thead { tr { th { "Type" } th.right { "Jobs of foreign clients" } th { "Migration" } th { "Old list" } th.right { "Ids on it" } } }
                tbody { @for (name, (all, foreign, migration)) in types.iter().take(MOST) { tr {
                    td { (cell_of(name, 24)) }
                    td.right { (number(*foreign)) " of " (number(*all)) }
                    td { @if let Some(of) = migration { span.badge.wait { (of.phase) } } @else { span.note { "none" } } }
                    td.mono { @if let Some(of) = migration { (cell_of(&of.list, 60)) } }
                    td.right { @if let Some(count) = migration.and_then(|of| of.waiting) { (number(count)) } }
                } } }
            } }
        }
    }
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
