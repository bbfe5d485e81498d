//! A change of all jobs that match: the count, the button with the number, the progress, and the end.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::response::Response;
use maud::{Markup, html};

use crate::api::{ApiError, Code, find};
use crate::ui::Shared;
use crate::ui::caller::Caller;
use crate::ui::forms::{field, form, see_other};
use crate::ui::layout::{Page, failed};
use crate::ui::many::{Change, Figures, Phase};
use crate::ui::parts::bar;
use crate::ui::selection::Selection;
use crate::ui::text::{cell_of, number};

/// Buttons that change all jobs of a selection; nothing for a caller who may not.
pub(super) fn buttons(caller: &Caller, selection: &Selection) -> Markup {
    let buttons = labelled(caller, selection, "all…");
    html! {
        @if selection.changes(caller.context.is_some()).iter().any(|(method, _)| caller.may(method)) {
            div.buttons { span.note { "All matches:" } (buttons) }
        }
    }
}

/// These buttons with the last word of their labels.
pub(super) fn labelled(caller: &Caller, selection: &Selection, word: &str) -> Markup {
    let params = selection.params();
    let changes = selection.changes(caller.context.is_some()).iter();
    html! {
        @for (method, label) in changes.filter(|(method, _)| caller.may(method)) {
            form method="post" action=(caller.url(&format!("/many/{method}"), &params)) {
                button type="submit" { (label) " " (word) }
            }
        }
    }
}

/// Begins a count, by the button of a list.
pub(in crate::ui) async fn count(
    State(shared): State<Arc<Shared>>,
    Path(method): Path<String>,
    caller: Caller,
    request: Request,
) -> Response {
    let caller = Arc::new(caller);
    match begin(&shared, &caller, &method, request).await {
        Ok(id) => see_other(&caller.url("/many", &[("id", &id)])),
        Err(error) => failed(&caller, error).await,
    }
}

async fn begin(
    shared: &Shared,
    caller: &Arc<Caller>,
    name: &str,
    request: Request,
) -> Result<String, ApiError> {
    form(shared, request).await?;
    let none = || ApiError::new(Code::NotFound, format!("no button has the method {name}"));
    let method = find(name).ok_or_else(none)?;
    caller.access.check(method.scope, method.name)?;
    let selection = Selection::of(caller, "")?;
    let changes = selection.changes(caller.context.is_some());
    let change = changes.iter().find(|(known, _)| *known == name);
    let (_, label) = change.ok_or_else(none)?;
    shared.many.count(caller, (method, label), selection)
}

/// Starts a counted change, or stops one.
pub(in crate::ui) async fn act(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    request: Request,
) -> Response {
    let caller = Arc::new(caller);
    match start(&shared, &caller, request).await {
        Ok(id) => see_other(&caller.url("/many", &[("id", &id)])),
        Err(error) => failed(&caller, error).await,
    }
}

async fn start(
    shared: &Shared,
    caller: &Arc<Caller>,
    request: Request,
) -> Result<String, ApiError> {
    let form = form(shared, request).await?;
    let id = field(&form, "id").unwrap_or_default();
    let change = shared.many.get(caller, id)?;
    caller
        .access
        .check(change.method.scope, change.method.name)?;
    if field(&form, "do") == Some("stop") {
        change.stop();
        return Ok(change.id.clone());
    }
    let typed = field(&form, "typed").unwrap_or_default();
    if is_typed(&change) && typed != change.selection.name(caller) {
        let message = format!("{typed:?} is not the name: nothing was changed");
        return Err(ApiError::invalid(message));
    }
    shared.many.start(caller, &change)?;
    Ok(change.id.clone())
}

/// Returns true if the name has to be typed: nothing brings deleted jobs back.
fn is_typed(change: &Change) -> bool {
    change.method.name.ends_with(".delete")
}

/// Renders the page.
pub(super) async fn show(caller: Arc<Caller>) -> Result<Page, ApiError> {
    let change = caller.shared.many.get(&caller, caller.needed("id")?)?;
    let figures = change.figures();
    let entry = match change.selection.state {
        "dead" => "/dead",
        _ => "/jobs",
    };
    let list = caller.url(entry, &change.selection.params());
    let title = format!("{} all matches", change.label);
    let body = html! {
        h1 { (title) }
        p.note { (described(&caller, &change)) }
        section.card #many data-part { (content(&caller, &change, &figures)) }
        p { a.button href=(list) { "Back to the list" } }
    };
    let page = Page::new(title, entry, body).live(format!("many:{}", change.id));
    Ok(match change.is_active() {
        true => page.refreshed(),
        false => page,
    })
}

/// The selection in words.
fn described(caller: &Caller, change: &Change) -> Markup {
    let params = change.selection.params();
    html! {
        @for (at, (name, text)) in params.iter().enumerate() {
            @if at > 0 { ", " }
            (name) " "
            @let text = if *name == "queue" { crate::ui::views::queue_name(caller, text) } else { text };
            strong { (cell_of(text, 60)) }
        }
    }
}

fn content(caller: &Caller, change: &Change, figures: &Figures) -> Markup {
    match &figures.phase {
        Phase::Counting => html! {
            p role="status" { "Looked at " (number(figures.compared)) " jobs: " (number(figures.jobs)) " match." }
            (stop(caller, change))
        },
        Phase::Counted if figures.jobs == 0 => html! { p role="status" { "No job matches." } },
        Phase::Counted => question(caller, change, figures),
        Phase::Running => html! {
            p role="status" { (progress(figures)) }
            (bar(figures.changed + figures.left, figures.jobs, "Jobs done"))
            (stop(caller, change))
        },
        Phase::Ended => html! { p role="status" { "Done: " (progress(figures)) } (left(figures)) },
        Phase::Stopped => html! {
            p role="status" { "Stopped: " (progress(figures)) " The rest is unchanged." }
            (left(figures))
        },
        Phase::Failed(error) => html! {
            p.flash.bad role="alert" { (cell_of(&error.message, 2000)) }
            p { (progress(figures)) " The rest is unchanged: repeat the change from the list." }
            (left(figures))
        },
    }
}

fn progress(figures: &Figures) -> Markup {
    html! { (number(figures.changed)) " of " (number(figures.jobs)) " jobs changed." }
}

fn left(figures: &Figures) -> Markup {
    html! {
        @if figures.left > 0 {
            p.note {
                (number(figures.left)) " changed or went away after the count, and stay as they are"
                @if let Some(reason) = &figures.reason { ": " (cell_of(reason, 200)) } @else { "." }
            }
        }
    }
}

fn stop(caller: &Caller, change: &Change) -> Markup {
    html! {
        form method="post" action=(caller.url("/many", &[])) {
            input type="hidden" name="id" value=(change.id);
            input type="hidden" name="do" value="stop";
            button type="submit" { "Stop" }
        }
    }
}

fn question(caller: &Caller, change: &Change, figures: &Figures) -> Markup {
    let name = change.selection.name(caller);
    html! {
        p role="status" {
            (number(figures.jobs)) " jobs match. Jobs that come from now on are left out."
            @if figures.is_cut { " More may match: repeat the change for them." }
        }
        form.sheet method="post" action=(caller.url("/many", &[])) {
            input type="hidden" name="id" value=(change.id);
            @if is_typed(change) {
                label for="typed" { "Type " strong { (cell_of(&name, 100)) } }
                input #typed name="typed" required autocomplete="off" spellcheck="false";
            }
            button.danger type="submit" { (change.label) " " (number(figures.jobs)) " jobs" }
        }
    }
}
