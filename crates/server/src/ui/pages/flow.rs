//! One flow: its graph, its waterfall, open approvals, and its jobs.

use std::sync::Arc;

use maud::{Markup, PreEscaped, html};
use meshwork::flow::graph::{Bar, svg_with_links, waterfall_svg_with_links};
use meshwork_model::flow::Dag;
use meshwork_model::time;
use meshwork_model::time::duration;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::api::ApiError;
use crate::ui::caller::Caller;
use crate::ui::layout::Page;
use crate::ui::parts::{button, confirmed, state};
use crate::ui::text::{block, cell_of, when};
use crate::ui::views::between;

/// State of a flow.
#[derive(Debug, Deserialize)]
struct Flow {
    id: u32,
    name: String,
    status: String,
    error: Option<String>,
    created_at: Option<String>,
    ended_at: Option<String>,
    outputs: Value,
    jobs: Vec<FlowJob>,
}

/// Job of a flow.
#[derive(Debug, Deserialize)]
struct FlowJob {
    name: String,
    id: String,
    status: String,
    error: Option<String>,
    question: Option<String>,
    started_at: Option<String>,
    ended_at: Option<String>,
    #[serde(default)]
    items: Vec<Item>,
}

/// Item of a `foreach`.
#[derive(Debug, Deserialize)]
struct Item {
    status: String,
    id: Option<String>,
    error: Option<String>,
    started_at: Option<String>,
    ended_at: Option<String>,
}

/// Renders the page.
pub(super) async fn show(caller: Arc<Caller>) -> Result<Page, ApiError> {
    let id: u32 = caller
        .needed("id")?
        .parse()
        .map_err(|_| ApiError::invalid("id: give the number of a flow"))?;
    let of = json!({"id": id});
    let (flow, dag) = tokio::try_join!(
        caller.read_here::<Flow>("flow.get", of.clone()),
        caller.read_here::<Dag<String>>("flow.dag", of),
    )?;
    let is_ended = matches!(flow.status.as_str(), "finished" | "error");
    let body = html! {
        header.head #head data-part {
            h1 { "Flow " (flow.id) " · " (cell_of(&flow.name, 60)) }
            (state(&flow.status))
            div.buttons { (buttons(&caller, &flow, is_ended)) }
        }
        section #state data-part { (summary(&caller, &flow)) (questions(&caller, &flow)) }
        section.card #graph data-part { h2 { "Graph" } (drawing(&graph(&caller, &flow, &dag), "Graph of the flow")) }
        section.card #waterfall data-part { h2 { "Waterfall" } (waterfall(&caller, &flow)) }
        section.card #jobs data-part { h2 { "Jobs" } (jobs(&caller, &flow, is_ended)) }
        @if flow.status == "finished" { section.card { h2 { "Outputs" } (block(&format!("{:#}", flow.outputs))) } }
    };
    let page = Page::new(format!("Flow {}", flow.id), "/flows", body);
    Ok(if is_ended { page } else { page.live("figures") })
}

fn buttons(caller: &Caller, flow: &Flow, is_ended: bool) -> Markup {
    let id = flow.id.to_string();
    html! {
        @if is_ended { (confirmed(caller, ("flow.delete", "Delete…"), &[("id", &id)])) }
        @else { (button(caller, ("flow.cancel", "Cancel"), &[("id", &id)])) }
    }
}

fn summary(caller: &Caller, flow: &Flow) -> Markup {
    let took = between(flow.created_at.as_deref(), flow.ended_at.as_deref());
    let ended = flow.jobs.iter().filter(|job| {
        matches!(
            job.status.as_str(),
            "finished" | "error" | "skipped" | "stopped"
        )
    });
    html! {
        p.note {
            @if let Some(at) = &flow.created_at { "Submitted " (when(at, caller.now_ms)) ". " }
            (ended.count()) " of " (flow.jobs.len()) " jobs have ended."
            @if let Some(took) = took { " It took " (duration(took)) "." }
        }
        @if let Some(error) = &flow.error { div.card.failure { h2 { "Error" } (block(error)) } }
    }
}

/// Open approvals, with their buttons.
fn questions(caller: &Caller, flow: &Flow) -> Markup {
    let id = flow.id.to_string();
    let open = flow
        .jobs
        .iter()
        .filter_map(|job| Some((job, job.question.as_ref()?)));
    html! {
        @for (job, question) in open {
            div.card.why {
                h2 { "Approval " (cell_of(&job.name, 60)) }
                p { (cell_of(question, 1000)) }
                div.buttons {
                    (button(caller, ("flow.approve", "Approve"), &[("id", &id), ("job", &job.name)]))
                    (button(caller, ("flow.reject", "Reject"), &[("id", &id), ("job", &job.name)]))
                }
            }
        }
    }
}

/// A drawing that may be wider than the page.
fn drawing(svg: &str, label: &str) -> Markup {
    html! { div.scroll tabindex="0" role="region" aria-label=(label) { (PreEscaped(svg)) } }
}

fn graph(caller: &Caller, flow: &Flow, dag: &Dag<String>) -> String {
    let link = |name: &str| {
        let job = flow.jobs.iter().find(|job| job.name == name)?;
        Some(caller.url("/job", &[("id", &job.id)]))
    };
    svg_with_links(dag, &flow.name, link)
}

fn waterfall(caller: &Caller, flow: &Flow) -> Markup {
    let mut bars = Vec::new();
    let mut links = Vec::new();
    for job in &flow.jobs {
        let items = job.items.iter().enumerate().map(|(at, item)| {
            let name = format!("{}[{at}]", job.name);
            (
                name,
                &item.status,
                &item.started_at,
                &item.ended_at,
                item.id.as_deref(),
            )
        });
        let own = (
            job.name.clone(),
            &job.status,
            &job.started_at,
            &job.ended_at,
            Some(job.id.as_str()),
        );
        for (name, status, started, ended, id) in std::iter::once(own).chain(items) {
            let ms = |text: &Option<String>| text.as_deref().and_then(time::parse_iso);
            let Some(start_ms) = ms(started) else {
                continue;
            };
            links.push((name.clone(), id));
            bars.push(Bar {
                name,
                status: status.clone(),
                start_ms,
                end_ms: ms(ended),
            });
        }
    }
    if bars.is_empty() {
        return html! { p.note { "No job has started yet." } };
    }
    let link = |name: &str| {
        let (_, id) = links.iter().find(|(of, _)| of == name)?;
        Some(caller.url("/job", &[("id", (*id)?)]))
    };
    let svg = waterfall_svg_with_links(&bars, caller.now_ms, &flow.name, link);
    drawing(&svg, "Waterfall of the flow")
}

fn jobs(caller: &Caller, flow: &Flow, is_ended: bool) -> Markup {
    let id = flow.id.to_string();
    html! {
        div.table tabindex="0" role="region" aria-label="Jobs" { table {
            thead { tr { th { "Job" } th { "State" } th { "Ran" } th.wide { "Error" } th { span.hidden { "Changes" } } } }
            tbody { @for job in &flow.jobs {
                tr {
                    td { a href=(caller.url("/job", &[("id", &job.id)])) { (cell_of(&job.name, 60)) } }
                    td { (state(&job.status)) }
                    td { @if let Some(ran) = between(job.started_at.as_deref(), job.ended_at.as_deref()) { (duration(ran)) } }
                    td.wide { @if let Some(error) = &job.error { span.bad { (cell_of(error, 120)) } } }
                    td.buttons { @if is_ended { (button(caller, ("flow.retry", "Retry from here"), &[("id", &id), ("from_jobs", &job.name)])) } }
                }
                @for (at, item) in job.items.iter().enumerate().take(200) { (item_line(caller, job, (at, item))) }
            } }
        } }
    }
}

fn item_line(caller: &Caller, job: &FlowJob, (at, item): (usize, &Item)) -> Markup {
    let name = format!("{}[{at}]", job.name);
    html! {
        tr.item {
            td { @if let Some(id) = &item.id { a href=(caller.url("/job", &[("id", id)])) { (cell_of(&name, 60)) } } @else { (cell_of(&name, 60)) } }
            td { (state(&item.status)) }
            td { @if let Some(ran) = between(item.started_at.as_deref(), item.ended_at.as_deref()) { (duration(ran)) } }
            td.wide { @if let Some(error) = &item.error { span.bad { (cell_of(error, 120)) } } }
            td {}
        }
    }
}
