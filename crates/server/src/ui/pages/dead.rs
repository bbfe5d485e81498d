//! Dead letters: groups of the same failure, and the letters, the newest first.

use std::sync::Arc;

use maud::{Markup, html};
use serde::Deserialize;
use serde_json::json;

use super::jobs::{find, found_pager};
use super::many;
use crate::api::ApiError;
use crate::ui::caller::Caller;
use crate::ui::layout::Page;
use crate::ui::parts::{button, confirmed, nothing};
use crate::ui::selection::Selection;
use crate::ui::text::{cell_of, number, when};
use crate::ui::views::{JobRow, job_link};

/// Letters of one type and reason with the same error.
#[derive(Debug, Deserialize)]
struct Group {
    fingerprint: String,
    #[serde(rename = "type")]
    script_type: String,
    reason: String,
    error: String,
    count: u64,
    first_at: String,
    last_at: String,
    last_id: String,
}

/// Groups of a part of the letters.
#[derive(Debug, Deserialize)]
struct Groups {
    groups: Vec<Group>,
    looked_at: u64,
    stored: u64,
    next: Option<String>,
}

/// Renders the page.
pub(super) async fn show(caller: Arc<Caller>) -> Result<Page, ApiError> {
    let selection = Selection::of(&caller, "dead")?;
    let is_list = selection.has_filters()
        || selection.queue.is_some()
        || caller.query("view") == Some("letters");
    let content = match is_list {
        true => letters(&caller, &selection).await?,
        false => groups(&caller).await?,
    };
    let body = html! {
        h1 { "Dead letters" }
        p.note { "Jobs that failed for good. They are kept until somebody retries or deletes them." }
        (tabs(&caller, is_list))
        (content)
    };
    Ok(Page::new("Dead letters", "/dead", body).live("figures"))
}

fn tabs(caller: &Caller, is_list: bool) -> Markup {
    html! {
        nav.tabs aria-label="Views" {
            a href=(caller.url("/dead", &[])) aria-current=[(!is_list).then_some("page")] { "Groups" }
            a href=(caller.url("/dead", &[("view", "letters")])) aria-current=[is_list.then_some("page")] { "Letters" }
        }
    }
}

async fn groups(caller: &Caller) -> Result<Markup, ApiError> {
    let params = match caller.query("from") {
        Some(cursor) => json!({"cursor": cursor}),
        None => json!({}),
    };
    let list: Groups = caller.read_here("dead.groups", params).await?;
    Ok(html! {
        section #groups data-part {
            @if list.groups.is_empty() { (nothing("No dead letters", &html! { "Nothing failed for good." })) }
            @else { (group_table(caller, &list.groups)) }
            p.pager {
                span.note { "Looked at " (number(list.looked_at)) " of " (number(list.stored)) " letters" }
                @if caller.query("from").is_some() { a.button href=(caller.here_with(&[("from", "")])) { "Newest letters" } }
                @if let Some(next) = &list.next { a.button href=(caller.here_with(&[("from", next)])) { "Next letters" } }
            }
        }
    })
}

fn group_table(caller: &Caller, groups: &[Group]) -> Markup {
    html! {
        div.table tabindex="0" role="region" aria-label="Groups of dead letters" { table {
            thead { tr {
                th.right { "Letters" } th.wide { "Error" } th { "Type" } th { "Reason" } th { "First" } th { "Last" } th { "Newest job" }
                th { span.hidden { "Changes" } }
            } }
            tbody { @for group in groups { (group_line(caller, group)) } }
        } }
    }
}

fn group_line(caller: &Caller, group: &Group) -> Markup {
    let error = match group.error.as_str() {
        "" => "no error",
        error => error,
    };
    let of = [
        ("state", "dead"),
        ("fingerprint", group.fingerprint.as_str()),
    ];
    html! {
        tr {
            td.right { (number(group.count)) }
            td.wide { a href=(caller.url("/dead", &of)) { (cell_of(error, 120)) } }
            td { (cell_of(&group.script_type, 24)) }
            td { (cell_of(&group.reason, 24)) }
            td { (when(&group.first_at, caller.now_ms)) }
            td { (when(&group.last_at, caller.now_ms)) }
            td { (job_link(caller, &group.last_id)) }
            td.buttons { (many::labelled(caller, &Selection::of_group(&group.fingerprint), "group…")) }
        }
    }
}

async fn letters(caller: &Caller, selection: &Selection) -> Result<Markup, ApiError> {
    let found = find(caller, selection).await?;
    let group = caller.query("fingerprint");
    Ok(html! {
        form.filter action=(format!("{}/dead", caller.shared.base)) {
            input type="hidden" name="view" value="letters";
            @if let Some(context) = caller.context { input type="hidden" name="context" value=(context); }
            @if let Some(group) = group { input type="hidden" name="fingerprint" value=(group); }
            label for="type" { "Type" } input #type name="type" value=[caller.query("type")] placeholder="any";
            label for="reason" { "Reason" } input #reason name="reason" value=[caller.query("reason")] placeholder="any";
            label for="error" { "Error has" } input #error name="error" value=[caller.query("error")] placeholder="any";
            button type="submit" { "Filter" }
        }
        section #dead data-part {
            @if found.jobs.is_empty() { (nothing("No dead letters", &html! { "Nothing failed for good." })) }
            @else { (table(caller, &found.jobs)) (many::buttons(caller, selection)) }
            (found_pager(caller, selection, &found).await)
        }
    })
}

fn table(caller: &Caller, jobs: &[JobRow]) -> Markup {
    let [retry, delete] = match caller.context {
        None => ["dead.retry", "dead.delete"],
        Some(_) => ["job.retry", "job.delete"],
    };
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
                    (button(caller, (retry, "Retry"), &[("id", &job.id)]))
                    (confirmed(caller, (delete, "Delete…"), &[("id", &job.id)]))
                }
            } } }
        } }
    }
}
