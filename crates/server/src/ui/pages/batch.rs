//! One batch: its state, and the first of its jobs that failed.

use std::collections::BTreeMap;
use std::sync::Arc;

use maud::html;
use serde::Deserialize;
use serde_json::json;

use crate::api::ApiError;
use crate::ui::caller::Caller;
use crate::ui::layout::Page;
use crate::ui::parts::{bar, state, tile};
use crate::ui::text::{cell, cell_of, number, when};
use crate::ui::views::job_link;

/// A batch.
#[derive(Debug, Deserialize)]
struct Batch {
    id: String,
    name: String,
    state: String,
    total: u64,
    pending: u64,
    succeeded: u64,
    failed: u64,
    first_failed: Option<String>,
    cancelled: Option<String>,
    callbacks: BTreeMap<String, String>,
    created_at: String,
    ended_at: Option<String>,
}

/// Renders the page.
pub(super) async fn show(caller: Arc<Caller>) -> Result<Page, ApiError> {
    let id = caller.needed("id")?;
    let batch: Batch = caller.read("batch.get", json!({"id": id})).await?;
    let title = match batch.name.as_str() {
        "" => &batch.id,
        name => name,
    };
    let ended = batch.total.saturating_sub(batch.pending);
    let body = html! {
        header.head { h1 { (cell_of(title, 100)) } (state(&batch.state)) }
        section #batch data-part {
            div.tiles {
                (tile("Jobs", &number(batch.total), &html! { (number(ended)) " ended" (bar(ended, batch.total, "Ended jobs")) }, None))
                (tile("Succeeded", &number(batch.succeeded), &html! {}, None))
                (tile("Failed", &number(batch.failed), &html! {}, None))
            }
            dl.grid {
                dt { "Id" } dd.mono { (cell_of(&batch.id, 100)) }
                dt { "Created" } dd { (when(&batch.created_at, caller.now_ms)) }
                @if let Some(at) = &batch.ended_at { dt { "Ended" } dd { (when(at, caller.now_ms)) } }
                @if let Some(reason) = &batch.cancelled { dt { "Cancelled" } dd { (cell(reason)) } }
                @if let Some(job) = &batch.first_failed { dt { "First failed" } dd { (job_link(&caller, job)) } }
                @for (event, job) in &batch.callbacks { dt { "On " (event) } dd { (job_link(&caller, job)) } }
            }
        }
    };
    Ok(Page::new(title, "/jobs", body).live("figures"))
}
