//! Parsers for elements of lists, for queues and prerequisites. Plain clients write them too, so each is checked
//! before use.

use std::str::FromStr;

use super::{ContextId, ContextKeys, ContextLayout, FlowId, InvalidKey, JobKey, MessageKey, shown};
use crate::keys::suffix::{self, NoWorkQueue, QueueParts};

/// Greatest length of an element, in bytes. The longest key, `{ctx:4294967295}:message:4294967295:4294967295`, has
/// 46.
pub const MAX_ELEMENT: usize = 64;
/// Greatest length of a gate's name, in bytes. It is a member of a set in the store.
pub const MAX_GATE: usize = 256;

/// The reason why an element of a list names no object of the context.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{element:?} names no {what} of context {context}: {fault}")]
pub struct ElementError {
    /// The element, shortened.
    pub element: String,
    /// The expected kind of object.
    pub what: &'static str,
    /// The context whose list has the element.
    pub context: ContextId,
    /// The fault.
    pub fault: ElementFault,
}

/// The fault of an element.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ElementFault {
    /// The element is longer than any key.
    #[error("it has {len} bytes, and no key has more than {MAX_ELEMENT}")]
    TooLong {
        /// Its length in bytes.
        len: usize,
    },
    /// The bytes are not UTF-8.
    #[error("it is no text")]
    NotText,
    /// The element has the prefix of another context.
    #[error("it is a key of context {other}")]
    OtherContext {
        /// The other context.
        other: ContextId,
    },
    /// The element lacks the context's prefix, or has one in a layout without prefix.
    #[error("keys of this context begin with {wanted:?}")]
    Prefix {
        /// The expected prefix.
        wanted: String,
    },
    /// The rest of the element names another kind of object, or none.
    #[error("{0}")]
    Name(InvalidKey),
}

/// A prerequisite of a job, in its field `prerequisites`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Prerequisite {
    /// The end of a job of the same context.
    Job(JobKey),
    /// The end of a message of the same context.
    Message(MessageKey),
    /// The end of a flow of the same context.
    Flow(FlowId),
    /// A gate, which an actor opens.
    Gate(String),
}

/// The reason why a text is not a prerequisite.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the prerequisite {text:?} is refused: {fault}")]
pub struct InvalidPrerequisite {
    /// The text, shortened.
    pub text: String,
    /// The fault.
    pub fault: String,
}

/// Splits a key into the context of its prefix and the rest.
fn split(text: &str) -> Option<(ContextId, &str)> {
    let (id, rest) = text.strip_prefix("{ctx:")?.split_once("}:")?;
    Some((id.parse().ok()?, rest))
}

impl ContextKeys {
    /// Returns the job that an element of a list names.
    ///
    /// # Errors
    /// The element names no job of this context, and must not be used.
    pub fn parse_job(&self, element: &[u8]) -> Result<JobKey, ElementError> {
        self.parse_element("job", element)
    }

    /// Returns the message that an element of a list names.
    ///
    /// # Errors
    /// The element names no message of this context.
    pub fn parse_message(&self, element: &[u8]) -> Result<MessageKey, ElementError> {
        self.parse_element("message", element)
    }

    fn parse_element<T>(&self, what: &'static str, element: &[u8]) -> Result<T, ElementError>
    where
        T: FromStr<Err = InvalidKey>,
    {
        let name = |element| {
            let name = self.name_of(element)?;
            name.parse().map_err(ElementFault::Name)
        };
        name(element).map_err(|fault| ElementError {
            element: shown(element),
            what,
            context: self.context(),
            fault,
        })
    }

    /// Returns a key without the prefix of this context.
    fn name_of<'a>(&self, key: &'a [u8]) -> Result<&'a str, ElementFault> {
        if key.len() > MAX_ELEMENT {
            return Err(ElementFault::TooLong { len: key.len() });
        }
        let text = std::str::from_utf8(key).map_err(|_| ElementFault::NotText)?;
        let without = || ElementFault::Prefix {
            wanted: self.prefix().to_owned(),
        };
        match (self.layout(), split(text)) {
            (_, Some((other, _))) if other != self.context() => {
                Err(ElementFault::OtherContext { other })
            }
            // A plain name with braces is parsed as a name, whose error is the better one.
            (ContextLayout::Db, None) => Ok(text),
            (ContextLayout::Prefix, Some((_, name))) => Ok(name),
            (ContextLayout::Prefix, None) => Err(without()),
            (ContextLayout::Db, Some(_)) => Err(ElementFault::Prefix {
                wanted: "job: or message:".to_owned(),
            }),
        }
    }

    /// Parses a string in `prerequisites`: a whole key of this context, or the same without its prefix. Any other
    /// word is the name of a gate.
    ///
    /// # Errors
    /// The text is empty, too long, has control characters, or looks like a key without being one of this context.
    pub fn parse_prerequisite(&self, text: &str) -> Result<Prerequisite, InvalidPrerequisite> {
        let refused = |fault: String| InvalidPrerequisite {
            text: shown(text.as_bytes()),
            fault,
        };
        if text.is_empty() || text.len() > MAX_GATE || text.contains(char::is_control) {
            let fault = format!("give 1 to {MAX_GATE} bytes without control characters");
            return Err(refused(fault));
        }
        let name = match split(text) {
            Some((other, _)) if other != self.context() => {
                return Err(refused(format!("it is a key of context {other}")));
            }
            Some((_, name)) if self.layout() == ContextLayout::Prefix => name,
            _ if text.starts_with("{ctx:") => {
                return Err(refused("it is no key of this context".to_owned()));
            }
            _ => text,
        };
        let fault = |error: InvalidKey| refused(error.to_string());
        match name.split_once(':').map_or("", |(word, _)| word) {
            "job" => name.parse().map(Prerequisite::Job).map_err(fault),
            "message" => name.parse().map(Prerequisite::Message).map_err(fault),
            "flow" => {
                let id = name["flow:".len()..].parse();
                id.map(Prerequisite::Flow).map_err(|e| fault(e.into()))
            }
            // The prefix of a context must precede one of its objects.
            _ if name.len() < text.len() => {
                Err(refused("it is no job, message or flow".to_owned()))
            }
            _ => Ok(Prerequisite::Gate(text.to_owned())),
        }
    }

    /// Parses the name of a queue; `None` for a list that is not one of this context's queues.
    #[must_use]
    pub fn queue_parts(&self, queue: &str) -> Option<QueueParts> {
        QueueParts::of_suffix(queue.strip_prefix(&self.work_prefix())?)
    }

    /// Returns the queue that `text` names: by its whole name, or by the part after `queue:`.
    ///
    /// # Errors
    /// The text names no queue.
    pub fn parse_work_queue(&self, text: &str) -> Result<String, NoWorkQueue> {
        let prefix = self.work_prefix();
        Ok(format!("{prefix}{}", suffix::named(text, &prefix)?))
    }
}

#[cfg(test)]
mod tests;
