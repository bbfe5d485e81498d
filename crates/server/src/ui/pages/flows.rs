//! Flows of a context, the last submitted first.

use std::sync::Arc;

use maud::{Markup, html};
use serde::Deserialize;
use serde_json::json;

use crate::api::{ApiError, Code};
use crate::ui::caller::Caller;
use crate::ui::layout::Page;
use crate::ui::parts::{nothing, state};
use crate::ui::text::{cell_of, when};
use crate::ui::views::pager;

/// Flows of a page.
const ROWS: usize = 50;

/// A flow in a list.
#[derive(Debug, Deserialize)]
struct Row {
    id: u32,
    name: String,
    status: String,
    created_at: Option<String>,
    error: Option<String>,
    schedule: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Flows {
    flows: Vec<Row>,
    next: Option<String>,
}

/// Renders the page.
pub(super) async fn show(caller: Arc<Caller>) -> Result<Page, ApiError> {
    let mut params = json!({"limit": ROWS});
    for name in ["name", "cursor"] {
        if let Some(text) = caller.query(name) {
            params[name] = text.into();
        }
    }
    let flows = match caller.read_here::<Flows>("flow.list", params).await {
        Ok(flows) => flows,
        Err(error) if is_choice(&error) => return Ok(select(&error)),
        Err(error) => return Err(error),
    };
    let body = html! {
        h1 { "Flows" }
        form.filter action=(format!("{}/flows", caller.shared.base)) {
            @if let Some(context) = caller.context { input type="hidden" name="context" value=(context); }
            label for="name" { "Name" } input #name name="name" value=[caller.query("name")] placeholder="any";
            button type="submit" { "Filter" }
        }
        section #flows data-part {
            @if flows.flows.is_empty() { (nothing("No flows", &html! { code { "meshwork flow submit flow.yaml" } " submits one." })) }
            @else { (table(&caller, &flows.flows)) }
            (pager(&caller, flows.next.as_deref(), flows.flows.len()))
        }
    };
    Ok(Page::new("Flows", "/flows", body).live("figures"))
}

/// Returns true if the caller has to select a context, or has none.
fn is_choice(error: &ApiError) -> bool {
    matches!(
        error.code,
        Code::InvalidParams | Code::NotFound | Code::Forbidden
    )
}

fn select(error: &ApiError) -> Page {
    let body = html! {
        h1 { "Flows" }
        (nothing("Flows run in contexts", &html! { (error.message) @if let Some(hint) = error.hint { ". " (hint) } }))
    };
    Page::new("Flows", "/flows", body)
}

fn table(caller: &Caller, flows: &[Row]) -> Markup {
    let link = |flow: &Row| caller.url("/flow", &[("id", &flow.id.to_string())]);
    html! {
        div.table tabindex="0" role="region" aria-label="Flows" { table {
            thead { tr { th { "Flow" } th { "Name" } th { "State" } th { "Submitted" } th { "Schedule" } th.wide { "Error" } } }
            tbody { @for flow in flows { tr {
                td { a href=(link(flow)) { "Flow " (flow.id) } }
                td { a href=(caller.here_with(&[("name", &flow.name), ("cursor", "")])) { (cell_of(&flow.name, 60)) } }
                td { (state(&flow.status)) }
                td { @if let Some(at) = &flow.created_at { (when(at, caller.now_ms)) } }
                td { @if let Some(name) = &flow.schedule { (cell_of(name, 40)) } }
                td.wide { @if let Some(error) = &flow.error { span.bad { (cell_of(error, 120)) } } }
            } } }
        } }
    }
}
