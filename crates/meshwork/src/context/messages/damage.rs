//! Damaged messages: one whose record cannot be read, or whose keys hold another type of value, ends with a reason, and
//! its sender is notified.

use meshwork_broker::context::{Commit, RecordFields};
use meshwork_model::context::{Log, LogLevel, MessageStatus, Reason, field, limits};

use crate::context::audit::{COORDINATOR, Change};
use crate::context::{ContextError, ContextHandle, Notice, Origin, Transport};

/// Number of characters of an element in the audit trail.
const SHOWN: usize = 80;

/// A damaged message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Damage<'a> {
    /// Author of the entry in the audit trail.
    pub(crate) who: &'a str,
    /// Element that names the message.
    pub(crate) element: &'a [u8],
    /// The reason.
    pub(crate) error: &'a ContextError,
}

impl<'a> Damage<'a> {
    pub(crate) const fn of(element: &'a [u8], error: &'a ContextError) -> Self {
        Self {
            who: COORDINATOR,
            element,
            error,
        }
    }
}

fn text(fields: &RecordFields, name: &str) -> String {
    let found = fields.iter().find(|(field, _)| field == name);
    let text = found.map(|(_, value)| String::from_utf8_lossy(value).into_owned());
    text.unwrap_or_default()
}

/// Returns the log of a record with one more entry. A log that cannot be read is replaced.
fn logs_after(fields: &RecordFields, log: Log) -> String {
    let logs = text(fields, field::LOGS);
    let mut logs: Vec<Log> = serde_json::from_str(&logs).unwrap_or_default();
    logs.push(log);
    logs.drain(..logs.len().saturating_sub(limits::MAX_LOGS));
    serde_json::to_string(&logs).unwrap_or_else(|_| "[]".to_owned())
}

impl ContextHandle {
    /// Ends a damaged message together with `commit`, which takes its element off: status `error` with the reason, if its
    /// record is a hash and has not ended.
    ///
    /// # Errors
    /// A call to the server fails.
    pub(crate) async fn end_damaged(
        &self,
        damage: Damage<'_>,
        transport: &dyn Transport,
        commit: Commit,
    ) -> Result<(), ContextError> {
        let (keys, why) = (self.keys(), damage.error.to_string());
        let record = keys.parse_message(damage.element);
        let record = record.ok().map(|key| keys.message(key));
        let fields = match &record {
            None => RecordFields::new(),
            Some(record) => match self.store().hash(self.database(), record).await {
                Ok(fields) => fields,
                Err(error) => {
                    let error = ContextError::from(error);
                    if !error.is_permanent() {
                        return Err(error);
                    }
                    RecordFields::new()
                }
            },
        };
        let written = text(&fields, field::STATUS);
        let is_over = written.parse().is_ok_and(MessageStatus::is_final);
        let commit = match &record {
            Some(record) if !fields.is_empty() && !is_over => {
                // First: one who is killed here leaves a message that ends again.
                if let Ok(origin) = text(&fields, field::ORIGIN).parse::<Origin>() {
                    let from = self.site(self.node().identity().await?);
                    let notice = Notice::Failed(Reason::new(Reason::DAMAGED, why.as_str()));
                    transport.notify(from, &origin, &notice).await?;
                }
                let now = self.node().now().await?;
                let logs = logs_after(&fields, Log::new(now, LogLevel::Error, &why));
                let commit = self.kept(commit, record, now);
                let now = now.to_string();
                let status = MessageStatus::Error.as_str();
                let ended = [
                    (field::STATUS, status),
                    (field::UPDATED_AT, &now),
                    (field::LOGS, &logs),
                    (field::REASON, Reason::DAMAGED),
                ];
                commit
                    .is(record, field::STATUS, written.as_bytes())
                    .set(record, ended)
                    .unmark(&keys.sent(), record.as_bytes())
            }
            _ => commit,
        };
        let object: String = String::from_utf8_lossy(damage.element)
            .chars()
            .take(SHOWN)
            .collect();
        tracing::warn!(context = %self.id(), message = %object, reason = %why, "damaged message ended");
        let change = Change {
            who: damage.who,
            what: "end damaged",
            object: &object,
            before: &written,
            after: &why,
        };
        let _ = self.commit(&change.noted(commit, &keys.audit())).await?;
        Ok(())
    }
}
