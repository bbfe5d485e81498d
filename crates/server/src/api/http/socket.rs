//! JSON-RPC 2.0 over a WebSocket: the methods of the table, and `subscribe` and `unsubscribe`, whose notifications come
//! beside the responses.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade, close_code};
use axum::extract::{Path, State};
use axum::http::request::Parts;
use axum::response::Response;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, SplitSink, SplitStream};
use futures_util::{FutureExt, SinkExt, StreamExt};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;

use super::Shared;
use super::answers::{Answer, Unsent};
use super::life::{End, LAST_WORDS, Life};
use super::problem::Problem;
use super::rpc::Table;
use super::socket_caller::{Caller, Close};
use crate::api::access::Access;
use crate::api::call::Call;
use crate::api::error::{ApiError, Code};
use crate::api::live::{Notice, Subscription};
use crate::api::rights::CHECK_EVERY;
use crate::api::rpc::{Failure, Handler, answer, named, notification, refusal};
use crate::api::topic;
use crate::http::guard::{Holder, Share};
use crate::http::{CUT_OFF, Closing};

/// Hexadecimal digits of a public key in a path: of Ed25519, or of secp256k1.
const KEY_DIGITS: RangeInclusive<usize> = 64..=130;
/// Requests of a socket that are worked on at once. Beyond them no frames are read.
const CALLS: usize = 16;
/// Subscriptions of a socket.
const SUBSCRIPTIONS: usize = 100;
/// Texts between their makers and the socket.
const OUTGOING: usize = 2;
/// Pause between two pings.
const PING_EVERY: Duration = Duration::from_secs(30);
/// Time without any frame after which a socket is closed: a client answers pings.
const IDLE: Duration = Duration::from_secs(75);

/// Opens a socket: `GET /rpc`.
pub(super) async fn open(
    State(shared): State<Arc<Shared>>,
    upgrade: Upgrade,
    head: Parts,
) -> Result<Response, Problem> {
    if matches!(head.extensions.get(), Some(Access::Nobody)) && upgrade.is_ok() {
        let message = "a WebSocket needs a key: send authorization: Bearer mwk_…";
        return Err(ApiError::new(Code::AuthenticationRequired, message).into());
    }
    upgraded(shared, upgrade, &head).await
}

/// Opens a socket of Hero's first API: `GET /{public key}`. Its caller signs a nonce over the socket instead of having a
/// key.
pub(super) async fn open_for_key(
    State(shared): State<Arc<Shared>>,
    Path(key): Path<String>,
    upgrade: Upgrade,
    head: Parts,
) -> Result<Response, Problem> {
    let is_key = KEY_DIGITS.contains(&key.len()) && key.bytes().all(|it| it.is_ascii_hexdigit());
    if !is_key {
        return Err(super::nowhere().await);
    }
    upgraded(shared, upgrade, &head).await
}

type Upgrade = Result<WebSocketUpgrade, WebSocketUpgradeRejection>;

async fn upgraded(
    shared: Arc<Shared>,
    upgrade: Upgrade,
    head: &Parts,
) -> Result<Response, Problem> {
    let Ok(upgrade) = upgrade else {
        return Ok(super::only_post().await);
    };
    let caller = Caller::of(&head.extensions);
    let place = caller.place(&shared)?;
    let call = shared.call(caller.access.clone().map(axum::Extension));
    let life = Life::of(&head.extensions, &call).await;
    // The server waits for its last answers.
    let taken_over = life.closing().map(Closing::take_over);
    let most = shared.limits.max_body as usize;
    let upgrade = upgrade.max_message_size(most).max_frame_size(most);
    Ok(upgrade.on_upgrade(move |socket| async move {
        serve(shared, caller, place, socket, &life).await;
        drop(taken_over);
    }))
}

/// The state of a socket.
struct Session {
    shared: Arc<Shared>,
    caller: Caller,
    /// The end of the connection.
    closing: Option<Closing>,
    outgoing: mpsc::Sender<Answer>,
    unsent: Unsent,
    /// Subscriptions, with what ends them.
    open: Mutex<HashMap<String, CancellationToken>>,
    next: AtomicU64,
    /// Ends all subscriptions when the session is dropped.
    over: CancellationToken,
}

fn close_of(end: End) -> Close {
    let code = match end {
        End::Closing => close_code::AWAY,
        End::Revoked => close_code::POLICY,
    };
    (code, end.as_str())
}

/// Serves a socket until either side ends it.
async fn serve(
    shared: Arc<Shared>,
    caller: Caller,
    mut place: Share,
    socket: WebSocket,
    life: &Life,
) {
    let (outgoing, texts) = mpsc::channel(OUTGOING);
    let over = CancellationToken::new();
    let session = Session {
        shared,
        caller,
        closing: life.closing().cloned(),
        outgoing,
        unsent: Unsent::new(),
        open: Mutex::default(),
        next: AtomicU64::new(1),
        over: over.clone(),
    };
    let over = over.drop_guard();
    let (mut sink, stream) = socket.split();
    let close = {
        let mut writes = pin!(write(&mut sink, texts));
        let close = tokio::select! {
            close = read(&session, stream, life) => close,
            close = &mut writes => close,
            end = life.cut_off() => Some(close_of(end)),
            close = session.caller.logs_in(&mut place, &session.shared) => Some(close),
            () = session.login_ends() => Some(close_of(End::Revoked)),
            // The client takes its answers too slowly.
            () = session.is_late() => Some(close_of(End::Closing)),
        };
        drop((session, over));
        if close == Some(close_of(End::Closing)) {
            // Until the last answer is sent, after which nothing holds the other end of `texts`.
            let _ = timeout(LAST_WORDS, writes).await;
        }
        close
    };
    let Some((code, reason)) = close else {
        return;
    };
    let reason = Utf8Bytes::from_static(reason);
    let frame = Message::Close(Some(CloseFrame { code, reason }));
    // The client may be gone.
    let _ = timeout(LAST_WORDS, sink.send(frame)).await;
}

/// Sends texts and pings. Returns `None` when the client takes nothing.
async fn write(
    sink: &mut SplitSink<WebSocket, Message>,
    mut answers: mpsc::Receiver<Answer>,
) -> Option<Close> {
    let mut pings = interval(PING_EVERY);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let (message, _taken) = tokio::select! {
            answer = answers.recv() => {
                let bytes = answer?.into_bytes();
                // It was a text. Its memory counts until it is sent: the socket makes a copy.
                let text = Utf8Bytes::try_from(bytes.clone()).ok()?;
                (Message::Text(text), bytes)
            }
            _ = pings.tick() => (Message::Ping(Bytes::new()), Bytes::new()),
        };
        sink.send(message).await.ok()?;
    }
}

/// Reads frames and answers them. When the connection is to end, it reads no more, and answers those that it has read.
async fn read(session: &Session, mut stream: SplitStream<WebSocket>, life: &Life) -> Option<Close> {
    let mut calls = FuturesUnordered::new();
    let mut closes = pin!(life.closes());
    loop {
        let message = tokio::select! {
            Some(()) = calls.next() => continue,
            message = timeout(IDLE, stream.next()), if calls.len() < CALLS => message,
            () = &mut closes => {
                while calls.next().await.is_some() {}
                return Some(close_of(End::Closing));
            }
        };
        match message {
            Err(_) => return Some((close_code::AWAY, "no frame came for a long time")),
            Ok(None) => return None,
            Ok(Some(Err(error))) => return Some(broken(&error)),
            Ok(Some(Ok(Message::Text(text)))) => calls.push(session.call(text)),
            Ok(Some(Ok(Message::Binary(_)))) => {
                return Some((close_code::UNSUPPORTED, "send texts, not binary messages"));
            }
            Ok(Some(Ok(Message::Ping(_) | Message::Pong(_)))) => {}
            Ok(Some(Ok(Message::Close(_)))) => return None,
        }
    }
}

fn broken(error: &axum::Error) -> Close {
    let text = error.to_string().to_ascii_lowercase();
    match text.contains("too long") || text.contains("too big") {
        true => (
            close_code::SIZE,
            "the message is longer than this server takes (--max-body)",
        ),
        false => (close_code::PROTOCOL, "the frame is broken"),
    }
}

impl Session {
    /// Answers a text. Subscriptions begin after the response that names them.
    async fn call(&self, text: Utf8Bytes) {
        let (answer, begun) = match self.begin(text.len()) {
            Ok((places, holder, memory)) => {
                let call = SocketCall {
                    session: self,
                    begun: Mutex::default(),
                    holder,
                    memory: Mutex::new(memory),
                };
                let answer = answer(&call, text.as_bytes()).await;
                drop((places, text));
                let (memory, begun) = (call.memory.into_inner(), call.begun.into_inner());
                let memory = memory.unwrap_or_else(PoisonError::into_inner);
                let answer = answer.map(|text| Answer::new(text, memory).over(&self.unsent));
                (answer, begun.unwrap_or_else(PoisonError::into_inner))
            }
            Err(full) => (Some(Answer::short(refusal(full))), Vec::new()),
        };
        if let Some(answer) = answer
            && self.outgoing.send(answer).await.is_err()
        {
            return;
        }
        for begun in begun {
            tokio::spawn(forward(begun, self.outgoing.clone()));
        }
    }

    /// Waits until the actor who has signed a nonce loses rights.
    async fn login_ends(&self) {
        let rights = &self.shared.calls.rights;
        loop {
            match self.caller.login.login() {
                Some(held) if !rights.still_holds(&held).await => return,
                _ => tokio::time::sleep(CHECK_EVERY).await,
            }
        }
    }

    /// Returns when calls that are still under way are not waited for any more.
    async fn cuts_off(&self) {
        match &self.closing {
            Some(closing) => closing.cuts_off().await,
            None => std::future::pending().await,
        }
    }

    /// Returns when the server no longer waits for a client that takes its last answers.
    async fn is_late(&self) {
        self.cuts_off().await;
        tokio::time::sleep(LAST_WORDS).await;
    }

    /// Takes the places of a call with a text of this length, and memory for its answer.
    fn begin(&self, length: usize) -> Result<([Share; 2], Holder, Share), ApiError> {
        let holder = self.caller.holder();
        let slot = self.shared.slot(&holder)?;
        let body = self.shared.bodies.count(length, &holder);
        let body = body.map_err(|full| ApiError::new(Code::TooManyRequests, full.message))?;
        let memory = self.shared.answers.memory(&holder)?;
        Ok(([slot, body], holder, memory))
    }

    fn open(&self) -> std::sync::MutexGuard<'_, HashMap<String, CancellationToken>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A subscription that begins: its name, its end, itself, and the call that has made it.
type Begun = (String, CancellationToken, Subscription, Call);

/// One text of a socket.
struct SocketCall<'a> {
    session: &'a Session,
    begun: Mutex<Vec<Begun>>,
    holder: Holder,
    memory: Mutex<Share>,
}

impl Handler for SocketCall<'_> {
    fn run<'a>(
        &'a self,
        method: &'a str,
        params: Option<&'a RawValue>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, Failure>> {
        async move {
            match method {
                "subscribe" => Ok(self.subscribe(params).await?),
                "unsubscribe" => Ok(self.unsubscribe(params)?),
                _ => {
                    let table = Table {
                        shared: &self.session.shared,
                        access: self.session.caller.access.as_ref(),
                        session: &self.session.caller.login,
                        key: None,
                        closing: self.session.closing.as_ref(),
                        holder: &self.holder,
                        memory: &self.memory,
                        socket: Some(&self.session.unsent),
                    };
                    tokio::select! {
                        biased;
                        answer = table.run(method, params) => answer,
                        () = self.session.cuts_off() => {
                            Err(ApiError::new(Code::Timeout, CUT_OFF).into())
                        }
                    }
                }
            }
        }
        .boxed()
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SubscribeParams {
    topic: String,
    from: Option<String>,
    context: Option<u32>,
}

/// The name of a subscription.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    subscription: String,
}

fn parsed<P: serde::de::DeserializeOwned>(params: Option<&RawValue>) -> Result<P, ApiError> {
    let params = named(params)?;
    let text = serde_json::to_string(&params).unwrap_or_default();
    serde_json::from_str(&text).map_err(|error| ApiError::invalid(error.to_string()))
}

fn written(subscription: String) -> Result<Box<RawValue>, ApiError> {
    to_raw_value(&Named { subscription })
        .map_err(|error| ApiError::new(Code::Internal, error.to_string()))
}

impl SocketCall<'_> {
    async fn subscribe(&self, params: Option<&RawValue>) -> Result<Box<RawValue>, ApiError> {
        let params: SubscribeParams = parsed(params)?;
        let session = self.session;
        let from = params.from.as_deref().map(topic::position).transpose()?;
        if session.open().len() >= SUBSCRIPTIONS {
            let message = format!("a WebSocket has at most {SUBSCRIPTIONS} subscriptions");
            return Err(ApiError::new(Code::TooManyRequests, message));
        }
        let access = session.caller.access.clone().map(axum::Extension);
        let call = session.shared.call(access);
        let call = topic::enter(call, params.context, "subscribe").await?;
        let live = &session.shared.live;
        let subscription = topic::subscribe(live, &call, &params.topic, (from, &self.holder));
        let subscription = subscription.await?;
        let name = session.next.fetch_add(1, Ordering::Relaxed).to_string();
        let cancel = session.over.child_token();
        let mut open = session.open();
        // Those that have ended by themselves make room.
        open.retain(|_, cancel| !cancel.is_cancelled());
        open.insert(name.clone(), cancel.clone());
        drop(open);
        let begun = (name.clone(), cancel, subscription, call);
        self.begun
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(begun);
        written(name)
    }

    fn unsubscribe(&self, params: Option<&RawValue>) -> Result<Box<RawValue>, ApiError> {
        let Named { subscription } = parsed(params)?;
        let cancel = self.session.open().remove(&subscription);
        let Some(cancel) = cancel.filter(|cancel| !cancel.is_cancelled()) else {
            let message = format!("there is no subscription {subscription:?}");
            return Err(ApiError::new(Code::NotFound, message));
        };
        cancel.cancel();
        written(subscription)
    }
}

/// Parameters of a notification.
#[derive(Debug, Serialize)]
struct Noticed<'a> {
    subscription: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    item: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<String>,
}

/// Moves notices of a subscription to the socket, until either side ends.
async fn forward((name, cancel, mut subscription, call): Begun, outgoing: mpsc::Sender<Answer>) {
    let behind = subscription.behind();
    let mut sent_to = subscription.last();
    let lost = call.lost();
    tokio::pin!(lost);
    loop {
        let notice = tokio::select! {
            biased;
            () = cancel.cancelled() => return,
            () = &mut lost => None,
            notice = subscription.next() => Some(notice),
        };
        let is_last = matches!(notice, None | Some(Notice::End | Notice::Behind));
        let mut noticed = Noticed {
            subscription: &name,
            item: None,
            reason: None,
            last: None,
        };
        let text = match &notice {
            None => {
                noticed.reason = Some(End::Revoked.as_str());
                notification("closed", noticed)
            }
            Some(Notice::Item(item)) => {
                noticed.item = Some(&item.json);
                notification(subscription.kind(), noticed)
            }
            Some(Notice::Gap) => notification("gap", noticed),
            Some(Notice::End) => notification("end", noticed),
            Some(Notice::Behind) => {
                (noticed.reason, noticed.last) = (Some("behind"), Some(sent_to.to_string()));
                notification("closed", noticed)
            }
        };
        tokio::select! {
            biased;
            () = cancel.cancelled() => return,
            sent = outgoing.send(Answer::short(text)) => if sent.is_err() { return },
            // The text was not sent; the next notice says which one was the last.
            () = behind.cancelled(), if !is_last => continue,
        }
        sent_to = subscription.last();
        if is_last {
            cancel.cancel();
            return;
        }
    }
}
