//! Retention: messages are deleted some days after the last change of their status, or at once by an admin.

use meshwork_broker::context::{Commit, Read};
use meshwork_model::access::{Object, Operation};
use meshwork_model::context::{MessageStatus, MessageType, field, limits};
use meshwork_model::keys::context::MessageKey;

use crate::context::audit::Change;
use crate::context::messages::done::Done;
use crate::context::messages::message::MessageView;
use crate::context::{Acting, ContextError, ContextHandle, Coordinator, MOST, TRIES};

/// Time until the next attempt to delete a message, in milliseconds (1 h), if one of its timeouts is not over, or if the
/// attempt failed.
const LATER_MS: u64 = 3_600_000;

impl ContextHandle {
    /// Adds to a commit that the retention of a message begins at `now`.
    pub(crate) fn kept(&self, commit: Commit, record: &str, now: u32) -> Commit {
        let until = u64::from(now) + u64::from(limits::KEEP_MESSAGE_FOR);
        commit.mark(&self.keys().messages(), until * 1000, record.as_bytes())
    }

    /// Adds to a commit that a message is deleted, with its places in all lists.
    fn deleted(&self, commit: Commit, record: &str) -> Commit {
        let (keys, element) = (self.keys(), record.as_bytes());
        let lists = [
            keys.msg_in(),
            keys.msg_in_jobs(),
            keys.msg_out(),
            keys.msg_out_coordinator(),
        ];
        let times = [keys.outbound(), keys.sent(), keys.open(), keys.messages()];
        let commit = lists
            .iter()
            .fold(commit, |commit, list| commit.drop(list, element));
        let commit = times
            .iter()
            .fold(commit, |commit, set| commit.unmark(set, element));
        commit.delete(record)
    }

    /// Deletes a message of this context, sent or received. A message whose jobs may run is refused.
    ///
    /// # Errors
    /// [`ContextError::Denied`], [`ContextError::NoMessage`], [`ContextError::MessageOpen`], or a call to the server
    /// fails.
    pub async fn delete_message(
        &self,
        me: &impl Acting,
        key: MessageKey,
    ) -> Result<(), ContextError> {
        let (record, context) = (self.keys().message(key), self.id());
        for _ in 0..TRIES {
            let found = match self.message_of(key).await {
                Err(error) if error.is_permanent() => None,
                Ok(None) => {
                    self.allow_caller(me, Object::Chat, Operation::Delete)
                        .await?;
                    return Err(ContextError::NoMessage { key, context });
                }
                found => found?,
            };
            self.allow_caller(me, object_of(found.as_ref()), Operation::Delete)
                .await?;
            let commit = match &found {
                Some(view) if view.message.status == MessageStatus::Acknowledged => {
                    return Err(ContextError::MessageOpen { key, context });
                }
                Some(view) => {
                    let status = view.written_status.as_bytes();
                    Commit::default().is(&record, field::STATUS, status)
                }
                // A damaged record is deleted as it is.
                None => Commit::default(),
            };
            let change = Change {
                who: &me.to_string(),
                what: "delete",
                object: &record,
                ..Change::default()
            };
            let commit = change.noted(self.deleted(commit, &record), &self.keys().audit());
            if self.commit(&commit).await?.is_done() {
                return Ok(());
            }
        }
        Err(ContextError::Busy(record))
    }
}

/// Returns the object that a message is; a damaged one may be of any kind.
fn object_of(view: Option<&MessageView>) -> Object {
    match view.map(|view| &view.message) {
        Some(message) if message.is_result() => Object::OtherResult,
        Some(message) if message.message_type != MessageType::Job => Object::Chat,
        _ => Object::JobMessage,
    }
}

impl Coordinator {
    /// Deletes messages of a context whose retention is over.
    pub(crate) async fn prune(&self, context: &ContextHandle) -> Result<Done, ContextError> {
        let (store, set) = (self.node.store(), context.keys().messages());
        let due = store.elements(context.database(), &set, Read::Due(MOST));
        let elements = due.await?;
        let mut done = Done::default();
        for element in &elements {
            let pruned = self.prune_one(context, &set, element).await;
            if !matches!(pruned, Ok(true)) {
                let at = store.now().await? + LATER_MS;
                let commit = Commit::default().mark(&set, at, element);
                let _ = context.commit(&commit).await?;
            }
            done.note(context.id(), element, pruned.map(usize::from))?;
        }
        Ok(done)
    }

    /// Deletes a message. Returns false if it has not ended, and one of its timeouts is not over.
    async fn prune_one(
        &self,
        context: &ContextHandle,
        set: &str,
        element: &[u8],
    ) -> Result<bool, ContextError> {
        let Ok(key) = context.keys().parse_message(element) else {
            let _ = context
                .commit(&Commit::default().unmark(set, element))
                .await?;
            return Ok(true);
        };
        let found = match context.message_of(key).await {
            Err(error) if error.is_permanent() => None,
            found => found?,
        };
        let record = context.keys().message(key);
        let commit = match &found {
            Some(view) => {
                let now = self.node.now().await?;
                let message = &view.message;
                let is_unread = message.message_type != MessageType::Job && view.origin.is_some();
                // A time of creation in the future would keep it for ever.
                let in_time = message.created_at <= now && message.overdue(now, true).is_none();
                if !message.status.is_final() && !is_unread && in_time {
                    return Ok(false);
                }
                let status = view.written_status.as_bytes();
                Commit::default().is(&record, field::STATUS, status)
            }
            None => Commit::default(),
        };
        // If the status has changed meanwhile, the message is still due.
        let _ = context.commit(&context.deleted(commit, &record)).await?;
        Ok(true)
    }
}
