//! Dead letters, the newest first.

use std::sync::Arc;

use maud::{Markup, html};
use serde_json::json;

use super::views::{JobPage, JobRow, job_link, pager};
use crate::api::ApiError;
use crate::ui::caller::Caller;
use crate::ui::layout::Page;
use crate::ui::parts::{button, confirmed, nothing};
use crate::ui::text::{cell_of, when};

/// Letters of a page.
const ROWS: usize = 50;

/// Renders the page.
pub(super) async fn show(caller: Arc<Caller>) -> Result<Page, ApiError> {
    let mut params = json!({"limit": ROWS});
    for name in ["type", "reason", "cursor"] {
        if let Some(text) = caller.query(name) {
            params[name] = text.into();
        }
    }
    // With a filter, the method reads a thousand letters at a time.
    let is_filtered = params.get("type").is_some() || params.get("reason").is_some();
    let page: JobPage = match is_filtered {
        true => caller.read("dead.list", params).await?,
        false => {
            params["state"] = "dead".into();
            caller.read("job.list", params).await?
        }
    };
    let body = html! {
        h1 { "Dead letters" }
        p.note { "Jobs that failed for good. They are kept until somebody retries or deletes them." }
        form.filter action=(caller.url("/dead", &[])) {
            label for="type" { "Type" } input #type name="type" value=[caller.query("type")] placeholder="any";
            label for="reason" { "Reason" } input #reason name="reason" value=[caller.query("reason")] placeholder="any";
            button type="submit" { "Filter" }
        }
        section #dead data-part {
            @if page.jobs.is_empty() { (nothing("No dead letters", &html! { "Nothing failed for good." })) }
            @else { (table(&caller, &page.jobs)) }
            (pager(&caller, page.next.as_deref(), page.jobs.len()))
        }
    };
    Ok(Page::new("Dead letters", "/dead", body).live("figures"))
}

fn table(caller: &Caller, jobs: &[JobRow]) -> Markup {
    html! {
        div.table tabindex="0" role="region" aria-label="Dead letters" { table {
            thead { tr {
                th { "Job" } th { "Type" } th { "Reason" } th.wide { "Error" } th.right { "Attempts" } th { "Died" }
                th { span.hidden { "Changes" } }
            } }
            tbody { @for job in jobs { tr {
                td { (job_link(caller, &job.id)) }
                td { (cell_of(job.script_type.as_deref().unwrap_or("–"), 24)) }
                td { @if let Some(reason) = &job.dead { a href=(caller.here_with(&[("reason", reason), ("cursor", "")])) { (cell_of(reason, 24)) } } }
                td.wide { span.bad { (cell_of(job.error.as_deref().unwrap_or(""), 120)) } }
                td.right { (job.attempts) }
                td { @if let Some(at) = &job.at { (when(at, caller.now_ms)) } }
                td.buttons {
                    (button(caller, ("dead.retry", "Retry"), &[("id", &job.id)]))
                    (confirmed(caller, ("dead.delete", "Delete…"), &[("id", &job.id)]))
                }
            } } }
        } }
    }
}
