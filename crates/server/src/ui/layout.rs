//! The frame around each page: head, navigation, search, the context, and the caller.

use std::sync::Arc;

use axum::response::{Html, IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::Shared;
use super::assets::{ICON, SCRIPT, STYLE};
use super::caller::{Caller, ContextRow};
use super::changes::done;
use super::forms::again;
use super::parts::icon;
use super::text::cell_of;
use crate::api::access::Access;
use crate::api::{ApiError, Code};

/// A page without its frame.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) title: String,
    /// Entry of the navigation that it belongs to.
    pub(super) entry: &'static str,
    pub(super) body: Markup,
    /// Topic whose changes make the page new: of figures, a job or a flow.
    pub(super) topic: Option<String>,
    /// True to be read again by browsers without scripts.
    is_refreshed: bool,
}

impl Page {
    pub(super) fn new(title: impl Into<String>, entry: &'static str, body: Markup) -> Self {
        Self {
            title: title.into(),
            entry,
            body,
            topic: None,
            is_refreshed: false,
        }
    }

    /// Lets browsers without scripts read the page again and again.
    pub(super) fn refreshed(mut self) -> Self {
        self.is_refreshed = true;
        self
    }

    /// Renews the parts of the page after changes of a topic.
    pub(super) fn live(mut self, topic: impl Into<String>) -> Self {
        self.topic = Some(topic.into());
        self
    }
}

/// Entries of the navigation: path, name and icon.
const ENTRIES: [(&str, &str, &str); 7] = [
    ("/", "Overview", "overview"),
    ("/jobs", "Jobs", "jobs"),
    ("/queues", "Queues", "queues"),
    ("/workers", "Workers", "workers"),
    ("/dead", "Dead letters", "dead"),
    ("/schedules", "Schedules", "schedules"),
    ("/flows", "Flows", "flows"),
];

/// Entries of what is outside of contexts alone.
const OF_NODE: [&str; 2] = ["/workers", "/schedules"];

/// Serves a page by GET.
pub(super) fn page<F>(render: fn(Arc<Caller>) -> F) -> MethodRouter<Arc<Shared>>
where
    F: Future<Output = Result<Page, ApiError>> + Send + 'static,
{
    get(move |caller: Caller| async move {
        let caller = Arc::new(caller);
        // At the same time, since an absent store lets both wait.
        let (page, contexts) = tokio::join!(render(Arc::clone(&caller)), caller.contexts());
        match page {
            Ok(page) => written(&framed(&caller, &page, &contexts)).into_response(),
            Err(error) => refused(&caller, &error, &contexts),
        }
    })
}

/// The page of an error.
pub(super) async fn failed(caller: &Caller, error: ApiError) -> Response {
    let contexts = match error.code {
        Code::StorageError => Vec::new(),
        _ => caller.contexts().await,
    };
    refused(caller, &error, &contexts)
}

fn refused(caller: &Caller, error: &ApiError, contexts: &[ContextRow]) -> Response {
    let is_away = error.code == Code::StorageError;
    let body = html! {
        div.empty {
            h1 { (headline(error.code)) }
            p role="alert" { (cell_of(&error.message, 2000)) }
            @if let Some(hint) = error.hint { p.note { (hint) } }
            @if is_away { p.note { "This page tries again every 5 seconds." } }
            p { a.button href=(caller.url("/", &[])) { "Overview" } }
        }
    };
    let page = Page::new(headline(error.code), "", body);
    let page = written(&framed(caller, &page, contexts));
    let response = (error.code.status(), page).into_response();
    match is_away {
        true => again(response),
        false => response,
    }
}

fn headline(code: Code) -> &'static str {
    match code {
        Code::NotFound | Code::MethodNotFound => "Not found",
        Code::Forbidden | Code::AuthenticationRequired | Code::InvalidCredentials => "Not allowed",
        Code::StorageError => "The store does not answer",
        Code::Conflict | Code::LimitExceeded => "Not possible now",
        Code::Timeout => "Not done yet",
        Code::TooManyRequests => "Too many requests",
        _ => "That did not work",
    }
}

/// Place of the part of a page that follows later.
pub(super) const MIDDLE: PreEscaped<&str> = PreEscaped("<!--middle-->");

/// A page in its frame.
pub(super) async fn whole(caller: &Caller, page: &Page) -> Html<String> {
    written(&framed(caller, page, &caller.contexts().await))
}

/// A page in its frame, split at [`MIDDLE`]. Texts of others are escaped, and never have that mark.
pub(super) async fn in_parts(caller: &Caller, page: &Page) -> (String, String) {
    let Html(text) = whole(caller, page).await;
    match text.split_once(MIDDLE.0) {
        Some((head, tail)) => (head.to_owned(), tail.to_owned()),
        None => (text, String::new()),
    }
}

fn written(markup: &Markup) -> Html<String> {
    Html(markup.0.clone())
}

/// Puts a page into its frame.
fn framed(caller: &Caller, page: &Page, contexts: &[ContextRow]) -> Markup {
    let done = caller.query("done").and_then(done);
    let main = html! {
        main #main tabindex="-1" data-topic=[page.topic.as_deref()] {
            @if let Some(done) = done { p.flash role="status" { (done) } }
            (page.body)
        }
    };
    let body = html! {
        a.skip href="#main" { "Skip to the content" }
        div.shell {
            header.top {
                a.brand href=(caller.url("/", &[])) { (icon("brand")) span { "Meshwork" } }
                (search(caller))
                @if !contexts.is_empty() { (switch(caller, contexts)) }
                (who(caller))
            }
            nav.side aria-label="Pages" {
                ul {
                    @for (path, name, picture) in ENTRIES.iter().filter(|it| caller.sees_node || !OF_NODE.contains(&it.0)) {
                        @let current = (*path == page.entry).then_some("page");
                        li { a href=(caller.url(path, &[])) aria-current=[current] { (icon(picture)) span { (name) } } }
                    }
                }
            }
            (main)
            footer.foot {
                "Meshwork " (env!("CARGO_PKG_VERSION")) " · namespace "
                (cell_of(caller.shared.api.calls().client.broker().keys().namespace().as_ref(), 40))
                span #live hidden { " · live" }
            }
        }
    };
    let refresh = html! {
        @if page.is_refreshed { noscript { meta http-equiv="refresh" content="2"; } }
    };
    document(&caller.shared.base, (&page.title, &refresh), &body)
}

fn search(caller: &Caller) -> Markup {
    let text = (caller.path == "/search")
        .then(|| caller.query("q"))
        .flatten();
    html! {
        form.search role="search" action=(format!("{}/search", caller.shared.base)) {
            @if let Some(context) = caller.context { input type="hidden" name="context" value=(context); }
            label.hidden for="q" { "Id of a job, flow, batch or schedule, name of a queue, or a text of a job" }
            (icon("search"))
            input #q type="search" name="q" value=[text] placeholder="Id, queue or text  ( / )" autocomplete="off" spellcheck="false";
        }
    }
}

fn switch(caller: &Caller, contexts: &[ContextRow]) -> Markup {
    html! {
        form.switch action=(caller.shared.base.clone() + "/") {
            label.hidden for="context" { "Context" }
            select #context name="context" {
                @if caller.sees_node { option value="" selected[caller.context.is_none()] { "No context" } }
                @for ContextRow { id } in contexts {
                    option value=(id) selected[caller.context == Some(*id)] { "Context " (id) }
                }
            }
            button type="submit" { "Go" }
        }
    }
}

/// The caller, and the way out.
fn who(caller: &Caller) -> Markup {
    let scope = caller.access.scope().map_or("", |scope| scope.as_str());
    let name = match &caller.access {
        Access::Key(key) => key.name.to_string(),
        _ => scope.to_owned(),
    };
    html! {
        div.who {
            span.badge title={"Scope " (scope)} { (cell_of(&name, 24)) }
            @if caller.session.is_some() {
                form method="post" action=(format!("{}/sign-out", caller.shared.base)) {
                    button.quiet type="submit" { "Sign out" }
                }
            }
        }
    }
}

/// A page without navigation.
pub(super) fn bare(base: &str, title: &str, body: &Markup) -> Html<String> {
    let body = html! {
        main.alone #main {
            p.brand { (icon("brand")) span { "Meshwork" } }
            (body)
        }
    };
    written(&document(base, (title, &html! {}), &body))
}

fn document(base: &str, (title, refresh): (&str, &Markup), body: &Markup) -> Markup {
    let asset = |name: &str| format!("{base}/assets/{name}");
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="robots" content="noindex";
                (refresh)
                title { (super::text::cut(&super::text::visible(title), 100)) " · Meshwork" }
                link rel="icon" href=(asset(&ICON.name));
                link rel="stylesheet" href=(asset(&STYLE.name));
                script src=(asset(&SCRIPT.name)) defer {}
            }
            body data-base=(base) { (body) }
        }
    }
}
