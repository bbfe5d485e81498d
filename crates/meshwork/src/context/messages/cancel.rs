//! Cancellation of messages: the sender requests it, and the target decides. A request may arrive before its message.

use meshwork_broker::context::Commit;
use meshwork_model::access::{Object, Operation};
use meshwork_model::context::{LogLevel, MessageStatus, MessageType, NodeId, Reason, field};
use meshwork_model::keys::context::{ContextId, MessageKey};
use meshwork_model::mesh::{CANCELLED_FOR_MS, Item};
use meshwork_model::name::JobId;
use meshwork_model::state::Status;

use crate::context::audit::{COORDINATOR, Change};
use crate::context::messages::foreign::{CANCELLED_BEFORE, CANCELLED_TEXT, Found, notice_of};
use crate::context::messages::message::{MessageView, logs_with};
use crate::context::{
    Acting, ContextError, ContextHandle, Coordinator, Delivery, Node, Origin, Site, TRIES,
};

/// Effect of a request at the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CancelTaken {
    /// The record of the message, or its lack for ever, decides.
    Known,
    /// The message has not arrived. It is refused when it does.
    Remembered,
    /// The message has not arrived, and no more requests are remembered.
    Full,
}

impl ContextHandle {
    /// Requests the cancellation of a message that was sent from this context. Its target ends it, unless it has ended
    /// before: the outcome says which. Returns the message as it was.
    ///
    /// # Errors
    /// [`ContextError::Denied`], [`ContextError::NoMessage`], [`ContextError::MessageReceived`], or a call to the server
    /// fails.
    pub async fn cancel_message(
        &self,
        me: &impl Acting,
        key: MessageKey,
    ) -> Result<MessageView, ContextError> {
        let (record, context) = (self.keys().message(key), self.id());
        for _ in 0..TRIES {
            let found = self.message_of(key).await?;
            let object = match found.as_ref().map(|view| view.message.message_type) {
                Some(MessageType::Job | MessageType::Result) => Object::JobMessage,
                _ => Object::Chat,
            };
            self.allow_caller(me, object, Operation::Cancel).await?;
            let view = found.ok_or(ContextError::NoMessage { key, context })?;
            let is_result = view.message.message_type == MessageType::Result;
            if view.origin.is_some() || view.re.is_some() || is_result {
                return Err(ContextError::MessageReceived { key, context });
            }
            if view.message.status.is_final() || view.cancel_at.is_some() {
                return Ok(view);
            }
            let now = self.store().now().await?.to_string();
            let change = Change {
                who: &me.to_string(),
                what: "cancel",
                object: &record,
                ..Change::default()
            };
            // The coordinator passes the request on, as it does with messages.
            let commit = Commit::default()
                .is(&record, field::STATUS, view.written_status.as_bytes())
                .is(&record, field::CANCEL, b"")
                .set(&record, [(field::CANCEL, now.as_str())])
                .push(&self.keys().msg_out(), record.as_bytes());
            let commit = change.noted(commit, &self.keys().audit());
            if self.commit(&commit).await?.is_done() {
                return Ok(view);
            }
        }
        Err(ContextError::Busy(record))
    }

    /// Takes a request of the sender of a message.
    async fn take_cancel(
        &self,
        origin: &Origin,
        remembers: bool,
    ) -> Result<CancelTaken, ContextError> {
        for _ in 0..TRIES {
            let done = match self.received(origin).await? {
                Found::Never if !remembers => return Ok(CancelTaken::Full),
                Found::Never => {
                    let key = self.keys().origin(&origin.to_string());
                    let commit = Commit::default().absent(&key);
                    let commit = commit.keep(&key, CANCELLED_BEFORE, CANCELLED_FOR_MS);
                    if self.commit(&commit).await?.is_done() {
                        return Ok(CancelTaken::Remembered);
                    }
                    false
                }
                Found::View(view) => self.cancel_received(&view).await?,
                Found::Deleted | Found::Cancelled => true,
            };
            if done {
                return Ok(CancelTaken::Known);
            }
        }
        Err(ContextError::Busy(origin.to_string()))
    }

    /// Cancels a received message. Returns false if it has changed meanwhile.
    async fn cancel_received(&self, view: &MessageView) -> Result<bool, ContextError> {
        let (message, now) = (&view.message, self.node().now().await?);
        let record = self.keys().message(message.key());
        match message.status {
            MessageStatus::Dispatched => {
                let element = record.as_bytes();
                let commit = self
                    .ended_cancelled(view, now)
                    .drop(&self.keys().msg_in_jobs(), element)
                    .drop(&self.keys().msg_in(), element);
                Ok(self.commit(&commit).await?.is_done())
            }
            MessageStatus::Acknowledged => {
                let jobs = self.open_jobs(view).await?;
                if jobs.is_empty() {
                    // All have ended, and the result is on its way.
                    return Ok(true);
                }
                let at = self.store().now().await?.to_string();
                let commit = Commit::default()
                    .is(&record, field::STATUS, view.written_status.as_bytes())
                    .set(&record, [(field::CANCEL, at.as_str())]);
                if !self.commit(&commit).await?.is_done() {
                    return Ok(false);
                }
                let broker = self.node().broker().of_context(self.keys().clone()).await?;
                for job in broker.inspect_many(&jobs).await?.into_iter().flatten() {
                    broker.cancel(&job, CANCELLED_TEXT, false).await?;
                }
                Ok(true)
            }
            MessageStatus::Processed | MessageStatus::Error => Ok(true),
        }
    }

    /// Returns the change that ends a received message as cancelled.
    pub(crate) fn ended_cancelled(&self, view: &MessageView, now: u32) -> Commit {
        let record = self.keys().message(view.message.key());
        let logs = logs_with(&view.message, now, LogLevel::Warn, CANCELLED_TEXT);
        let change = Change {
            who: COORDINATOR,
            what: "cancel",
            object: &record,
            ..Change::default()
        };
        let commit = self
            .changed(view, MessageStatus::Error, now, &logs)
            .set(&record, [(field::REASON, Reason::CANCELLED)]);
        change.noted(commit, &self.keys().audit())
    }

    /// Returns the jobs of a message that have not ended.
    async fn open_jobs(&self, view: &MessageView) -> Result<Vec<JobId>, ContextError> {
        let names: Vec<_> = self.jobs_of_message(view).into_iter().flatten().collect();
        let fields = (field::STATUS, field::ID);
        let found = self.store().pairs(self.database(), &names, fields).await?;
        let is_open = |status: &[u8]| {
            let over = [Status::Finished, Status::Error];
            !status.is_empty() && !over.iter().any(|it| it.as_str().as_bytes() == status)
        };
        let open = names.into_iter().zip(found);
        let open = open.filter(|(_, (status, _))| is_open(status));
        Ok(open.map(|(name, _)| JobId::foreign(name)).collect())
    }
}

impl Node {
    /// Takes a request to cancel the message of an origin in the context `at`. `remembers`: a message that has not arrived
    /// may be cancelled.
    pub(crate) async fn take_cancel(
        &self,
        origin: &Origin,
        at: ContextId,
        remembers: bool,
    ) -> Result<CancelTaken, ContextError> {
        let taken = match self.context(at).await {
            Ok(context) => context.take_cancel(origin, remembers).await,
            Err(error) => Err(error),
        };
        match taken {
            // The answer gives the reason.
            Err(error) if error.is_permanent() => Ok(CancelTaken::Known),
            taken => taken,
        }
    }

    /// Cancels a message that went to another context of this node, and notifies its sender.
    pub(crate) async fn cancel_here(
        &self,
        me: NodeId,
        origin: &Origin,
        to: Site,
    ) -> Result<(), ContextError> {
        self.take_cancel(origin, to.context, true).await?;
        let Some(of) = origin.at_sender() else {
            return Ok(());
        };
        if let Item::State { state, reason, .. } = self.answer_of(me, of, to.context).await?
            && let Some(notice) = notice_of(state, reason)
        {
            self.notified(to, origin, &notice).await?;
        }
        Ok(())
    }
}

impl Coordinator {
    /// Passes the request to cancel a message to its target.
    pub(crate) async fn cancel_one(
        &self,
        context: &ContextHandle,
        view: &MessageView,
        settled: &Commit,
    ) -> Result<(), ContextError> {
        let Some((message, nonce)) = self.prepared(context, view).await? else {
            return Ok(());
        };
        let origin = Origin {
            node: self.id,
            context: context.id(),
            message: message.key(),
            nonce,
        };
        let to = view.target(self.id);
        let taken = self.transport.cancel(&message, &origin, to).await?;
        if let Delivery::Refused(_) = taken {
            return self
                .settle_one(context, settled, message.key(), &taken)
                .await;
        }
        let _ = context.commit(settled).await?;
        Ok(())
    }
}
