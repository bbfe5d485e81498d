//! The target's side of a delivery: signature and permission are checked, and the message is stored once, however often
//! it comes.

use meshwork_broker::context::{Commit, Committed};
use meshwork_model::access::{Object, Operation};
use meshwork_model::context::{
    LogLevel, Message, MessageEvent, MessageStatus, MessageType, Unsigned, field,
};
use meshwork_model::context::{NodeId, limits};
use meshwork_model::envelope::{Keyring, Kind, Receiver, Refusal, SKEW, open};
use meshwork_model::keys::context::{Counter, MessageKey};

use super::audit::Change;
use super::message::{MessageView, after, logs_with};
use super::{ContextError, ContextHandle, Delivery, Node, Origin, Parcel, TRIES};

/// Retention of a message's origin, in ms: the validity of its envelope (with `SKEW` for the sender's clock and after
/// the expiry), and 1 h.
const ORIGIN_FOR_MS: u64 = (limits::MAX_MESSAGE_TIMEOUT as u64 + 2 * SKEW + 3_600) * 1_000;

impl Node {
    /// Takes a message for one of the node's contexts.
    pub(super) async fn receive(
        &self,
        me: NodeId,
        parcel: &Parcel,
    ) -> Result<Delivery, ContextError> {
        let target = match self.context(parcel.to).await {
            Ok(target) => target,
            Err(error) if error.is_permanent() => {
                let reason = error.to_string();
                return Ok(Delivery::Refused { reason });
            }
            Err(error) => return Err(error),
        };
        let taken = match target.refusal(me, parcel).await {
            Ok(None) => target.store_once(parcel).await,
            Ok(Some(reason)) => Ok(Delivery::Refused { reason }),
            Err(error) => Err(error),
        };
        let reason = match taken {
            Ok(Delivery::Refused { reason }) => reason,
            // A key of the target is damaged. Other messages of the sender must not wait for its repair.
            Err(error) if error.is_permanent() => {
                tracing::warn!(context = %target.id(), %error, "message refused: damaged key");
                error.to_string()
            }
            taken => return taken,
        };
        let change = Change {
            who: &format!("actor {}", parcel.message.caller_id),
            what: "refuse message",
            object: &parcel.origin.to_string(),
            after: &reason,
            ..Change::default()
        };
        target.note(change).await?;
        Ok(Delivery::Refused { reason })
    }
}

impl ContextHandle {
    /// Why a message is not taken: its signature, or what its sender may do here.
    async fn refusal(&self, me: NodeId, parcel: &Parcel) -> Result<Option<String>, ContextError> {
        let message = &parcel.message;
        // Requested results are expected; other results are messages of an admin.
        if message.is_result() && self.expects(parcel).await? {
            return Ok(None);
        }
        if let Some(reason) = self.unsealed(me, message, Some(&parcel.origin)).await? {
            return Ok(Some(reason));
        }
        let object = match message.message_type {
            _ if message.is_result() => Object::OtherResult,
            MessageType::Chat | MessageType::Mail => Object::Chat,
            MessageType::Job | MessageType::Result => Object::JobMessage,
        };
        match self
            .allow(message.caller_id, object, Operation::Create)
            .await
        {
            Ok(_) => Ok(None),
            Err(ContextError::Denied(denied)) => Ok(Some(denied.to_string())),
            Err(error) => Err(error),
        }
    }

    /// True if a message of this context waits for this result.
    async fn expects(&self, parcel: &Parcel) -> Result<bool, ContextError> {
        let Some(re) = parcel.re else {
            return Ok(false);
        };
        let original = self.message_of(re).await?;
        Ok(original.is_some_and(|original| {
            original.message.message_type == MessageType::Job
                && original.message.target_context.unwrap_or(self.id()) == parcel.origin.context
        }))
    }

    /// Why the envelope of a message is not taken, or its lack. One that came over a transport has an origin: it has to
    /// be the signed one, since each origin is stored once. Otherwise an envelope in a second message would count again.
    pub(super) async fn unsealed(
        &self,
        me: NodeId,
        message: &Message,
        origin: Option<&Origin>,
    ) -> Result<Option<String>, ContextError> {
        let Some(envelope) = &message.envelope else {
            let reason =
                "it has no signed envelope, and the context takes none without (unsigned: refuse)";
            let refused = self.record().await?.unsigned == Unsigned::Refuse;
            return Ok(refused.then(|| reason.to_owned()));
        };
        let actor = match self.node().actor(message.caller_id).await {
            Ok(actor) => actor,
            Err(error @ (ContextError::NoActor(_) | ContextError::Record(_))) => {
                return Ok(Some(error.to_string()));
            }
            Err(error) => return Err(error),
        };
        // Only by the key that is trusted for this actor, never by one that the message names.
        let keys = Keyring::of([&actor]);
        let receiver = Receiver {
            node: me,
            context: self.id(),
            types: &[Kind::of(message).payload_type()],
        };
        let now = u64::from(self.node().now().await?);
        let refused = |refusal: Refusal| Some(format!("{}: {refusal}", refusal.code()));
        Ok(match open(envelope.as_bytes(), &receiver, &keys, now) {
            Err(refusal) => refused(refusal),
            Ok(opened) => match opened.body.difference(message) {
                Some(field) => Some(format!("tampered: `{field}` is not what was signed")),
                None if origin.is_some_and(|it| *it != Origin::signed(&opened.body)) => {
                    refused(Refusal::Replayed)
                }
                None => None,
            },
        })
    }

    /// Stores a message under its key, or under the next number where that is taken.
    async fn store_once(&self, parcel: &Parcel) -> Result<Delivery, ContextError> {
        let (keys, message) = (self.keys(), &parcel.message);
        let origin_key = keys.origin(&parcel.origin.to_string());
        let mut key = message.key();
        for _ in 0..TRIES {
            let now = self.node().now().await?;
            let element = keys.message(key);
            let jobs = message.message_type == MessageType::Job && !message.is_result();
            let list = if jobs {
                keys.msg_in_jobs()
            } else {
                keys.msg_in()
            };
            let copy = Message {
                id: key.id,
                context_id: self.id(),
                updated_at: now,
                ..message.clone()
            };
            let origin = parcel.origin.to_string();
            let change = Change {
                who: &format!("actor {}", message.caller_id),
                what: "receive",
                object: &element,
                before: &origin,
                after: message.message_type.as_str(),
            };
            let commit = Commit::default()
                .absent(&origin_key)
                .absent(&element)
                .set(&element, copy.to_fields())
                .set(
                    &element,
                    [
                        (field::ORIGIN, origin.as_str()),
                        (field::NONCE, &parcel.origin.nonce),
                    ],
                )
                .push(&list, element.as_bytes())
                .keep(&origin_key, &element, ORIGIN_FOR_MS);
            let commit = match parcel.re {
                Some(re) => self.with_result(commit, re, message, &element, now).await?,
                None => commit,
            };
            match self.commit(&change.noted(commit, &keys.audit())).await? {
                Committed::Done => return Ok(Delivery::Stored),
                Committed::Unmet(1) => return Ok(Delivery::Duplicate),
                Committed::Unmet(2) => {
                    let (counter, prefix) = (
                        keys.next_id(Counter::Message),
                        keys.message_prefix(message.caller_id),
                    );
                    let drawn = self
                        .store()
                        .draw(self.database(), &counter, &prefix)
                        .await?;
                    let id = drawn.ok_or(ContextError::NoNumber("message"))?;
                    key = MessageKey { id, ..key };
                }
                // The message that it answers has changed meanwhile.
                Committed::Unmet(_) => {}
            }
        }
        Err(ContextError::Busy(key.to_string()))
    }

    /// Adds to a commit that the message here, whose result has come, is over.
    async fn with_result(
        &self,
        commit: Commit,
        re: MessageKey,
        result: &Message,
        element: &str,
        now: u32,
    ) -> Result<Commit, ContextError> {
        let Some(original) = self.message_of(re).await? else {
            return Ok(commit);
        };
        let event = match result.status {
            MessageStatus::Error => MessageEvent::Fail,
            _ => MessageEvent::Process,
        };
        let record = self.keys().message(re);
        let commit = commit
            .is(&record, field::STATUS, original.written_status.as_bytes())
            .set(&record, [(field::RESULT_MESSAGE, element)])
            .set(element, [(field::RE, re.numbers().as_str())]);
        let Some(status) = after(original.message.status, event) else {
            return Ok(commit);
        };
        Ok(self.ended(commit, &original, status, now))
    }

    /// Adds to a commit that a message of this context is over.
    fn ended(&self, commit: Commit, view: &MessageView, status: MessageStatus, now: u32) -> Commit {
        let record = self.keys().message(view.message.key());
        let logs = logs_with(&view.message, now, LogLevel::Info, "result received");
        let fields = [
            (field::STATUS, status.as_str()),
            (field::UPDATED_AT, &now.to_string()),
            (field::LOGS, &logs),
        ];
        commit
            .set(&record, fields)
            .unmark(&self.keys().sent(), record.as_bytes())
    }
}
