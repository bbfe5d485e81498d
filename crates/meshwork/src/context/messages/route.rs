//! Routing: the coordinator passes the messages of a context to the transport, and records the outcome.

use std::time::Duration;

use meshwork_broker::context::{Commit, Outbox};
use meshwork_model::context::{LogLevel, Message, MessageStatus, MessageType, Reason, field};
use meshwork_model::envelope::{Nonce, claim};
use meshwork_model::keys::context::MessageKey;

use crate::context::audit::{COORDINATOR, Change};
use crate::context::messages::damage::Damage;
use crate::context::messages::deliver::Sealed;
use crate::context::messages::done::Done;
use crate::context::messages::message::{MessageView, logs_with, next_look_ms};
use crate::context::{
    ContextError, ContextHandle, Coordinator, Delivery, MOST, Origin, Parcel, Site, TRIES,
};

/// Lease of a message: far longer than a delivery takes.
const LEASE: Duration = Duration::from_secs(10);

impl Coordinator {
    /// Passes the messages in a context's outbox to the transport.
    pub(crate) async fn route(&self, context: &ContextHandle) -> Result<Done, ContextError> {
        let keys = context.keys();
        let (waiting, taken, leases) =
            (keys.msg_out(), keys.msg_out_coordinator(), keys.outbound());
        let outbox = Outbox {
            waiting: &waiting,
            taken: &taken,
            leases: &leases,
        };
        let store = self.node.store();
        let elements = store.take(context.database(), outbox, LEASE, MOST).await?;
        let mut done = Done::default();
        for element in &elements {
            // A message that failed is handled again after its lease.
            let routed = self.route_one(context, outbox, element).await;
            done.note(context.id(), element, routed.map(|()| 1))?;
        }
        Ok(done)
    }

    async fn route_one(
        &self,
        context: &ContextHandle,
        outbox: Outbox<'_>,
        element: &[u8],
    ) -> Result<(), ContextError> {
        let settled = Commit::default()
            .drop(outbox.taken, element)
            .unmark(outbox.leases, element);
        let drop = async |why: String| {
            let object: String = String::from_utf8_lossy(element).chars().take(80).collect();
            let change = Change {
                who: COORDINATOR,
                what: "drop",
                object: &object,
                before: outbox.waiting,
                after: &why,
            };
            let now = self.node.now().await?;
            // An unreadable message ends too.
            let commit = match context.keys().parse_message(element) {
                Ok(key) => context.kept(settled.clone(), &context.keys().message(key), now),
                Err(_) => settled.clone(),
            };
            let commit = change.noted(commit, &context.keys().audit());
            context.commit(&commit).await.map(|_| ())
        };
        let key = match context.keys().parse_message(element) {
            Ok(key) => key,
            Err(error) => return drop(error.to_string()).await,
        };
        let view = match context.message_of(key).await {
            Ok(Some(view)) => view,
            Ok(None) => return drop("there is no such message".to_owned()).await,
            Err(error) if error.is_permanent() => {
                let damage = Damage::of(element, &error);
                return context.end_damaged(damage, &*self.transport, settled).await;
            }
            Err(error) => return Err(error),
        };
        if is_cancelled(&view) {
            return self.cancel_one(context, &view, &settled).await;
        }
        if let Some(why) = not_sent(&view) {
            return drop(why).await;
        }
        let Some((message, nonce)) = self.prepared(context, &view).await? else {
            // Another coordinator prepares it now: it is handled again later.
            return Ok(());
        };
        let delivered = self.delivered(context, &message, view.answered(), nonce);
        let delivery = match delivered.await {
            // The target cannot store this message. The sender's other messages must not wait for it.
            Err(error) if error.is_permanent() => {
                Delivery::Refused(Reason::new(Reason::DAMAGED, error.to_string()))
            }
            delivery => delivery?,
        };
        self.settle_one(context, &settled, key, &delivery).await
    }

    /// Returns a message in the form in which it is sent, and its nonce. A plain client may leave out nonce and time,
    /// which are then stored before the first delivery.
    pub(crate) async fn prepared(
        &self,
        context: &ContextHandle,
        view: &MessageView,
    ) -> Result<Option<(Message, String)>, ContextError> {
        let mut message = view.message.clone();
        if let Some(nonce) = &view.nonce {
            return Ok(Some((message, nonce.clone())));
        }
        let record = context.keys().message(message.key());
        // Nonce and time of a signed message are those of its envelope.
        let signed = message.envelope.as_deref();
        let signed = signed.and_then(|text| claim(text.as_bytes()).ok());
        let nonce = signed.map_or_else(|| Nonce(rand::random()), |claim| claim.nonce);
        let (nonce, now) = (nonce.to_string(), self.node.now().await?);
        if message.created_at == 0 {
            let created_at = signed.and_then(|claim| u32::try_from(claim.created_at).ok());
            message.created_at = created_at.unwrap_or(now);
        }
        let created_at = message.created_at.to_string();
        let fields = [
            (field::NONCE, nonce.as_str()),
            (field::CREATED_AT, &created_at),
            (field::STATUS, message.status.as_str()),
        ];
        let commit = context
            .kept(Commit::default(), &record, now)
            .is(&record, field::NONCE, b"")
            .set(&record, fields);
        Ok(context
            .commit(&commit)
            .await?
            .is_done()
            .then_some((message, nonce)))
    }

    async fn delivered(
        &self,
        context: &ContextHandle,
        message: &Message,
        re: Option<MessageKey>,
        nonce: String,
    ) -> Result<Delivery, ContextError> {
        let parcel = Parcel {
            origin: Origin {
                node: self.id,
                context: context.id(),
                message: message.key(),
                nonce,
            },
            to: Site {
                node: message.target_node.unwrap_or(self.id),
                // A message that names no context is for its own.
                context: message.target_context.unwrap_or(context.id()),
            },
            re,
            message: message.clone(),
        };
        match self.unfit_to_leave(&parcel).await? {
            Some(reason) => Ok(Delivery::Refused(reason)),
            None => self.transport.deliver(&parcel).await,
        }
    }

    /// Returns the reason why a message must not leave this node. Its envelope is the only proof there, and the target
    /// reads nothing else. Results go as answers, signed by the node.
    async fn unfit_to_leave(&self, parcel: &Parcel) -> Result<Option<Reason>, ContextError> {
        let message = &parcel.message;
        if parcel.to.node == self.id {
            return Ok(None);
        }
        let Some(envelope) = &message.envelope else {
            let text = "it has no signed envelope, and goes to another node: sign the message";
            return Ok(Some(Reason::new(Reason::UNSIGNED, text)));
        };
        let sealed = Sealed {
            envelope,
            message,
            re: parcel.re,
            origin: Some(&parcel.origin),
        };
        self.node.broken_seal(parcel.to, &sealed).await
    }

    /// Removes a message from the outbox, and records the outcome.
    pub(crate) async fn settle_one(
        &self,
        context: &ContextHandle,
        settled: &Commit,
        key: MessageKey,
        delivery: &Delivery,
    ) -> Result<(), ContextError> {
        for _ in 0..TRIES {
            // The message may have been acknowledged meanwhile.
            let commit = match context.message_of(key).await? {
                Some(view) => {
                    self.outcome(context, settled.clone(), &view, delivery)
                        .await?
                }
                None => settled.clone(),
            };
            if context.commit(&commit).await?.is_done() {
                return Ok(());
            }
        }
        Err(ContextError::Busy(key.to_string()))
    }

    /// Adds the outcome of a delivery to a commit.
    async fn outcome(
        &self,
        context: &ContextHandle,
        commit: Commit,
        view: &MessageView,
        delivery: &Delivery,
    ) -> Result<Commit, ContextError> {
        let (message, now) = (&view.message, self.node.now().await?);
        let record = context.keys().message(message.key());
        let at = now.to_string();
        let commit = commit.is(&record, field::STATUS, view.written_status.as_bytes());
        let commit = context.kept(commit, &record, now);
        let reason = match delivery {
            Delivery::Stored | Delivery::Duplicate => {
                let to = message.target_context.unwrap_or(context.id());
                let logs = logs_with(
                    message,
                    now,
                    LogLevel::Info,
                    format!("stored in context {to}"),
                );
                let commit = commit.set(
                    &record,
                    [(field::STORED_AT, at.as_str()), (field::LOGS, &logs)],
                );
                return Ok(unless_over(context, message, now, commit));
            }
            Delivery::Queued => {
                let node = message.target_node.unwrap_or(self.id);
                let logs = logs_with(
                    message,
                    now,
                    LogLevel::Info,
                    format!("queued for node {node}"),
                );
                let commit = commit.set(&record, [(field::LOGS, logs.as_str())]);
                return Ok(unless_over(context, message, now, commit));
            }
            Delivery::Refused(reason) => reason,
        };
        let logs = logs_with(message, now, LogLevel::Error, reason.text.as_str());
        let fields = [
            (field::STATUS, MessageStatus::Error.as_str()),
            (field::UPDATED_AT, &at),
            (field::LOGS, &logs),
            (field::REASON, &reason.code),
        ];
        let change = Change {
            who: COORDINATOR,
            what: "refuse message",
            object: &record,
            after: &reason.text,
            ..Change::default()
        };
        let commit = commit
            .set(&record, fields)
            .unmark(&context.keys().sent(), record.as_bytes());
        Ok(change.noted(commit, &context.keys().audit()))
    }
}

/// Adds to a commit the time of the next check of the timeouts of a message that has not ended.
fn unless_over(context: &ContextHandle, message: &Message, now: u32, commit: Commit) -> Commit {
    let record = context.keys().message(message.key());
    match message.status.is_final() {
        true => commit,
        false => commit.mark(
            &context.keys().sent(),
            next_look_ms(message, now),
            record.as_bytes(),
        ),
    }
}

/// Returns true for a sent message that is to be cancelled.
fn is_cancelled(view: &MessageView) -> bool {
    let is_sent = view.origin.is_none() && view.re.is_none();
    is_sent && view.cancel_at.is_some() && !view.message.status.is_final()
}

/// Returns the reason why a message in `msg_out` is not sent, if there is one.
fn not_sent(view: &MessageView) -> Option<String> {
    let message = &view.message;
    if view.stored_at.is_some() {
        return Some("it was sent before".to_owned());
    }
    // A message with a final status is the result of another one, or has ended.
    let is_result = match message.message_type {
        MessageType::Result => true,
        MessageType::Job => view.re.is_some(),
        MessageType::Chat | MessageType::Mail => false,
    };
    let over = message.status.is_final() && !is_result;
    over.then(|| format!("it is over: {}", message.status))
}
