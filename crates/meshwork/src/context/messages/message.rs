//! Messages of a context: reading them, and changes of their status.

use meshwork_broker::context::{Commit, Read, RecordFields};
use meshwork_model::access::{Object, Operation};
use meshwork_model::context::{
    Log, LogLevel, Message, MessageEvent, MessageStatus, MessageType, NodeId, Overdue, Reason,
    field,
};
use meshwork_model::job::field as job_field;
use meshwork_model::keys::context::{ContextId, Counter, MessageKey};
use meshwork_model::time;
use serde::{Deserialize, Serialize};

use crate::context::audit::{COORDINATOR, Change};
use crate::context::messages::damage::Damage;
use crate::context::messages::origin::is_nonce;
use crate::context::{Acting, ContextError, ContextHandle, Notice, Origin, Site, TRIES, Transport};

/// A message with the fields that this node adds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageView {
    /// The message.
    #[serde(flatten)]
    pub message: Message,
    /// Status as written, which a plain client may leave out.
    #[serde(skip)]
    pub written_status: String,
    /// Nonce, which distinguishes messages with the same key; 32 hexadecimal digits.
    #[serde(skip)]
    pub nonce: Option<String>,
    /// Its origin, if it was received.
    #[serde(rename = "mw_origin", skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// Time at which the target stored it, in seconds since 1970.
    #[serde(rename = "mw_stored_at", skip_serializing_if = "Option::is_none")]
    pub stored_at: Option<u32>,
    /// Key of the message whose result this one has, as `12:101`.
    #[serde(rename = "mw_re", skip_serializing_if = "Option::is_none")]
    pub re: Option<String>,
    /// Keys of the jobs that were enqueued for it, in order.
    #[serde(default, rename = "mw_jobs", skip_serializing_if = "Vec::is_empty")]
    pub materialised: Vec<String>,
    /// Key of the message with its result.
    #[serde(rename = "mw_result", skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// Code of the reason why it was refused or failed.
    #[serde(rename = "mw_reason", skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Time of the request to cancel it, in milliseconds since 1970.
    #[serde(rename = "mw_cancel", skip_serializing_if = "Option::is_none")]
    pub cancel_at: Option<u64>,
    /// Time of its creation, in milliseconds since 1970; whole seconds if it comes from another context.
    #[serde(rename = "mw_created_ms")]
    pub created_ms: u64,
    /// Time of the last change, in milliseconds since 1970.
    #[serde(rename = "mw_updated_ms")]
    pub updated_ms: u64,
    /// Time of its acknowledgement to the sender, in seconds since 1970.
    #[serde(skip)]
    pub acked_at: Option<u32>,
}

impl MessageView {
    /// Returns the key of the message that it claims to answer.
    pub(crate) fn answered(&self) -> Option<MessageKey> {
        MessageKey::of_numbers(self.re.as_deref()?).ok()
    }

    /// Returns the context to which the message goes; `here` is this node. Default: its own.
    pub(crate) fn target(&self, here: NodeId) -> Site {
        let message = &self.message;
        Site {
            node: message.target_node.unwrap_or(here),
            context: message.target_context.unwrap_or(message.context_id),
        }
    }

    /// Reads the fields of a hash. Returns `None` for a missing one.
    ///
    /// # Errors
    /// [`ContextError::Record`] names the first field that cannot be read.
    pub(crate) fn read(
        context: ContextId,
        key: MessageKey,
        fields: RecordFields,
    ) -> Result<Option<Self>, ContextError> {
        if fields.is_empty() {
            return Ok(None);
        }
        let text = |name: &str| {
            let found = fields.iter().find(|(field, _)| field == name);
            found.and_then(|(_, value)| String::from_utf8(value.clone()).ok())
        };
        let number = |name| text(name).and_then(|value| value.parse().ok());
        let (nonce, origin, re) = (text(field::NONCE), text(field::ORIGIN), text(field::RE));
        let materialised = text(field::MATERIALISED);
        let materialised = materialised.and_then(|list| serde_json::from_str(&list).ok());
        let written_status = text(field::STATUS).unwrap_or_default();
        let (stored_at, acked_at) = (number(field::STORED_AT), number(field::ACKED_AT));
        let cancel_at = text(field::CANCEL).and_then(|at| at.parse().ok());
        let result = text(field::RESULT_MESSAGE);
        let reason = text(field::REASON).filter(|code| Reason::is_code(code));
        let ms = |name| text(name).and_then(|value| value.parse::<u64>().ok());
        let exact = [ms(job_field::CREATED_MS), ms(job_field::UPDATED_MS)];
        let message = Message::from_fields(context, key, fields)?;
        Ok(Some(Self {
            created_ms: time::exact(message.created_at.into(), exact[0]),
            updated_ms: time::exact(message.updated_at.into(), exact.into_iter().flatten()),
            message,
            written_status,
            nonce: nonce.filter(|nonce| is_nonce(nonce)),
            origin: origin.and_then(|origin| origin.parse().ok()),
            stored_at,
            re,
            materialised: materialised.unwrap_or_default(),
            result,
            reason,
            cancel_at,
            acked_at,
        }))
    }
}

/// Returns the field of a log with one more entry.
pub(crate) fn logs_with(
    message: &Message,
    at: u32,
    level: LogLevel,
    text: impl Into<String>,
) -> String {
    let mut message = message.clone();
    message.note(Log::new(at, level, text));
    serde_json::to_string(&message.logs).unwrap_or_else(|_| "[]".to_owned())
}

/// Returns the reason of a timeout for logs.
pub(crate) fn overdue_text(message: &Message, overdue: Overdue) -> String {
    let seconds = |limit| time::duration(u64::from(limit) * 1000);
    match overdue {
        Overdue::Delivery => {
            let limit = seconds(message.timeout);
            format!("timeout: not stored by its target within {limit}")
        }
        Overdue::Acknowledgement => {
            let limit = seconds(message.timeout_ack);
            format!("timeout_ack: not taken up within {limit}")
        }
        Overdue::Result => {
            let limit = seconds(message.timeout_result);
            format!("timeout_result: not processed within {limit}")
        }
    }
}

/// Returns the outcome of a message after a timeout, as the code of its reason.
const fn outcome_of(overdue: Overdue) -> &'static str {
    match overdue {
        Overdue::Delivery => Reason::NOT_DELIVERED,
        Overdue::Acknowledgement => Reason::NOT_ACKNOWLEDGED,
        // It may have run.
        Overdue::Result => Reason::RESULT_UNKNOWN,
    }
}

/// Returns the timeout of a message that is over at `now`. A plain client may leave the time of creation out: such a
/// message has just been sent.
pub(crate) fn overdue(message: &Message, now: u32, stored: bool) -> Option<Overdue> {
    match message.created_at {
        0 => None,
        _ => message.overdue(now, stored),
    }
}

/// Returns the time of the next check of a message's timeouts, in milliseconds since 1970: 1 s after the first open
/// one.
pub(crate) fn next_look_ms(message: &Message, now: u32) -> u64 {
    let timeouts = [message.timeout, message.timeout_ack, message.timeout_result];
    let ends = timeouts.map(|timeout| message.created_at.saturating_add(timeout));
    let next = ends.into_iter().filter(|end| *end >= now).min();
    (u64::from(next.unwrap_or(now)) + 1) * 1000
}

impl ContextHandle {
    /// Returns a message, without a permission check.
    pub(crate) async fn message_of(
        &self,
        key: MessageKey,
    ) -> Result<Option<MessageView>, ContextError> {
        let fields = self
            .store()
            .hash(self.database(), &self.keys().message(key))
            .await?;
        MessageView::read(self.id(), key, fields)
    }

    /// Returns a message of this context.
    ///
    /// # Errors
    /// [`ContextError::Denied`], [`ContextError::NoMessage`], or a call to the server fails.
    pub async fn message(
        &self,
        me: &impl Acting,
        key: MessageKey,
    ) -> Result<MessageView, ContextError> {
        self.allow_caller(me, Object::Chat, Operation::Read).await?;
        let found = self.message_of(key).await?;
        found.ok_or(ContextError::NoMessage {
            key,
            context: self.id(),
        })
    }

    /// Returns all messages with readable records, the latest first.
    ///
    /// # Errors
    /// [`ContextError::Denied`], or a call to the server fails.
    pub async fn messages(&self, me: &impl Acting) -> Result<Vec<MessageView>, ContextError> {
        self.allow_caller(me, Object::Chat, Operation::Read).await?;
        let mut found = Vec::new();
        for (numbers, fields) in self
            .records(&self.keys().messages_prefix(), Counter::Message)
            .await?
        {
            let Ok(key) = MessageKey::of_numbers(&numbers) else {
                continue;
            };
            found.extend(MessageView::read(self.id(), key, fields).ok().flatten());
        }
        found.sort_by_key(|view| std::cmp::Reverse((view.message.created_at, view.message.key())));
        Ok(found)
    }

    /// Takes received messages off `msg_in`, at most `most`, oldest first. Chat and mail are processed then, and
    /// `transport` notifies their senders.
    ///
    /// # Errors
    /// [`ContextError::Denied`], or a call to the server fails.
    pub async fn read_inbox(
        &self,
        me: &impl Acting,
        transport: &dyn Transport,
        most: usize,
    ) -> Result<Vec<MessageView>, ContextError> {
        self.allow_caller(me, Object::Inbox, Operation::Pop).await?;
        let inbox = self.keys().msg_in();
        let mut elements = self
            .store()
            .elements(self.database(), &inbox, Read::Tail(most))
            .await?;
        elements.reverse();
        let mut read = Vec::new();
        for element in elements {
            read.extend(self.read_one(me, transport, &inbox, &element).await?);
        }
        Ok(read)
    }

    async fn read_one(
        &self,
        me: &impl Acting,
        transport: &dyn Transport,
        inbox: &str,
        element: &[u8],
    ) -> Result<Option<MessageView>, ContextError> {
        let take = Commit::default()
            .listed(inbox, element)
            .drop(inbox, element);
        let found = match self.keys().parse_message(element) {
            Ok(key) => match self.message_of(key).await {
                Err(error) if error.is_permanent() => {
                    let (who, error) = (&me.to_string(), &error);
                    let damage = Damage {
                        who,
                        element,
                        error,
                    };
                    self.end_damaged(damage, transport, take).await?;
                    return Ok(None);
                }
                found => found?,
            },
            Err(_) => None,
        };
        let Some(mut view) = found else {
            let change = Change {
                who: &me.to_string(),
                what: "drop",
                object: &String::from_utf8_lossy(element),
                before: "it names no message of this context",
                ..Change::default()
            };
            let _ = self
                .commit(&change.noted(take, &self.keys().audit()))
                .await?;
            return Ok(None);
        };
        let record = self.keys().message(view.message.key());
        let letter = matches!(
            view.message.message_type,
            MessageType::Chat | MessageType::Mail
        );
        let now = self.node().now().await?;
        let mut take = match letter && !view.message.status.is_final() {
            true => {
                view.message.status = MessageStatus::Processed;
                let status = view.message.status.as_str();
                let at = now.to_string();
                let take = take.set(&record, [(field::STATUS, status), (field::UPDATED_AT, &at)]);
                self.kept(take, &record, now)
            }
            false => take,
        };
        // Before the sender is notified: after a crash in between, the message can be read again.
        if let (true, Some(origin)) = (letter, &view.origin) {
            let from = self.site(self.node().identity().await?);
            match transport.notify(from, origin, &Notice::Read).await {
                // A user of this context alone: the coordinator notifies the sender.
                Err(error) if error.is_no_right() => {
                    let at_ms = u64::from(now) * 1_000;
                    take = take.mark(&self.keys().letters(), at_ms, element);
                }
                notified => notified?,
            }
        }
        // Otherwise another reader has taken it meanwhile.
        Ok(self.commit(&take).await?.is_done().then_some(view))
    }
}

impl crate::context::Node {
    /// Changes the sender's copy of a message after an event. An ended or replaced message stays as it is, and one that
    /// went to another context than `from`: whoever writes a message may claim any origin. A job message is processed
    /// by its result alone.
    pub(crate) async fn notified(
        &self,
        from: Site,
        origin: &Origin,
        notice: &Notice,
    ) -> Result<(), ContextError> {
        let sender = match self.context(origin.context).await {
            Ok(sender) => sender,
            Err(ContextError::NoContext(_) | ContextError::NoRecord { .. }) => return Ok(()),
            Err(error) => return Err(error),
        };
        for _ in 0..TRIES {
            let Some(view) = sender.message_of(origin.message).await? else {
                return Ok(());
            };
            let same = view.nonce.as_deref() == Some(origin.nonce.as_str());
            if !same || view.target(origin.node) != from {
                return Ok(());
            }
            // Replicas have to confirm also that nothing is to be changed.
            let record = sender.keys().message(view.message.key());
            let same = Commit::default().is(&record, field::STATUS, view.written_status.as_bytes());
            let changed = sender.noticed(&view, notice, self.now().await?);
            let commit = changed.unwrap_or(same);
            if sender.commit(&commit).await?.is_done() {
                return Ok(());
            }
        }
        Err(ContextError::Busy(origin.message.to_string()))
    }
}

/// Returns the status after an event; `None` if the event changes nothing. A processed message counts as acknowledged.
pub(crate) fn after(status: MessageStatus, event: MessageEvent) -> Option<MessageStatus> {
    match status.next(event) {
        Ok(next) => Some(next),
        Err(_) if event == MessageEvent::Process => {
            let taken_up = status.next(MessageEvent::Acknowledge).ok()?;
            taken_up.next(event).ok()
        }
        Err(_) => None,
    }
}

impl ContextHandle {
    /// Returns the change of a sent message after a notice; `None` if it changes nothing.
    fn noticed(&self, view: &MessageView, notice: &Notice, now: u32) -> Option<Commit> {
        let message = &view.message;
        let (record, at) = (self.keys().message(message.key()), now.to_string());
        let is_new = view.stored_at.is_none() && !message.status.is_final();
        let stored = |commit: Commit| match is_new {
            true => commit.set(&record, [(field::STORED_AT, at.as_str())]),
            false => commit,
        };
        let Some(event) = notice.event() else {
            if *notice == Notice::Lost && view.stored_at.is_some() && !message.status.is_final() {
                let text = "the target has lost the message: sent again";
                let logs = logs_with(message, now, LogLevel::Warn, text);
                let fields = [(field::STORED_AT, ""), (field::LOGS, logs.as_str())];
                let commit = Commit::default()
                    .is(&record, field::STATUS, view.written_status.as_bytes())
                    .set(&record, fields);
                return Some(commit);
            }
            if *notice != Notice::Stored {
                return None;
            }
            let to = message.target_context.unwrap_or(self.id());
            let text = format!("stored in context {to}");
            let logs = logs_with(message, now, LogLevel::Info, text);
            let commit = Commit::default()
                .is(&record, field::STATUS, view.written_status.as_bytes())
                .is(&record, field::STORED_AT, b"")
                .set(&record, [(field::LOGS, logs.as_str())]);
            return is_new.then(|| stored(commit));
        };
        let is_job = message.message_type == MessageType::Job;
        let status = after(message.status, event)?;
        if is_job && event == MessageEvent::Process {
            return None;
        }
        let (level, text) = match notice.reason() {
            Some(reason) => (LogLevel::Error, reason.text.as_str()),
            None => (LogLevel::Info, status.as_str()),
        };
        let logs = logs_with(message, now, level, text);
        let commit = self.changed(view, status, now, &logs);
        Some(match notice.reason() {
            Some(reason) => commit.set(&record, [(field::REASON, reason.code.as_str())]),
            None => stored(commit),
        })
    }

    /// Ends a message one of whose timeouts is over.
    pub(crate) fn timed_out(&self, view: &MessageView, overdue: Overdue, now: u32) -> Commit {
        let why = overdue_text(&view.message, overdue);
        let logs = logs_with(&view.message, now, LogLevel::Error, &why);
        let change = Change {
            who: COORDINATOR,
            what: "time out",
            object: &self.keys().message(view.message.key()),
            after: &why,
            ..Change::default()
        };
        let record = self.keys().message(view.message.key());
        let commit = self
            .changed(view, MessageStatus::Error, now, &logs)
            .set(&record, [(field::REASON, outcome_of(overdue))]);
        change.noted(commit, &self.keys().audit())
    }

    /// Changes the status of a message, if it is still the expected one. An ended message has no timeouts.
    pub(crate) fn changed(
        &self,
        view: &MessageView,
        to: MessageStatus,
        now: u32,
        logs: &str,
    ) -> Commit {
        let record = self.keys().message(view.message.key());
        let commit = Commit::default()
            .is(&record, field::STATUS, view.written_status.as_bytes())
            .set(
                &record,
                [
                    (field::STATUS, to.as_str()),
                    (field::UPDATED_AT, &now.to_string()),
                    (field::LOGS, logs),
                ],
            );
        let commit = self.kept(commit, &record, now);
        match to.is_final() {
            true => commit.unmark(&self.keys().sent(), record.as_bytes()),
            false => commit,
        }
    }
}
