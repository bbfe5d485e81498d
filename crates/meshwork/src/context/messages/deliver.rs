//! The target's side of a delivery: checks signature and permission, and stores each message once, however often it is
//! delivered.

use meshwork_broker::context::{Commit, Committed};
use meshwork_model::access::{Object, Operation};
use meshwork_model::context::{
    LogLevel, Message, MessageEvent, MessageStatus, MessageType, Reason, Unsigned, field,
};
use meshwork_model::context::{NodeId, limits};
use meshwork_model::envelope::{Keyring, Kind, Receiver, Refusal, SKEW, open};
use meshwork_model::keys::context::{Counter, MessageKey};

use crate::context::audit::Change;
use crate::context::messages::message::{after, logs_with, overdue, overdue_text};
use crate::context::{ContextError, ContextHandle, Delivery, Node, Origin, Parcel, Site, TRIES};

/// Retention of a message's origin, in ms: the validity of its envelope (with `SKEW` for the sender's clock and after
/// the expiry), and 1 h.
const ORIGIN_FOR_MS: u64 = (limits::MAX_MESSAGE_TIMEOUT as u64 + 2 * SKEW + 3_600) * 1_000;

/// Decision about a received message.
enum Verdict {
    /// Store the message, which is the result of this message, if any.
    Take(Option<Request>),
    /// Refuse the message, with the reason.
    Refuse(Reason),
}

/// Proof of the origin of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Proof {
    /// The coordinator read the message in the context of its origin.
    Local,
    /// The envelope was verified, and the record was built from it.
    Envelope,
    /// The node of the origin signed the frame with the result.
    Frame,
}

/// A message of this context that waits for a result.
struct Request {
    key: MessageKey,
    nonce: String,
}

/// A signed message of this node, as its record has it.
pub(crate) struct Sealed<'a> {
    pub(crate) envelope: &'a str,
    pub(crate) message: &'a Message,
    pub(crate) re: Option<MessageKey>,
    /// Its origin, if a transport brought it.
    pub(crate) origin: Option<&'a Origin>,
}

impl Node {
    /// Receives a message for one of the node's contexts.
    pub(crate) async fn receive(
        &self,
        me: NodeId,
        parcel: &Parcel,
    ) -> Result<Delivery, ContextError> {
        self.receive_proven(me, parcel, Proof::Local).await
    }

    /// Receives a message whose origin is proven.
    pub(crate) async fn receive_proven(
        &self,
        me: NodeId,
        parcel: &Parcel,
        proof: Proof,
    ) -> Result<Delivery, ContextError> {
        let target = match self.context(parcel.to.context).await {
            Ok(target) => target,
            Err(error) if error.is_permanent() => {
                let reason = Reason::new(Reason::NO_CONTEXT, error.to_string());
                return Ok(Delivery::Refused(reason));
            }
            Err(error) => return Err(error),
        };
        let taken = match target.verdict(me, parcel, proof).await {
            Ok(Verdict::Take(request)) => target.store_once(parcel, request.as_ref()).await,
            Ok(Verdict::Refuse(reason)) => Ok(Delivery::Refused(reason)),
            Err(error) => Err(error),
        };
        let reason = match taken {
            Ok(Delivery::Refused(reason)) => reason,
            // A key of the target is damaged. Other messages of the sender must not wait for its repair.
            Err(error) if error.is_permanent() => {
                tracing::warn!(context = %target.id(), %error, "message refused: damaged key");
                Reason::new(Reason::DAMAGED, error.to_string())
            }
            taken => return taken,
        };
        let why = format!("message {}: {}", parcel.origin, reason.text);
        target.count_refused(&author(parcel), &why).await?;
        Ok(Delivery::Refused(reason))
    }
}

impl Node {
    /// Returns the reason to refuse the envelope of an actor of this node, which goes to `to`.
    pub(crate) async fn broken_seal(
        &self,
        to: Site,
        sealed: &Sealed<'_>,
    ) -> Result<Option<Reason>, ContextError> {
        let actor = match self.actor(sealed.message.caller_id).await {
            Ok(actor) => actor,
            Err(error @ (ContextError::NoActor(_) | ContextError::Record(_))) => {
                return Ok(Some(Reason::new("unknown_key", error.to_string())));
            }
            Err(error) => return Err(error),
        };
        // The trusted key of this actor, never a key that the message names.
        let keys = Keyring::of([&actor]);
        let receiver = Receiver {
            node: to.node,
            context: to.context,
            types: &[Kind::of(sealed.message).payload_type()],
        };
        let now = u64::from(self.now().await?);
        let opened = open(sealed.envelope.as_bytes(), &receiver, &keys, now);
        Ok(match opened {
            Err(refusal) => Some(refusal.into()),
            Ok(opened) => match opened.body.difference(sealed.message, sealed.re) {
                Some(field) => {
                    let text = format!("tampered: `{field}` is not what was signed");
                    Some(Reason::new(Reason::TAMPERED, text))
                }
                None if sealed
                    .origin
                    .is_some_and(|it| *it != Origin::signed(&opened.body)) =>
                {
                    Some(Refusal::Replayed.into())
                }
                None => None,
            },
        })
    }
}

/// Returns the author of a message for the audit trail. Without a signature, the caller's number proves nothing:
/// whoever can write in the sending context chose it.
fn author(parcel: &Parcel) -> String {
    let caller = parcel.message.caller_id;
    match parcel.message.envelope {
        Some(_) => format!("actor {caller}"),
        None if parcel.origin.node != parcel.to.node => format!("node {}", parcel.origin.node),
        None => format!(
            "actor {caller} (unsigned, context {})",
            parcel.origin.context
        ),
    }
}

impl ContextHandle {
    /// Checks the signature of a message, and the rights of its sender here.
    async fn verdict(
        &self,
        me: NodeId,
        parcel: &Parcel,
        proof: Proof,
    ) -> Result<Verdict, ContextError> {
        let message = &parcel.message;
        // A requested result needs no role here. Any other result needs the right of an admin, like a message.
        let request = match message.is_result() {
            true => self.request_of(me, parcel).await?,
            false => None,
        };
        // Inside the node, the coordinator read the result from the outbox of the context that ran the jobs. Whoever
        // can write there can also write the results of these jobs. Between nodes the signature of the frame proves the
        // node of the result.
        match proof {
            Proof::Local if request.is_some() && message.envelope.is_none() => {
                return Ok(Verdict::Take(request));
            }
            Proof::Local => {
                let unsealed = self.unsealed(me, message, parcel.re, Some(&parcel.origin));
                if let Some(reason) = unsealed.await? {
                    return Ok(Verdict::Refuse(reason));
                }
            }
            Proof::Frame if request.is_none() => {
                let text = "no message here waits for this result";
                return Ok(Verdict::Refuse(Reason::new(Reason::NO_REQUEST, text)));
            }
            Proof::Frame | Proof::Envelope => {}
        }
        if request.is_some() {
            return Ok(Verdict::Take(request));
        }
        let denial = self.denial(message.caller_id, object_of(message), Operation::Create);
        Ok(match denial.await? {
            Some(reason) => Verdict::Refuse(reason),
            None => Verdict::Take(None),
        })
    }

    /// Returns the outcome of a message whose `timeout` is over: refused, unless it was stored before. The sender's
    /// coordinator ends such messages too, but knows a plain client's message only after its delivery.
    async fn late(&self, parcel: &Parcel) -> Result<Option<Delivery>, ContextError> {
        let now = self.node().now().await?;
        let Some(overdue) = overdue(&parcel.message, now, false) else {
            return Ok(None);
        };
        let origin = self.keys().origin(&parcel.origin.to_string());
        let is_new = Commit::default().absent(&origin);
        Ok(Some(match self.commit(&is_new).await? {
            Committed::Done => {
                let text = overdue_text(&parcel.message, overdue);
                Delivery::Refused(Reason::new(Reason::LATE, text))
            }
            Committed::Unmet(_) => Delivery::Duplicate,
        }))
    }

    /// Returns the message of this context whose result this is: a job message that was sent to the context and node
    /// from which the result comes.
    async fn request_of(
        &self,
        me: NodeId,
        parcel: &Parcel,
    ) -> Result<Option<Request>, ContextError> {
        let Some(key) = parcel.re else {
            return Ok(None);
        };
        let original = match self.message_of(key).await {
            Err(error) if error.is_permanent() => None,
            original => original?,
        };
        let Some(original) = original else {
            return Ok(None);
        };
        // A received message is answered here, not by others.
        let sent = original.origin.is_none() && original.re.is_none();
        let job = original.message.message_type == MessageType::Job;
        if !sent || !job || original.target(me) != parcel.origin.site() {
            return Ok(None);
        }
        Ok(original.nonce.map(|nonce| Request { key, nonce }))
    }

    /// Returns the reason to refuse a message without an envelope that was sent from `from`.
    async fn unsigned(
        &self,
        me: NodeId,
        message: &Message,
        from: Site,
    ) -> Result<Option<Reason>, ContextError> {
        let refused = |why: &str| {
            let text = format!("it has no signed envelope, and {why}");
            Ok(Some(Reason::new(Reason::UNSIGNED, text)))
        };
        match self.record().await?.unsigned {
            Unsigned::Refuse => refused("the context refuses such messages (unsigned: refuse)"),
            _ if from == self.site(me) => Ok(None),
            Unsigned::Own => refused(
                "the context accepts such messages only from itself (unsigned: own); sign the message",
            ),
            Unsigned::Accept if from.node != me => refused("comes from another node"),
            // Otherwise everybody who writes in any context could act here as any actor.
            Unsigned::Accept => {
                let sender = self.node().context(from.context).await?;
                let object = object_of(message);
                sender
                    .denial(message.caller_id, object, Operation::Create)
                    .await
            }
        }
    }

    /// Returns the reason to refuse the envelope of a message, or its lack. A message from a transport must have the
    /// origin that its envelope was signed for. Each origin is stored once, so a second message with the same envelope
    /// does not count.
    pub(crate) async fn unsealed(
        &self,
        me: NodeId,
        message: &Message,
        re: Option<MessageKey>,
        origin: Option<&Origin>,
    ) -> Result<Option<Reason>, ContextError> {
        let Some(envelope) = &message.envelope else {
            let from = origin.map_or(self.site(me), Origin::site);
            return self.unsigned(me, message, from).await;
        };
        let sealed = Sealed {
            envelope,
            message,
            re,
            origin,
        };
        self.node().broken_seal(self.site(me), &sealed).await
    }

    /// Stores a message under its key, or under the next free number. A message has only one result.
    async fn store_once(
        &self,
        parcel: &Parcel,
        request: Option<&Request>,
    ) -> Result<Delivery, ContextError> {
        if let Some(late) = self.late(parcel).await? {
            return Ok(late);
        }
        let keys = self.keys();
        let origin_key = keys.origin(&parcel.origin.to_string());
        let mut key = parcel.message.key();
        for _ in 0..TRIES {
            let now_ms = self.store().now().await?;
            let now = u32::try_from(now_ms / 1000).unwrap_or(u32::MAX);
            let element = keys.message(key);
            let commit = Commit::default().absent(&origin_key).absent(&element);
            let commit = match request {
                Some(request) => {
                    self.with_result(commit, request, parcel, &element, now)
                        .await?
                }
                None => commit,
            };
            let received = now_ms.to_string();
            let commit = commit.set(&element, [(field::RECEIVED_MS, received.as_str())]);
            let commit = self.with_copy(commit, parcel, key, now);
            let commit = commit.keep(&origin_key, &element, ORIGIN_FOR_MS).mark(
                &keys.index(Counter::Message),
                now.into(),
                element.as_bytes(),
            );
            match self.commit(&commit).await? {
                Committed::Done => return Ok(Delivery::Stored),
                Committed::Unmet(1) => return Ok(Delivery::Duplicate),
                Committed::Unmet(2) => {
                    key = self.next_message(key.caller).await?;
                }
                Committed::Unmet(3) => {
                    let text = "the message has its result already";
                    return Ok(Delivery::Refused(Reason::new(Reason::NO_REQUEST, text)));
                }
                // The message that this one answers has changed: read it again.
                Committed::Unmet(_) => {}
            }
        }
        Err(ContextError::Busy(key.to_string()))
    }

    /// Adds to a commit the copy of a message, its entry in an inbox, and an entry of the audit trail.
    fn with_copy(&self, commit: Commit, parcel: &Parcel, key: MessageKey, now: u32) -> Commit {
        let (keys, message) = (self.keys(), &parcel.message);
        let element = keys.message(key);
        let list = match message.message_type == MessageType::Job && !message.is_result() {
            true => keys.msg_in_jobs(),
            false => keys.msg_in(),
        };
        let copy = Message {
            id: key.id,
            context_id: self.id(),
            updated_at: now,
            ..message.clone()
        };
        let origin = parcel.origin.to_string();
        let change = Change {
            who: &author(parcel),
            what: "receive",
            object: &element,
            before: &origin,
            after: message.message_type.as_str(),
        };
        let commit = commit
            .set(&element, copy.to_fields())
            .set(
                &element,
                [
                    (field::ORIGIN, origin.as_str()),
                    (field::NONCE, &parcel.origin.nonce),
                ],
            )
            .push(&list, element.as_bytes());
        change.noted(self.kept(commit, &element, now), &keys.audit())
    }

    /// Adds to a commit that a message has its result and has ended. An ended message does not change, so the first
    /// result counts.
    async fn with_result(
        &self,
        commit: Commit,
        request: &Request,
        parcel: &Parcel,
        element: &str,
        now: u32,
    ) -> Result<Commit, ContextError> {
        let answer = self.keys().answer(request.key, &request.nonce);
        let commit = commit
            .absent(&answer)
            .keep(&answer, element, ORIGIN_FOR_MS)
            .set(element, [(field::RE, request.key.numbers().as_str())]);
        let event = match parcel.message.status {
            MessageStatus::Error => MessageEvent::Fail,
            _ => MessageEvent::Process,
        };
        let original = self.message_of(request.key).await?;
        let open = original.and_then(|view| Some((after(view.message.status, event)?, view)));
        let Some((status, original)) = open else {
            return Ok(commit);
        };
        let logs = logs_with(&original.message, now, LogLevel::Info, "result received");
        let record = self.keys().message(request.key);
        let fields = [
            (field::STATUS, status.as_str()),
            (field::UPDATED_AT, &now.to_string()),
            (field::LOGS, &logs),
            (field::RESULT_MESSAGE, element),
        ];
        let commit = self.kept(commit, &record, now);
        Ok(commit
            .is(&record, field::NONCE, request.nonce.as_bytes())
            .is(&record, field::STATUS, original.written_status.as_bytes())
            .set(&record, fields)
            .unmark(&self.keys().sent(), record.as_bytes()))
    }
}

/// Returns the object that the sender of a message creates.
fn object_of(message: &Message) -> Object {
    match message.message_type {
        _ if message.is_result() => Object::OtherResult,
        MessageType::Chat | MessageType::Mail => Object::Chat,
        MessageType::Job | MessageType::Result => Object::JobMessage,
    }
}
