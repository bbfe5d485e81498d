//! The guard in front of an HTTP server, one file for each check: [`host`], [`origin`], [`token`], [`connections`],
//! [`proxies`], [`body`] and [`shares`]. It knows nothing of the server behind it but its [`Profile`], so any server can take it.

mod body;
mod connections;
mod host;
mod origin;
mod proxies;
mod shares;
mod token;

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_REQUEST_METHOD, CONNECTION, ORIGIN, TRANSFER_ENCODING, VARY,
};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Router, middleware};
use futures_util::future::BoxFuture;

use super::heads::TwoLengths;
use super::{CUT_OFF, Closing};
pub use body::{ALL_BODIES, Bodies, Received, check_coding};
pub(crate) use connections::TOKEN_GRACE;
use connections::UNAUTHENTICATED;
pub use connections::{Busy, Connections, Limits, PER_PEER, Permit};
pub use host::Authority;
pub(crate) use origin::FETCH_SITE;
pub use origin::Origin;
pub use proxies::{Network, Proxies};
pub use shares::{Holder, Share, Shares};
pub(crate) use token::bearer;
pub use token::{InvalidToken, MAX_TOKEN, Token};

/// The properties of the server behind the guard.
#[derive(Debug, Clone, Copy)]
pub struct Profile {
    /// Paths of health checks: they need no token, and are answered when all else is refused.
    pub probes: &'static [&'static str],
    /// Methods that web pages of allowed origins may use, as in `Access-Control-Allow-Methods`.
    pub methods: &'static str,
    /// Headers that they may send, as in `Access-Control-Allow-Headers`.
    pub headers: &'static str,
    /// Writes a refusal in the format of the server.
    pub refuse: fn(Refusal) -> Response,
}

/// Request that the guard refuses, with the message for its client.
#[derive(Debug)]
pub struct Refusal {
    /// The status of the response.
    pub status: StatusCode,
    /// The kind of the refusal, a word in capital letters.
    pub code: &'static str,
    /// The reason, and what to do.
    pub message: Cow<'static, str>,
}

/// The checks that each request has to pass.
#[derive(Debug)]
pub struct Guard {
    /// Names in `Host` that are accepted, beside loopback names and the address that is listened on.
    pub hosts: Vec<Authority>,
    /// Origins of web pages of other hosts that may call.
    pub origins: Vec<Origin>,
    /// Checks credentials; `None` lets everybody in who reaches the address.
    pub authenticate: Option<Arc<dyn Authenticate>>,
    /// The most connections of one address.
    pub peer_connections: u16,
    /// Proxies that are believed when they name the address of a client.
    pub proxies: Proxies,
    /// The server behind the guard.
    pub profile: Profile,
}

/// Checks the credentials of requests.
pub trait Authenticate: fmt::Debug + Send + Sync {
    /// Checks those of a request from this address. Adds to its extensions what the server behind has to know of its client.
    ///
    /// # Errors
    /// If the request gives wrong credentials, or none where it needs some.
    fn check<'a>(
        &'a self,
        head: &'a mut Parts,
        client: IpAddr,
    ) -> BoxFuture<'a, Result<Admission, Refusal>>;
}

/// The address of the client of a request, behind trusted proxies.
#[derive(Debug, Clone, Copy)]
pub struct ClientAddress(pub IpAddr);

/// Marks a request of a web page of another host that may call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Foreign;

/// A request that passed [`Authenticate`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// It gave the right credentials.
    Authenticated,
    /// It gave none. The server behind may need some for what it asks, and its connection may be evicted.
    Anonymous,
}

/// The result of the checks of one request.
enum Verdict {
    /// Passed, on to the server.
    Admitted,
    /// Passed: a CORS preflight request.
    Preflight,
    Refused(Refusal),
}

impl Refusal {
    /// Returns a refusal.
    pub fn new(
        status: StatusCode,
        code: &'static str,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            status,
            code,
            message: message.into(),
        }
    }

    #[cfg(test)]
    fn code(&self) -> &'static str {
        self.code
    }
}

impl Guard {
    /// Returns a guard that checks hosts alone.
    pub fn of_hosts(hosts: Vec<Authority>, profile: Profile) -> Self {
        Self {
            hosts,
            origins: Vec::new(),
            authenticate: None,
            peer_connections: 0,
            proxies: Proxies::NONE,
            profile,
        }
    }

    /// Returns the limits on connections, with `total` for all addresses together.
    pub fn limits(&self, total: usize) -> Limits {
        Limits {
            total,
            per_peer: self.peer_connections.into(),
            unauthenticated: self.authenticate.as_ref().map(|_| UNAUTHENTICATED),
            proxies: self.proxies.clone(),
        }
    }

    /// Puts the guard before all routes of a router.
    pub fn before(self, router: Router) -> Router {
        router.layer(middleware::from_fn_with_state(Arc::new(self), pass))
    }

    fn is_probe(&self, request: &Request) -> bool {
        self.profile.probes.contains(&request.uri().path())
    }

    /// Checks the length, the host and the origin: returns the origin of a page of another host that may read the response.
    fn source(
        &self,
        head: &Parts,
        permit: &Permit,
        is_probe: bool,
    ) -> Result<Option<HeaderValue>, Refusal> {
        if head.extensions.get::<TwoLengths>().is_some() {
            let message = "the request has content-length and transfer-encoding: send one of them";
            return Err(Refusal::new(
                StatusCode::BAD_REQUEST,
                "TWO_LENGTHS",
                message,
            ));
        }
        let host = host::check(&self.hosts, head, permit.local(), is_probe)?;
        origin::check(&self.origins, &head.headers, host.as_ref())
    }

    /// Checks the rest, for a request of an allowed source; `is_foreign` is one of a page of another host.
    async fn admit(
        &self,
        head: &mut Parts,
        permit: &Permit,
        is_probe: bool,
        is_foreign: bool,
    ) -> Verdict {
        if permit.is_reserved() && !is_probe {
            let message =
                "the connections of this address, or of all, are at their limit: ask again";
            let status = StatusCode::SERVICE_UNAVAILABLE;
            return Verdict::Refused(Refusal::new(status, "TOO_MANY_CONNECTIONS", message));
        }
        // A browser sends no token with a preflight request.
        let asks = head.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
        if is_foreign && asks && head.method == Method::OPTIONS {
            return Verdict::Preflight;
        }
        let client = permit.client(&head.headers);
        head.extensions.insert(ClientAddress(client));
        let Some(authenticate) = self.authenticate.as_ref().filter(|_| !is_probe) else {
            return Verdict::Admitted;
        };
        match authenticate.check(head, client).await {
            Ok(Admission::Authenticated) => permit.authenticate(),
            Ok(Admission::Anonymous) => {}
            Err(refusal) => return Verdict::Refused(refusal),
        }
        Verdict::Admitted
    }

    fn preflight(&self) -> Response {
        let headers = [
            (ACCESS_CONTROL_ALLOW_METHODS, self.profile.methods),
            (ACCESS_CONTROL_ALLOW_HEADERS, self.profile.headers),
        ];
        (StatusCode::NO_CONTENT, headers).into_response()
    }
}

async fn pass(
    State(guard): State<Arc<Guard>>,
    Extension(permit): Extension<Arc<Permit>>,
    Extension(closing): Extension<Closing>,
    request: Request,
    next: Next,
) -> Response {
    let is_probe = guard.is_probe(&request);
    // A probe has its answer before its connection may be evicted.
    let _busy = is_probe.then(|| permit.busy());
    let (mut head, body) = request.into_parts();
    let checks = permit.busy();
    let (verdict, origin) = match guard.source(&head, &permit, is_probe) {
        Ok(origin) => {
            if origin.is_some() {
                head.extensions.insert(Foreign);
            }
            let verdict = guard
                .admit(&mut head, &permit, is_probe, origin.is_some())
                .await;
            (verdict, origin)
        }
        Err(refusal) => (Verdict::Refused(refusal), None),
    };
    // A client whose key cannot be checked, since the store is away, has its refusal before its connection may be evicted.
    let _refuses = matches!(verdict, Verdict::Refused(_)).then_some(checks);
    // After a transfer encoding, a proxy in front may see the next request at another place.
    let mut closes = permit.is_reserved() || head.headers.contains_key(TRANSFER_ENCODING);
    let mut response = match verdict {
        Verdict::Admitted => tokio::select! {
            biased;
            response = next.run(Request::from_parts(head, body)) => response,
            () = closing.cuts_off() => {
                let status = StatusCode::SERVICE_UNAVAILABLE;
                (guard.profile.refuse)(Refusal::new(status, "CLOSING", CUT_OFF))
            }
        },
        Verdict::Preflight => guard.preflight(),
        Verdict::Refused(refusal) => {
            // The body of a refused request, if it has one, is not read.
            closes = true;
            (guard.profile.refuse)(refusal)
        }
    };
    let headers = response.headers_mut();
    if closes {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    if let Some(origin) = origin {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.append(VARY, HeaderValue::from(ORIGIN));
    }
    response
}
