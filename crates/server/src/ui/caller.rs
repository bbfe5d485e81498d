//! The caller of a request: the key or session, the context, and the parameters of the page.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::header::ORIGIN;
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, Method};
use axum::response::{IntoResponse, Redirect, Response};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::Shared;
use super::figures::Figures;
use super::reads;
use super::session::SessionId;
use crate::api::access::Access;
use crate::api::holder::holder;
use crate::api::http::query;
use crate::api::rights::READ_WITHIN;
use crate::api::{ApiError, Call, MAX_LIMIT, find};
use crate::http::guard::{FETCH_SITE, Foreign, Holder};

/// Characters of a value in a query that stay as they are.
const VALUE: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Longest value in an address, in bytes: servers refuse longer addresses.
pub(super) const LONGEST_VALUE: usize = 2000;

/// Pages of a list that a page of the dashboard reads at most.
const MOST_PAGES: usize = 16;

/// Context in the switch.
#[derive(Debug, Deserialize)]
pub(super) struct ContextRow {
    pub(super) id: u32,
}

#[derive(Debug, Deserialize)]
struct Contexts {
    contexts: Vec<ContextRow>,
}

/// The caller of a page.
#[derive(Debug)]
pub(super) struct Caller {
    pub(super) shared: Arc<Shared>,
    pub(super) access: Access,
    /// Holder of its shares.
    pub(super) holder: Holder,
    pub(super) session: Option<SessionId>,
    /// Number of the context whose jobs are shown; `None` for jobs of no context.
    pub(super) context: Option<u32>,
    /// True for a caller who may read outside of contexts.
    pub(super) sees_node: bool,
    /// Path of the page, without that of all pages.
    pub(super) path: String,
    query: Vec<(String, String)>,
    pub(super) now_ms: u64,
}

impl FromRequestParts<Arc<Shared>> for Caller {
    type Rejection = Response;

    async fn from_request_parts(head: &mut Parts, shared: &Arc<Shared>) -> Result<Self, Response> {
        let access = head
            .extensions
            .get::<Access>()
            .cloned()
            .unwrap_or(Access::All);
        let path = head.uri.path();
        let path = path.strip_prefix(&shared.base).unwrap_or(path).to_owned();
        let text = head.uri.query().unwrap_or_default();
        let query = query::pairs(text).unwrap_or_default();
        let number = |(name, text): &(String, String)| match name.as_str() {
            "context" => text.parse().ok(),
            _ => None,
        };
        let mut caller = Self {
            shared: Arc::clone(shared),
            holder: holder(&head.extensions),
            access,
            session: head.extensions.get().copied(),
            context: query.iter().find_map(number),
            sees_node: false,
            path,
            query,
            now_ms: meshwork::host_ms(),
        };
        match caller.access {
            Access::Nobody => Err(caller.sign_in(&head.method)),
            _ => {
                shared.poller.look();
                caller.settle().await;
                Ok(caller)
            }
        }
    }
}

impl Caller {
    /// Finds out whether the caller may read outside of contexts. One who may not gets the pages of the context of its key, or
    /// of the first one that it may read, unless the address names another.
    async fn settle(&mut self) {
        let call = self.call();
        let outside = tokio::time::timeout(READ_WITHIN, call.rights.outside(&self.access));
        let Ok(Ok(scope)) = outside.await else {
            // The page says that the store is away.
            return;
        };
        self.sees_node = scope.is_some();
        if self.sees_node || self.context.is_some() {
            return;
        }
        self.context = match self.access.context() {
            Some(context) => Some(context.get()),
            None => self.contexts().await.first().map(|context| context.id),
        };
    }

    /// Reads the contexts for the switch. A caller who is no actor has none, and sees the rest.
    pub(super) async fn contexts(&self) -> Vec<ContextRow> {
        let list = self.read::<Contexts>("context.list", json!({"limit": 1000}));
        list.await.map(|list| list.contexts).unwrap_or_default()
    }

    /// Returns the last figures of the queues outside of contexts.
    pub(super) async fn figures(&self) -> Option<Arc<Figures>> {
        match self.sees_node {
            true => self.shared.poller.figures().await,
            false => None,
        }
    }

    /// Sends a browser to the page for signing in, which leads back here.
    fn sign_in(&self, method: &Method) -> Response {
        let here = match *method {
            Method::GET => self.here(),
            _ => self.url("/", &[]),
        };
        let to = format!("{}/sign-in?next={}", self.shared.base, encoded(&here));
        Redirect::to(&to).into_response()
    }

    /// Returns a parameter of the page.
    pub(super) fn query(&self, name: &str) -> Option<&str> {
        let given = self
            .query
            .iter()
            .find(|(given, text)| given == name && !text.is_empty());
        given.map(|(_, text)| text.as_str())
    }

    /// Returns a parameter that the page needs.
    pub(super) fn needed(&self, name: &str) -> Result<&str, ApiError> {
        self.query(name)
            .ok_or_else(|| ApiError::invalid(format!("{name} is missing in the address")))
    }

    /// Address of a page with these parameters, in the same context.
    pub(super) fn url(&self, path: &str, params: &[(&str, &str)]) -> String {
        let context = self.context.map(|id| id.to_string());
        let context = context.as_deref().map(|id| ("context", id));
        address(
            &self.shared.base,
            path,
            params.iter().copied().chain(context),
        )
    }

    /// Address of this page.
    pub(super) fn here(&self) -> String {
        let query = self.query.iter().filter(|(name, _)| name != "done");
        let query = query.map(|(name, text)| (name.as_str(), text.as_str()));
        address(&self.shared.base, &self.path, query)
    }

    /// Address of this page with other values of some parameters; an empty value takes one away.
    pub(super) fn here_with(&self, changes: &[(&str, &str)]) -> String {
        let is_kept =
            |name: &str| name != "done" && changes.iter().all(|(other, _)| *other != name);
        let kept = self.query.iter().filter(|(name, _)| is_kept(name));
        let kept = kept.map(|(name, text)| (name.as_str(), text.as_str()));
        let new = changes.iter().copied().filter(|(_, text)| !text.is_empty());
        address(&self.shared.base, &self.path, kept.chain(new))
    }

    /// Returns true if the scope of the caller allows this method. Roles in contexts may still refuse it.
    pub(super) fn may(&self, method: &str) -> bool {
        find(method).is_some_and(|method| self.access.check(method.scope, method.name).is_ok())
    }

    /// A call as this caller.
    pub(super) fn call(&self) -> Call {
        Call::new(self.shared.api.calls(), self.access.clone()).of_page()
    }

    /// Reads the result of a method, which callers with the same rights share for a second.
    pub(super) async fn read<T: DeserializeOwned>(
        &self,
        method: &str,
        params: Value,
    ) -> Result<T, ApiError> {
        let text = self.shared.reads.read(self.call(), method, params).await?;
        reads::parsed(method, &text)
    }

    /// Reads the pages of a list that a scan finds, up to [`MOST_PAGES`]. Returns the items, and the age of the scan.
    pub(super) async fn read_all<T: DeserializeOwned>(
        &self,
        method: &str,
        context: Option<u32>,
    ) -> Result<(Vec<T>, u64), ApiError> {
        #[derive(Deserialize)]
        struct Page<T> {
            #[serde(alias = "queues", alias = "workers")]
            items: Vec<T>,
            next: Option<String>,
            age_ms: u64,
        }
        let (mut items, mut age_ms) = (Vec::new(), 0);
        let mut params = json!({"limit": MAX_LIMIT});
        if let Some(context) = context {
            params["context"] = context.into();
        }
        for _ in 0..MOST_PAGES {
            let page: Page<T> = self.read(method, params.clone()).await?;
            items.extend(page.items);
            age_ms = page.age_ms;
            let Some(next) = page.next else { break };
            params["cursor"] = next.into();
        }
        Ok((items, age_ms))
    }

    /// As [`Self::read`], in the context of the page.
    pub(super) async fn read_here<T: DeserializeOwned>(
        &self,
        method: &str,
        mut params: Value,
    ) -> Result<T, ApiError> {
        if let (Some(context), Some(params)) = (self.context, params.as_object_mut()) {
            params.insert("context".to_owned(), context.into());
        }
        self.read(method, params).await
    }
}

/// Writes the address of a page.
fn address<'a>(base: &str, path: &str, params: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let mut out = format!("{base}{path}");
    for (at, (name, text)) in params.enumerate() {
        out.push(if at == 0 { '?' } else { '&' });
        out.push_str(&encoded(name));
        out.push('=');
        let end = text.floor_char_boundary(LONGEST_VALUE);
        out.push_str(&encoded(&text[..end]));
    }
    out
}

/// A text as a value in a query.
pub(super) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, VALUE).to_string()
}

/// Returns true for a request that a page of this server made, as its browser says. The guard has compared the `Origin`
/// with the host and with those that may call.
pub(super) fn is_from_here(headers: &HeaderMap, extensions: &Extensions) -> bool {
    if extensions.get::<Foreign>().is_some() {
        return false;
    }
    match headers.get(FETCH_SITE) {
        Some(site) => site == "same-origin",
        None => headers.get(ORIGIN).is_some_and(|origin| origin != "null"),
    }
}
