//! The Model Context Protocol over HTTP: `POST /mcp`, one message or batch each. The caller's key decides which tools there are
//! and what they may do. No state is kept between requests but those under way, so any supervisor answers any request.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::header::{ACCEPT, ACCESS_CONTROL_EXPOSE_HEADERS};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use data_encoding::HEXLOWER;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use meshwork_model::api_key::Scope;
use serde_json::Value;
use tokio::sync::mpsc;

use super::{Agent, Desk, MODERN, UnderWay, WITH_HANDSHAKE};
use crate::api::holder::holder;
use crate::api::http::answers::{self, Answer};
use crate::api::http::{Problem, json, rest, stream};
use crate::api::rpc::answer;
use crate::api::{Access, Api, ApiError, Call, Code};
use crate::http::Closing;
use crate::http::guard::{Holder, Permit, Share};

/// Header with the name of a session, which keeps the ids of its requests apart from those of others.
const SESSION: &str = "mcp-session-id";
/// Header with the revision of the protocol.
const REVISION: &str = "mcp-protocol-version";
/// Longest name of a session in bytes: those of this server have 32.
const MAX_SESSION: usize = 128;
/// Pause after which a comment shows that the connection is alive: proxies close idle ones after 30 s or more.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Notifications that wait for the client.
const NOTICES: usize = 16;

/// State of all requests of agents.
struct Shared {
    api: Api,
    under_way: UnderWay,
}

/// Returns the route for agents of an API.
pub fn routes(api: &Api) -> Router {
    let (api, under_way) = (api.clone(), UnderWay::default());
    let shared = Arc::new(Shared { api, under_way });
    Router::new().route("/mcp", post(call)).with_state(shared)
}

/// One request of an agent.
struct Post {
    shared: Arc<Shared>,
    access: Option<Access>,
    closing: Option<Closing>,
    /// Name of the caller and its session.
    session: String,
    /// Takes notifications; `None` if the client takes no stream.
    notices: Option<mpsc::Sender<String>>,
}

impl Desk for Post {
    fn call(&self) -> BoxFuture<'_, Result<Call, ApiError>> {
        let access = self.access.clone().unwrap_or(Access::All);
        let call = Call::new(self.shared.api.calls(), access).of_agent();
        let call = match &self.closing {
            Some(closing) => call.ending_with(closing.begins()),
            None => call,
        };
        std::future::ready(Ok(call)).boxed()
    }

    fn as_actor(&self, _: Call) -> BoxFuture<'_, Result<Call, String>> {
        let reason = "it needs no keys, and had no key file of an actor when it started: start it again with --actor-key";
        std::future::ready(Err(reason.to_owned())).boxed()
    }
}

impl Post {
    /// Returns the answer to a text with its memory; `None` for notifications, and for a request that was cancelled.
    async fn answered(self, text: &[u8]) -> Option<String> {
        let access = self.access.as_ref().unwrap_or(&Access::All);
        let agent = Agent {
            desk: &self,
            changes: access
                .scope()
                .is_some_and(|scope| scope.allows(Scope::User)),
            remedy: "a key of the scope user may change something: `meshwork key create NAME --scope user` makes one",
            slots: None,
            under_way: &self.shared.under_way,
            session: &self.session,
            notices: self.notices.clone(),
        };
        answer(&agent, text).await
    }
}

/// Answers a message, or a batch of them.
async fn call(State(shared): State<Arc<Shared>>, request: Request) -> Result<Response, Problem> {
    let (head, body) = request.into_parts();
    let access = head.extensions.get::<Access>().cloned();
    if matches!(access, Some(Access::Nobody)) {
        let message = "agents need a key here: send authorization: Bearer mwk_…";
        let error = ApiError::new(Code::AuthenticationRequired, message);
        return Err(error
            .hint("`meshwork key create NAME --scope viewer` makes one")
            .into());
    }
    rest::check_content_type(&head.headers)?;
    let is_modern = revision(&head.headers)?;
    let given = session(&head.headers)?;
    let holder = holder(&head.extensions);
    let permit = head.extensions.get::<Arc<Permit>>().cloned();
    let received = shared.api.bodies().read(body, &holder).await;
    let received = received.map_err(|refusal| Problem::refused(&refusal))?;
    let slot = shared.api.slot(&holder)?;
    let memory = shared.api.memory(&holder)?;
    let begins = given.is_none() && !is_modern && is_initialize(received.bytes());
    let (notices, notified) = mpsc::channel(NOTICES);
    let post = Post {
        access,
        closing: head.extensions.get::<Closing>().cloned(),
        session: format!("{} {} ", name_of(&holder), given.unwrap_or_default()),
        notices: takes_stream(&head.headers).then_some(notices),
        shared: Arc::clone(&shared),
    };
    let run = async move {
        let busy = permit.as_ref().map(Permit::busy);
        let answered = post.answered(received.bytes()).await;
        drop((busy, slot, received));
        answered
    };
    let exchange = Exchange {
        run: run.boxed(),
        notified,
        memory,
    };
    let mut response = exchange.response(is_modern).await?;
    if begins && response.status() == StatusCode::OK {
        let name = HEXLOWER.encode(&rand::random::<[u8; 16]>());
        let headers = response.headers_mut();
        if let Ok(name) = HeaderValue::from_str(&name) {
            headers.insert(SESSION, name);
        }
        headers.insert(
            ACCESS_CONTROL_EXPOSE_HEADERS,
            HeaderValue::from_static(SESSION),
        );
    }
    Ok(response)
}

/// A request under way. It ends when its client goes away.
struct Exchange {
    run: BoxFuture<'static, Option<String>>,
    notified: mpsc::Receiver<String>,
    memory: Share,
}

impl Exchange {
    /// Returns JSON if the answer comes before the first notification and before the client may think that nobody is there; else
    /// a stream of events.
    async fn response(mut self, is_modern: bool) -> Result<Response, Problem> {
        let first = tokio::select! {
            biased;
            answered = &mut self.run => return self.whole(answered, is_modern),
            Some(notice) = self.notified.recv() => event(&notice),
            () = tokio::time::sleep(KEEP_ALIVE), if !self.notified.is_closed() => ": alive\n\n".to_owned(),
        };
        let events = futures_util::stream::unfold(Some((Some(first), self)), |state| async {
            let (first, mut exchange) = state?;
            let (text, goes_on) = match first {
                Some(text) => (text, true),
                None => exchange.next().await?,
            };
            let text = Ok::<_, Infallible>(Bytes::from(text));
            Some((text, goes_on.then_some((None, exchange))))
        });
        Ok((stream::headers(), Body::from_stream(events)).into_response())
    }

    fn whole(mut self, answered: Option<String>, is_modern: bool) -> Result<Response, Problem> {
        let Some(text) = answered else {
            return Ok((StatusCode::ACCEPTED, Body::empty()).into_response());
        };
        answers::grow(&mut self.memory, text.len())?;
        let status = match is_modern {
            true => status_of(&text),
            false => StatusCode::OK,
        };
        let answer = Answer::new(text, self.memory);
        Ok(json(status, answer.into_bytes()))
    }

    /// Returns the next part of the stream, and whether more follows; `None` without an answer, after a cancellation.
    async fn next(&mut self) -> Option<(String, bool)> {
        tokio::select! {
            biased;
            // A notification comes before the answer to its request.
            Some(notice) = self.notified.recv() => Some((event(&notice), true)),
            answered = &mut self.run => {
                let mut text = String::new();
                while let Ok(notice) = self.notified.try_recv() {
                    text.push_str(&event(&notice));
                }
                text.push_str(&event(&answered?));
                Some((text, false))
            }
            () = tokio::time::sleep(KEEP_ALIVE) => Some((": alive\n\n".to_owned(), true)),
        }
    }
}

fn event(message: &str) -> String {
    format!("event: message\ndata: {message}\n\n")
}

/// Status of an answer in the revision without a handshake.
fn status_of(answer: &str) -> StatusCode {
    let answer: Value = serde_json::from_str(answer).unwrap_or_default();
    match answer["error"]["code"].as_i64() {
        None | Some(-32603) => StatusCode::OK,
        Some(-32601) => StatusCode::NOT_FOUND,
        Some(_) => StatusCode::BAD_REQUEST,
    }
}

/// Checks the revision that a client names, and returns true for one without a handshake. Most clients name none at first.
fn revision(headers: &HeaderMap) -> Result<bool, ApiError> {
    let Some(revision) = headers.get(REVISION) else {
        return Ok(false);
    };
    let revision = revision.to_str().unwrap_or_default();
    if WITH_HANDSHAKE.contains(&revision) || revision == MODERN {
        return Ok(revision == MODERN);
    }
    let message = format!(
        "{REVISION}: the server speaks the revisions {MODERN}, {}",
        WITH_HANDSHAKE.join(", ")
    );
    Err(ApiError::new(Code::InvalidRequest, message))
}

/// Returns the name of the session of a client.
fn session(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let Some(name) = headers.get(SESSION) else {
        return Ok(None);
    };
    match name.to_str() {
        Ok(name) if name.len() <= MAX_SESSION => Ok(Some(name.to_owned())),
        _ => {
            let message = format!("{SESSION}: give at most {MAX_SESSION} ASCII characters");
            Err(ApiError::new(Code::InvalidRequest, message))
        }
    }
}

fn takes_stream(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(ACCEPT).iter();
    values.any(|value| {
        value
            .to_str()
            .is_ok_and(|it| it.contains("text/event-stream"))
    })
}

fn is_initialize(text: &[u8]) -> bool {
    serde_json::from_slice::<Value>(text).is_ok_and(|it| it["method"] == "initialize")
}

fn name_of(holder: &Holder) -> String {
    match holder {
        Holder::Caller(name) => name.clone(),
        Holder::Address(address) => address.to_string(),
    }
}
