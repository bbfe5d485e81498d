//! The entrance: headers of all pages, the way from `/`, and signing in and out.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_SECURITY_POLICY, ORIGIN, REFERRER_POLICY, RETRY_AFTER,
    SET_COOKIE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use maud::html;

use super::caller::{Caller, encoded};
use super::forms::{back, field, form, see_other};
use super::layout::{bare, failed};
use super::session::cookie;
use super::{Shared, session};
use crate::api::http::query;
use crate::api::{ApiError, Code};
use crate::http::guard::{ClientAddress, FETCH_SITE, Permit, Profile};

/// Own scripts and styles alone, no frames, and forms that lead back here.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// Properties of a dashboard without the API for the guard.
pub const PROFILE: Profile = Profile {
    probes: &["/healthz"],
    methods: "GET",
    headers: "",
    refuse: |refusal| (refusal.status, format!("{}\n", refusal.message)).into_response(),
};

/// Adds the headers that keep a page in its place.
pub(super) async fn with_headers(request: Request, next: Next) -> Response {
    // Without this header the browser gives the origin of a form alone, which `no-referrer` would hide.
    let referrer = match request.headers().contains_key(FETCH_SITE) {
        true => "no-referrer",
        false => "same-origin",
    };
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static(referrer));
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers
        .entry(CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    response
}

/// Leads browsers from `/` to the pages.
pub(super) async fn lead(
    State(shared): State<Arc<Shared>>,
    request: Request,
    next: Next,
) -> Response {
    let path = request.uri().path();
    let root = shared.options.prefix.as_str();
    let is_root = path == "/" || (!root.is_empty() && path.trim_end_matches('/') == root);
    let accepts = |value: &HeaderValue| value.to_str().is_ok_and(|text| text.contains("text/html"));
    let is_browser = request.headers().get_all(ACCEPT).iter().any(accepts);
    match request.method() == Method::GET && is_root && is_browser {
        true => see_other(&format!("{}/", shared.base)),
        false if shared.options.alone && path == "/healthz" => "healthy\n".into_response(),
        false => next.run(request).await,
    }
}

/// Leads from the path without its last slash.
pub(super) async fn to_overview(State(shared): State<Arc<Shared>>) -> Response {
    see_other(&format!("{}/", shared.base))
}

/// The response to an unknown path.
pub(super) async fn nowhere(caller: Caller) -> Response {
    let message = "there is no page with this address";
    failed(&caller, ApiError::new(Code::NotFound, message)).await
}

/// The page for signing in.
pub(super) async fn sign_in(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let query = query::pairs(request.uri().query().unwrap_or_default()).unwrap_or_default();
    let next = back(&shared, field(&query, "next"));
    if shared.sessions.is_open() {
        return see_other(&next);
    }
    sign_in_page(&shared, &next, None).into_response()
}

fn sign_in_page(shared: &Shared, next: &str, error: Option<&ApiError>) -> Response {
    let by_link = shared.sessions.is_by_link();
    let (label, hint) = match by_link {
        true => (
            "Token",
            "The part after # of the link that `meshwork dashboard` has printed.",
        ),
        false => (
            "API key",
            "Make one with `meshwork key create NAME --scope viewer`.",
        ),
    };
    let body = html! {
        form.sign-in method="post" action=(format!("{}/sign-in", shared.base)) data-by-link[by_link] {
            h1 { "Sign in" }
            @if let Some(error) = error {
                p.flash.bad role="alert" { (error.message) @if let Some(hint) = error.hint { ": " (hint) } }
            }
            input type="hidden" name="next" value=(next);
            label for="key" { (label) }
            input #key type="password" name="key" required autocomplete="current-password" spellcheck="false" aria-describedby="hint";
            p.note #hint { (hint) }
            button.primary type="submit" { "Sign in" }
        }
    };
    let status = error.map_or(StatusCode::OK, |error| error.code.status());
    let mut response = (status, bare(&shared.base, "Sign in", &body)).into_response();
    if status == StatusCode::TOO_MANY_REQUESTS {
        response
            .headers_mut()
            .insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

/// Opens a session.
pub(super) async fn open(
    State(shared): State<Arc<Shared>>,
    Extension(permit): Extension<Arc<Permit>>,
    Extension(ClientAddress(client)): Extension<ClientAddress>,
    request: Request,
) -> Response {
    let way = way(request.headers(), &permit);
    let form = match form(&shared, request).await {
        Ok(form) => form,
        Err(error) => return sign_in_page(&shared, &back(&shared, None), Some(&error)),
    };
    let next = back(&shared, field(&form, "next"));
    let key = field(&form, "key").unwrap_or_default().trim();
    match shared.sessions.sign_in(key, client).await {
        Ok(text) => with_cookie(see_other(&next), &cookie(&text, &shared.base, way)),
        Err(error) => sign_in_page(&shared, &next, Some(&error)),
    }
}

/// Ends a session.
pub(super) async fn close(
    State(shared): State<Arc<Shared>>,
    Extension(permit): Extension<Arc<Permit>>,
    request: Request,
) -> Response {
    let way = way(request.headers(), &permit);
    let id = request.extensions().get::<session::SessionId>().copied();
    if let Err(error) = form(&shared, request).await {
        return (error.code.status(), error.message).into_response();
    }
    if let Some(id) = id {
        shared.sessions.sign_out(id);
    }
    let to = format!(
        "{}/sign-in?next={}",
        shared.base,
        encoded(&format!("{}/", shared.base))
    );
    with_cookie(see_other(&to), &cookie("", &shared.base, way))
}

/// Returns true for a browser that speaks TLS with a proxy in front, and the port that is listened on.
fn way(headers: &HeaderMap, permit: &Permit) -> (bool, u16) {
    let origin = headers.get(ORIGIN).and_then(|value| value.to_str().ok());
    let forwarded = headers
        .get("x-forwarded-proto")
        .and_then(|value| value.to_str().ok());
    let is_tls = origin.is_some_and(|it| it.starts_with("https://")) || forwarded == Some("https");
    (is_tls, permit.local().port())
}

fn with_cookie(mut response: Response, cookie: &str) -> Response {
    if let Ok(value) = HeaderValue::from_str(cookie) {
        response.headers_mut().insert(SET_COOKIE, value);
    }
    response
}
