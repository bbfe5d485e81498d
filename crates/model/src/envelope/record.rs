//! The record of a message that came from another node, built from the verified body of its envelope alone.

use serde_json::Value;

use super::body::Body;
use super::{Kind, Refusal};
use crate::context::{ContextJob, FieldFault, Message, MessageType, RecordError, field, limits};
use crate::keys::context::{ActorId, MessageKey};

impl Body {
    /// Returns the record of the message at its receiver. `caller` is the number of the sender here: those of the body
    /// are valid only on his own node.
    ///
    /// # Errors
    /// [`Refusal::WrongType`] for a kind that no actor sends to another node, [`Refusal::Malformed`] if a field exceeds its
    /// limit or a job is of another caller.
    pub fn record(&self, caller: ActorId, envelope: &str) -> Result<Message, Refusal> {
        let message_type = match self.kind {
            Kind::Job => MessageType::Job,
            Kind::Chat => MessageType::Chat,
            Kind::Mail => MessageType::Mail,
            Kind::Result | Kind::Ack => return Err(Refusal::WrongType),
        };
        let context = self.dst.context;
        let key = MessageKey {
            caller,
            id: self.id.id,
        };
        let created_at = u32::try_from(self.created_at).unwrap_or(u32::MAX);
        let refused = |error: RecordError| Refusal::Malformed {
            fault: format!("`{}` of the message: {}", error.field, error.fault),
        };
        let job = |job: &serde_json::Map<String, Value>| {
            let read = ContextJob::from_json(context, job.clone())?;
            if read.caller_id != self.id.caller {
                let (shown, wanted) = (read.caller_id.to_string(), self.id.caller.to_string());
                return Err(RecordError {
                    object: "a job of the message".to_owned(),
                    field: field::CALLER_ID,
                    fault: FieldFault::Word { shown, wanted },
                });
            }
            Ok(ContextJob {
                caller_id: caller,
                ..read
            })
        };
        if self.jobs.len() > limits::MAX_MESSAGE_JOBS {
            return Err(Refusal::Malformed {
                fault: format!("it has more than {} jobs", limits::MAX_MESSAGE_JOBS),
            });
        }
        let jobs = self.jobs.iter().map(job).collect::<Result<_, _>>();
        let [timeout, timeout_ack, timeout_result] = self.timeouts();
        let message = Message {
            message_format_type: self.format(),
            timeout,
            timeout_ack,
            timeout_result,
            job: jobs.map_err(refused)?,
            target_context: Some(context),
            target_node: Some(self.dst.node),
            topic: self.dst.topic.clone(),
            envelope: Some(envelope.to_owned()),
            ..Message::new(context, key, message_type, self.message.clone(), created_at)
        };
        message.check().map_err(refused)?;
        Ok(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actor_key::{KeyBytes, SecretKey};
    use crate::context::NodeId;
    use crate::envelope::{Destination, Nonce, Source};
    use crate::keys::context::{ContextId, JobKey};

    fn body() -> Body {
        let (seven, eight) = (ContextId::new(7).unwrap(), ContextId::new(8).unwrap());
        let mut message = Message::new(seven, MessageKey::new(12, 101), MessageType::Job, "", 5);
        let python = "python".parse().unwrap();
        let job = ContextJob::new(seven, JobKey::new(12, 2001), python, "1", 5);
        message.job.push(job);
        let key = SecretKey::from_seed(&[1; 32]).public();
        let src = Source {
            node: NodeId([1; 32]),
            context: seven,
            actor: KeyBytes::from(key),
        };
        let dst = Destination {
            node: NodeId([2; 32]),
            context: eight,
            actor: None,
            topic: None,
        };
        Body::of(&message, Nonce([9; 16]), src, dst)
    }

    #[test]
    fn the_record_has_the_numbers_of_the_receiver() {
        let record = body().record(ActorId(3), "{}").unwrap();
        assert_eq!(record.key(), MessageKey::new(3, 101));
        assert_eq!(record.context_id, ContextId::new(8).unwrap());
        assert_eq!(record.job[0].key(), JobKey::new(3, 2001));
        assert_eq!(record.job[0].context_id, record.context_id);
        assert_eq!(record.envelope.as_deref(), Some("{}"));
    }

    #[test]
    fn a_body_with_jobs_of_others_or_of_another_kind_has_no_record() {
        let mut other = body();
        other.jobs[0].insert("caller_id".to_owned(), 13.into());
        let refused = other.record(ActorId(3), "").unwrap_err();
        assert_eq!(refused.code(), "malformed");
        for kind in [Kind::Result, Kind::Ack] {
            let body = Body { kind, ..body() };
            let refused = body.record(ActorId(3), "").unwrap_err();
            assert_eq!(refused, Refusal::WrongType);
        }
    }
}
