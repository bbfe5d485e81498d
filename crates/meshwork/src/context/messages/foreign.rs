//! Messages of other nodes: opened by the key in their envelope, stored once, and answered from their record.

use meshwork_broker::context::{Commit, Database};
use meshwork_model::actor_key::PublicKey;
use meshwork_model::context::{MessageStatus, NodeId, Reason};
use meshwork_model::envelope::{Keyring, Nonce, PayloadType, Receiver, Refusal, claim, open};
use meshwork_model::keys::context::{ContextId, MessageKey};
use meshwork_model::mesh::{
    Answer, Item, PeerState, Received, SentFrom, answer, read_result, write_result,
};

use crate::context::audit::Change;
use crate::context::messages::deliver::Proof;
use crate::context::messages::message::MessageView;
use crate::context::{ContextError, ContextHandle, Delivery, Node, Notice, Origin, Parcel, Site};

/// Types of envelopes that are accepted from other nodes.
const ACCEPTED: [PayloadType; 2] = [PayloadType::Job, PayloadType::Message];

/// Value of the key of an origin whose message was cancelled before it arrived.
pub(crate) const CANCELLED_BEFORE: &str = "cancelled";
/// Text of the reason of a cancelled message, and the error of its jobs that had not begun.
pub(crate) const CANCELLED_TEXT: &str = "the message was cancelled";

/// Returns the reason of a cancelled message.
pub(crate) fn cancelled() -> Reason {
    Reason::new(Reason::CANCELLED, CANCELLED_TEXT)
}

impl Node {
    /// Returns the message and the context of an envelope that the node `from` sends, as it claims.
    ///
    /// # Errors
    /// The envelope is not readable or is that of another node: there is nobody to answer.
    pub(crate) fn claimed(from: NodeId, envelope: &[u8]) -> Result<(SentFrom, ContextId), Refusal> {
        let claim = claim(envelope)?;
        if claim.src.node != from {
            return Err(Refusal::WrongActor);
        }
        let of = SentFrom {
            context: claim.src.context,
            message: claim.id,
            nonce: claim.nonce,
        };
        Ok((of, claim.context))
    }

    /// Receives an envelope from the node `from`. `of` is the message that it claims.
    ///
    /// # Errors
    /// A call to the server fails.
    pub(crate) async fn receive_envelope(
        &self,
        me: NodeId,
        of: &SentFrom,
        from: NodeId,
        envelope: &[u8],
    ) -> Result<Delivery, ContextError> {
        let (delivery, is_noted) = match self.opened(me, envelope).await? {
            Err(reason) => (Delivery::Refused(reason), false),
            Ok(parcel) => {
                let taken = self.receive_proven(me, &parcel, Proof::Envelope).await?;
                // A context that exists has a trail of its own.
                let is_noted = !taken.is_refused_as(Reason::NO_CONTEXT);
                (taken, is_noted)
            }
        };
        if let (Delivery::Refused(reason), false) = (&delivery, is_noted) {
            let origin = Origin::sent_from(from, of).to_string();
            let who = format!("node {from}");
            let why = format!("message {origin}: {}", reason.text);
            self.count_refused(&who, &why).await?;
        }
        Ok(delivery)
    }

    /// Adds a refusal to the audit trail of this node.
    pub(crate) async fn note_refused(
        &self,
        who: &str,
        what: &str,
        object: &str,
        why: &str,
    ) -> Result<(), ContextError> {
        let change = Change {
            who,
            what,
            object,
            after: why,
            ..Change::default()
        };
        let commit = change.noted(Commit::default(), &self.keys().audit());
        let _ = self.store().commit(Database::Node, &commit).await?;
        Ok(())
    }

    /// Verifies an envelope with the key that it names, if an actor of this node has the key. Returns the message, with the
    /// number of the actor here.
    async fn opened(
        &self,
        me: NodeId,
        envelope: &[u8],
    ) -> Result<Result<Parcel, Reason>, ContextError> {
        // A hint for the lookup alone. The record is built from the verified body.
        let claim = claim(envelope)?;
        let unknown = Refusal::UnknownKey {
            key_id: claim.src.actor.to_string(),
        };
        let Ok(key) = PublicKey::from_bytes(&claim.src.actor.0) else {
            return Ok(Err(unknown.into()));
        };
        let actor = match self.trusted(&key).await {
            Ok(actor) => actor,
            Err(ContextError::UnknownKey { .. } | ContextError::Record(_)) => {
                return Ok(Err(unknown.into()));
            }
            Err(error @ ContextError::RevokedKey(_)) => {
                return Ok(Err(Reason::new("revoked_key", error.to_string())));
            }
            Err(error) => return Err(error),
        };
        let receiver = Receiver {
            node: me,
            context: claim.context,
            types: &ACCEPTED,
        };
        let now = u64::from(self.now().await?);
        let opened = match open(envelope, &receiver, &Keyring::of([&actor]), now) {
            Ok(opened) => opened,
            Err(refusal) => return Ok(Err(refusal.into())),
        };
        let (body, text) = (opened.body, String::from_utf8_lossy(envelope));
        let message = match body.record(opened.actor, &text) {
            Ok(message) => message,
            Err(refusal) => return Ok(Err(refusal.into())),
        };
        Ok(Ok(Parcel {
            origin: Origin::signed(&body),
            to: Site {
                node: me,
                context: body.dst.context,
            },
            message,
            re: None,
        }))
    }

    /// Receives a result of a message of this node from the node `from`, which signed the frame.
    pub(crate) async fn receive_result(
        &self,
        me: NodeId,
        from: NodeId,
        (re, result): (&SentFrom, &SentFrom),
        json: &[u8],
    ) -> Result<Delivery, ContextError> {
        let unwanted = || {
            let text = "no message here waits for this result";
            Delivery::Refused(Reason::new(Reason::NO_REQUEST, text))
        };
        let context = match self.context(re.context).await {
            Err(error) if error.is_permanent() => return Ok(unwanted()),
            context => context?,
        };
        let original = match context.message_of(re.message).await {
            Err(error) if error.is_permanent() => None,
            original => original?,
        };
        let nonce = re.nonce.to_string();
        // A later message may have the number of a deleted one.
        if original.and_then(|view| view.nonce).as_deref() != Some(nonce.as_str()) {
            return Ok(unwanted());
        }
        let key = MessageKey {
            caller: re.message.caller,
            id: result.message.id,
        };
        let read = read_result(json, re.context, key, self.now().await?);
        let message = match read {
            Ok(message) => message,
            Err(error) => {
                let reason = Reason::new(Reason::INVALID, error.to_string());
                return Ok(Delivery::Refused(reason));
            }
        };
        let parcel = Parcel {
            origin: Origin::sent_from(from, result),
            to: Site {
                node: me,
                context: re.context,
            },
            message,
            re: Some(re.message),
        };
        self.receive_proven(me, &parcel, Proof::Frame).await
    }

    /// Returns the answer to the sender of a message that went from the node `from` to the context `at`, as its record
    /// says.
    pub(crate) async fn answer_of(
        &self,
        from: NodeId,
        of: SentFrom,
        at: ContextId,
    ) -> Result<Item, ContextError> {
        let state = |state, reason| Item::State {
            of,
            at,
            state,
            reason,
        };
        let context = match self.context(at).await {
            Err(error) if error.is_permanent() => {
                let reason = Reason::new(Reason::NO_CONTEXT, error.to_string());
                return Ok(state(PeerState::Refused, Some(reason)));
            }
            context => context?,
        };
        let view = match context.received(&Origin::sent_from(from, &of)).await {
            Err(error) if error.is_permanent() => {
                let reason = Reason::new(Reason::DAMAGED, error.to_string());
                return Ok(state(PeerState::Failed, Some(reason)));
            }
            view => view?,
        };
        let answered = match &view {
            Found::Never => answer(None),
            Found::Cancelled => return Ok(state(PeerState::Failed, Some(cancelled()))),
            Found::Deleted => {
                let reason = Reason::new(Reason::DELETED, "the message was deleted there");
                return Ok(state(PeerState::Failed, Some(reason)));
            }
            Found::View(view) => answer(Some(Received {
                status: view.message.status,
                message_type: view.message.message_type,
                has_result: view.result.is_some(),
                is_refused: is_refused(view),
            })),
        };
        match (answered, view) {
            (Answer::Result, Found::View(view)) => context.result_item(of, at, &view).await,
            (Answer::State(answered), Found::View(view)) => Ok(state(answered, failure(&view))),
            (Answer::State(answered), _) => Ok(state(answered, None)),
            (Answer::Result, _) => Ok(state(PeerState::Unknown, None)),
        }
    }
}

/// Returns the notice to the sender of a message that the target has in this state; `None` for a state without one.
pub(crate) fn notice_of(state: PeerState, reason: Option<Reason>) -> Option<Notice> {
    Some(match state {
        PeerState::Stored => Notice::Stored,
        PeerState::Acknowledged => Notice::Acknowledged,
        PeerState::Processed => Notice::Read,
        PeerState::Failed | PeerState::Refused => {
            let unknown = || Reason::new(Reason::FAILED, "the other node gave no reason");
            Notice::Failed(reason.unwrap_or_else(unknown))
        }
        PeerState::Busy => return None,
        PeerState::Unknown => Notice::Lost,
    })
}

fn is_refused(view: &MessageView) -> bool {
    let reason = view.reason.as_deref();
    reason.is_some_and(|code| code != Reason::CANCELLED)
}

/// A received message.
pub(crate) enum Found {
    /// It was never stored here, or so long ago that it is forgotten.
    Never,
    /// It was cancelled, and has not arrived.
    Cancelled,
    /// It was stored, and deleted.
    Deleted,
    /// Its record.
    View(Box<MessageView>),
}

/// Returns the reason why a received message failed.
fn failure(view: &MessageView) -> Option<Reason> {
    if view.message.status != MessageStatus::Error {
        return None;
    }
    let code = view.reason.as_deref().unwrap_or(Reason::FAILED);
    let log = view.message.logs.last();
    Some(Reason::new(code, log.map_or("", |log| log.text.as_str())))
}

impl ContextHandle {
    /// Returns the message that was received from this origin.
    pub(crate) async fn received(&self, origin: &Origin) -> Result<Found, ContextError> {
        let key = &self.keys().origin(&origin.to_string());
        let element = self.store().text(self.database(), key).await?;
        let Some(element) = element else {
            return Ok(Found::Never);
        };
        if element == CANCELLED_BEFORE.as_bytes() {
            return Ok(Found::Cancelled);
        }
        let Ok(key) = self.keys().parse_message(&element) else {
            return Ok(Found::Deleted);
        };
        let view = self.message_of(key).await?;
        let same = view.filter(|view| view.origin.as_ref() == Some(origin));
        Ok(same.map_or(Found::Deleted, |view| Found::View(Box::new(view))))
    }

    /// Returns the result of a received message.
    async fn result_item(
        &self,
        of: SentFrom,
        at: ContextId,
        view: &MessageView,
    ) -> Result<Item, ContextError> {
        let key = view.result.as_deref().unwrap_or_default();
        let result = match self.keys().parse_message(key.as_bytes()) {
            Ok(key) => self.message_of(key).await?,
            Err(_) => None,
        };
        let nonce = |view: &MessageView| Nonce::from_text(view.nonce.as_deref()?);
        let found = result.and_then(|result| Some((nonce(&result)?, result.message)));
        Ok(match found {
            Some((nonce, message)) => Item::Result {
                re: of,
                from: SentFrom {
                    context: at,
                    message: message.key(),
                    nonce,
                },
                json: write_result(&message),
            },
            None => Item::State {
                of,
                at,
                state: PeerState::Failed,
                reason: Some(Reason::new(Reason::DELETED, "the result was deleted there")),
            },
        })
    }
}
