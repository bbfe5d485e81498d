//! The result of a message between nodes, as JSON: its status and its jobs.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::context::{ContextJob, Message, MessageStatus, MessageType, limits};
use crate::keys::context::{ContextId, MessageKey};

/// Error for bytes that are no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the result cannot be read: {0}")]
pub struct InvalidResult(&'static str);

#[derive(Serialize)]
struct Written<'a> {
    status: &'a str,
    job: &'a [ContextJob],
}

#[derive(Deserialize)]
struct Read {
    status: String,
    job: Vec<Map<String, Value>>,
}

/// Writes the result in a message.
#[must_use]
pub fn write_result(message: &Message) -> Vec<u8> {
    let written = Written {
        status: message.status.as_str(),
        job: &message.job,
    };
    // Records always serialize.
    serde_json::to_vec(&written).unwrap_or_default()
}

/// Reads a result as the message `key` of a context at `now` (seconds since 1970). Its jobs are those of the caller of
/// this message: numbers of callers are valid only on their own node.
///
/// # Errors
/// The bytes have another form, or the status is not final.
pub fn read_result(
    json: &[u8],
    context: ContextId,
    key: MessageKey,
    now: u32,
) -> Result<Message, InvalidResult> {
    let read: Read =
        serde_json::from_slice(json).map_err(|_| InvalidResult("it is no JSON of a result"))?;
    let status: Option<MessageStatus> = read.status.parse().ok();
    let status = status.filter(|status| status.is_final());
    let status = status.ok_or(InvalidResult("its status is not final"))?;
    if read.job.len() > limits::MAX_MESSAGE_JOBS {
        return Err(InvalidResult("it has too many jobs"));
    }
    let job = |job: Map<String, Value>| {
        let read = ContextJob::from_json(context, job)
            .map_err(|_| InvalidResult("a job has a wrong field"))?;
        Ok(ContextJob {
            caller_id: key.caller,
            ..read
        })
    };
    let job = read.job.into_iter().map(job).collect::<Result<_, _>>()?;
    Ok(Message {
        job,
        status,
        target_context: Some(context),
        ..Message::new(context, key, MessageType::Job, String::new(), now)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::context::JobKey;
    use crate::state::Status;

    #[test]
    fn a_result_is_read_with_the_numbers_of_its_reader() {
        let (seven, eight) = (ContextId::new(7).unwrap(), ContextId::new(8).unwrap());
        let mut job = ContextJob::new(eight, JobKey::new(3, 5), "v".parse().unwrap(), "", 0);
        job.status = Status::Finished;
        job.result.insert("rows".to_owned(), "5".to_owned());
        let key = MessageKey::new(3, 9);
        let mut message = Message::new(eight, key, MessageType::Job, "", 1);
        message.job.push(job);
        message.status = MessageStatus::Processed;
        let json = write_result(&message);
        let read = read_result(&json, seven, MessageKey::new(1, 9), 2).unwrap();
        assert!(read.is_result());
        assert_eq!(
            (read.key(), read.context_id),
            (MessageKey::new(1, 9), seven)
        );
        assert_eq!(read.job[0].key(), JobKey::new(1, 5));
        assert_eq!(read.job[0].result["rows"], "5");
        message.status = MessageStatus::Dispatched;
        for bad in [write_result(&message), b"[]".to_vec(), Vec::new()] {
            assert!(read_result(&bad, seven, key, 2).is_err());
        }
    }
}
