//! A message: a text or jobs from one actor to another, with three timeouts.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::reader::{
    Fields, RecordError, count_fault, fields_of, first_fault, length_fault, seconds_fault,
};
use super::value::{Log, NodeId};
use super::words::{MessageFormat, MessageStatus, MessageType};
use super::{ContextJob, FieldFault, field, limits};
use crate::keys::context::{ActorId, ContextId, ContextKeys, JobKey, MessageKey, Prerequisite};

/// The record `message:{caller_id}:{id}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Number among the messages of its caller, as in its key.
    pub id: u32,
    /// Sender: the number in its key.
    pub caller_id: ActorId,
    /// Context that stores the message; the record's own field is ignored.
    pub context_id: ContextId,
    /// The text, at most [`limits::MAX_MESSAGE`] bytes.
    pub message: String,
    /// Type of the message. It has no default.
    pub message_type: MessageType,
    /// Format of the text. Default: `text`.
    pub message_format_type: MessageFormat,
    /// Seconds from `created_at` until the target has stored it. Default: [`limits::DEFAULT_TIMEOUT`].
    pub timeout: u32,
    /// Seconds from `created_at` until it is acknowledged. Default: [`limits::DEFAULT_TIMEOUT_ACK`].
    pub timeout_ack: u32,
    /// Seconds from `created_at` until it is processed or in error. Default: [`limits::DEFAULT_TIMEOUT_RESULT`].
    pub timeout_result: u32,
    /// Jobs that the message requests, or whose results it brings; at most [`limits::MAX_MESSAGE_JOBS`].
    pub job: Vec<ContextJob>,
    /// Log of the message, the oldest entry first; at most [`limits::MAX_LOGS`].
    pub logs: Vec<Log>,
    /// Seconds since 1970.
    pub created_at: u32,
    /// Seconds since 1970.
    pub updated_at: u32,
    /// Status of the message.
    pub status: MessageStatus,
    /// Context to which the message goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_context: Option<ContextId>,
    /// Node to which the message goes. Default: this node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_node: Option<NodeId>,
    /// Topic to which the message goes. Default: that of its type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// Its signed envelope, as JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub envelope: Option<String>,
}

/// A stage of a message whose timeout is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overdue {
    /// `timeout`: the target has not stored the message.
    Delivery,
    /// `timeout_ack`: the message has not been acknowledged.
    Acknowledgement,
    /// `timeout_result`: the message has not been processed.
    Result,
}

impl Message {
    /// Returns a message without jobs, with the default timeouts.
    #[must_use]
    pub fn new(
        context_id: ContextId,
        key: MessageKey,
        message_type: MessageType,
        message: impl Into<String>,
        now: u32,
    ) -> Self {
        Self {
            id: key.id,
            caller_id: key.caller,
            context_id,
            message: message.into(),
            message_type,
            message_format_type: MessageFormat::Text,
            timeout: limits::DEFAULT_TIMEOUT,
            timeout_ack: limits::DEFAULT_TIMEOUT_ACK,
            timeout_result: limits::DEFAULT_TIMEOUT_RESULT,
            job: Vec::new(),
            logs: Vec::new(),
            created_at: now,
            updated_at: now,
            status: MessageStatus::Dispatched,
            target_context: None,
            target_node: None,
            topic: None,
            envelope: None,
        }
    }

    /// Returns the message's key without the prefix of a layout.
    #[must_use]
    pub const fn key(&self) -> MessageKey {
        MessageKey {
            caller: self.caller_id,
            id: self.id,
        }
    }

    /// Returns whether the message brings results: it has the type `result`, or the type `job` and a final status.
    #[must_use]
    pub const fn is_result(&self) -> bool {
        match self.message_type {
            MessageType::Result => true,
            MessageType::Job => self.status.is_final(),
            MessageType::Chat | MessageType::Mail => false,
        }
    }

    /// Returns the timeout that is over at `now` (seconds since 1970), the earliest stage first. `stored`: the target
    /// has the message.
    #[must_use]
    pub fn overdue(&self, now: u32, stored: bool) -> Option<Overdue> {
        let over = |timeout: u32| now > self.created_at.saturating_add(timeout);
        match self.status {
            MessageStatus::Processed | MessageStatus::Error => None,
            MessageStatus::Dispatched if !stored && over(self.timeout) => Some(Overdue::Delivery),
            MessageStatus::Dispatched if over(self.timeout_ack) => Some(Overdue::Acknowledgement),
            _ if over(self.timeout_result) => Some(Overdue::Result),
            _ => None,
        }
    }

    /// Returns a job that waits for itself, through other jobs of the message or at once; `keys` are those of the context
    /// that runs the jobs. Such a job would never begin.
    #[must_use]
    pub fn circle(&self, keys: &ContextKeys) -> Option<JobKey> {
        let places: HashMap<JobKey, usize> =
            self.job.iter().map(ContextJob::key).zip(0..).collect();
        let mut needed_by = vec![Vec::new(); self.job.len()];
        let mut needs = vec![0_usize; self.job.len()];
        for (at, job) in self.job.iter().enumerate() {
            let named = job.prerequisites.iter();
            let named = named.filter_map(|text| keys.parse_prerequisite(text).ok());
            let named: Vec<_> = named.collect();
            // The message ends after its jobs.
            if named.contains(&Prerequisite::Message(self.key())) {
                return Some(job.key());
            }
            let named = named.into_iter().filter_map(|named| match named {
                Prerequisite::Job(key) => Some(key),
                _ => None,
            });
            for before in job.dependencies().chain(named) {
                if let Some(before) = places.get(&before) {
                    needed_by[*before].push(at);
                    needs[at] += 1;
                }
            }
        }
        // Jobs that can begin are taken away, until only those of a circle and those behind it are left.
        let mut free: Vec<_> = (0..needs.len()).filter(|at| needs[*at] == 0).collect();
        while let Some(at) = free.pop() {
            for after in std::mem::take(&mut needed_by[at]) {
                needs[after] -= 1;
                if needs[after] == 0 {
                    free.push(after);
                }
            }
        }
        // Of these, a job that none of the others waits for is behind the circle.
        let stuck = |at: usize| needs[at] > 0;
        let mut at = (0..needs.len()).find(|at| stuck(*at))?;
        let before: HashMap<usize, usize> = (0..needs.len())
            .filter(|from| stuck(*from))
            .flat_map(|from| needed_by[from].iter().map(move |to| (*to, from)))
            .collect();
        for _ in 0..needs.len() {
            at = *before.get(&at)?;
        }
        Some(self.job[at].key())
    }

    /// Appends an entry to the log, and drops the oldest beyond [`limits::MAX_LOGS`].
    pub fn note(&mut self, log: Log) {
        self.logs.push(log);
        let beyond = self.logs.len().saturating_sub(limits::MAX_LOGS);
        self.logs.drain(..beyond);
    }

    /// Reads the fields of the hash. Jobs in the message are read as jobs of `context`.
    ///
    /// # Errors
    /// The first field that cannot be read. The type has no default, and timeouts of 0 are refused.
    pub fn from_fields(
        context_id: ContextId,
        key: MessageKey,
        fields: impl IntoIterator<Item = (String, Vec<u8>)>,
    ) -> Result<Self, RecordError> {
        let mut fields = Fields::new(key, fields);
        let message_type = fields.parsed(field::MESSAGE_TYPE)?;
        let message_type =
            message_type.ok_or_else(|| fields.fault(field::MESSAGE_TYPE, FieldFault::Missing))?;
        let format = fields.parsed(field::MESSAGE_FORMAT_TYPE)?;
        let seconds = |fields: &mut Fields, field, default| {
            Ok::<u32, RecordError>(fields.number(field)?.unwrap_or(default))
        };
        // An unreadable log must not block the message.
        let mut logs: Vec<Log> = fields.list(field::LOGS, "array").unwrap_or_default();
        logs.drain(..logs.len().saturating_sub(limits::MAX_LOGS));
        let message = Self {
            id: key.id,
            caller_id: key.caller,
            context_id,
            message: fields.text(field::MESSAGE)?.unwrap_or_default(),
            message_type,
            message_format_type: format.unwrap_or(MessageFormat::Text),
            timeout: seconds(&mut fields, field::TIMEOUT, limits::DEFAULT_TIMEOUT)?,
            timeout_ack: seconds(&mut fields, field::TIMEOUT_ACK, limits::DEFAULT_TIMEOUT_ACK)?,
            timeout_result: seconds(
                &mut fields,
                field::TIMEOUT_RESULT,
                limits::DEFAULT_TIMEOUT_RESULT,
            )?,
            job: jobs(&mut fields, context_id)?,
            logs,
            created_at: fields.seconds(field::CREATED_AT),
            updated_at: fields.seconds(field::UPDATED_AT),
            status: fields
                .parsed(field::STATUS)?
                .unwrap_or(MessageStatus::Dispatched),
            target_context: fields.parsed(field::TARGET_CONTEXT)?,
            target_node: fields.parsed(field::TARGET_NODE)?,
            topic: fields.text(field::TOPIC)?,
            envelope: fields.text(field::ENVELOPE)?,
        };
        message.check()?;
        Ok(message)
    }

    /// The fields of the hash.
    #[must_use]
    pub fn to_fields(&self) -> Vec<(String, String)> {
        fields_of(self)
    }

    /// Checks the limits.
    ///
    /// # Errors
    /// The first field that is over its limit.
    pub fn check(&self) -> Result<(), RecordError> {
        let timeout = |seconds| seconds_fault(seconds, limits::MAX_MESSAGE_TIMEOUT);
        let topic = self.topic.as_deref().unwrap_or_default().len();
        let checks = [
            (
                field::MESSAGE,
                length_fault(self.message.len(), limits::MAX_MESSAGE),
            ),
            (field::TIMEOUT, timeout(self.timeout)),
            (field::TIMEOUT_ACK, timeout(self.timeout_ack)),
            (field::TIMEOUT_RESULT, timeout(self.timeout_result)),
            (field::JOB, count_fault(&self.job, limits::MAX_MESSAGE_JOBS)),
            (field::TOPIC, length_fault(topic, limits::MAX_TOPIC)),
        ];
        first_fault(self.key(), checks)?;
        self.job.iter().try_for_each(ContextJob::check)
    }
}

/// Reads one job or a list of jobs.
fn jobs(fields: &mut Fields, context: ContextId) -> Result<Vec<ContextJob>, RecordError> {
    let form = "array of jobs";
    let refused = |fields: &Fields| fields.fault(field::JOB, FieldFault::Json { form });
    let Some(text) = fields.text(field::JOB)? else {
        return Ok(Vec::new());
    };
    let items = match serde_json::from_str(&text) {
        Ok(Value::Array(items)) => items,
        Ok(one @ Value::Object(_)) => vec![one],
        _ => return Err(refused(fields)),
    };
    if let Some(fault) = count_fault(&items, limits::MAX_MESSAGE_JOBS) {
        return Err(fields.fault(field::JOB, fault));
    }
    let job = |item| match item {
        Value::Object(job) => ContextJob::from_json(context, job),
        _ => Err(refused(fields)),
    };
    items.into_iter().map(job).collect()
}

#[cfg(test)]
mod tests;
