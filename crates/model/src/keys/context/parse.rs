//! Elements of lists, queues and prerequisites, taken apart. Plain clients write them too, so each is checked before
//! anything is done with it.

use std::str::FromStr;

use super::{ContextId, ContextKeys, ContextLayout, FlowId, InvalidKey, JobKey, MessageKey, shown};
use crate::keys::suffix::{self, NoWorkQueue, QueueParts};

/// The most bytes of an element: the longest key, `{ctx:4294967295}:message:4294967295:4294967295`, has 46.
pub const MAX_ELEMENT: usize = 64;
/// The most bytes of a gate's name: it is a member of a set in Redis.
pub const MAX_GATE: usize = 256;

/// Why an element of a list names no object of the context.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{element:?} names no {what} of context {context}: {fault}")]
pub struct ElementError {
    /// The element, cut to a readable length.
    pub element: String,
    /// What it was to name.
    pub what: &'static str,
    /// The context whose list it is on.
    pub context: ContextId,
    /// What is wrong with it.
    pub fault: ElementFault,
}

/// What is wrong with an element.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ElementFault {
    /// No key is so long.
    #[error("it has {len} bytes, and no key has more than {MAX_ELEMENT}")]
    TooLong {
        /// Its length in bytes.
        len: usize,
    },
    /// The bytes are no text.
    #[error("it is no text")]
    NotText,
    /// It begins with the prefix of another context.
    #[error("it is a key of context {other}")]
    OtherContext {
        /// That context.
        other: ContextId,
    },
    /// It lacks the prefix of the context, or has one where there is none.
    #[error("keys of this context begin with {wanted:?}")]
    Prefix {
        /// What was wanted before the name.
        wanted: String,
    },
    /// What follows the prefix is another object, or none.
    #[error("{0}")]
    Name(InvalidKey),
}

/// What a job waits for, as its field `prerequisites` names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Prerequisite {
    /// The end of a job of the same context.
    Job(JobKey),
    /// The end of a message of the same context.
    Message(MessageKey),
    /// The end of a flow of the same context.
    Flow(FlowId),
    /// A gate that somebody opens.
    Gate(String),
}

/// Why a text is no prerequisite.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the prerequisite {text:?} is refused: {fault}")]
pub struct InvalidPrerequisite {
    /// The text, cut to a readable length.
    pub text: String,
    /// What is wrong with it.
    pub fault: String,
}

/// The context in whose prefix a key stands, and the rest of the key.
fn split(text: &str) -> Option<(ContextId, &str)> {
    let (id, rest) = text.strip_prefix("{ctx:")?.split_once("}:")?;
    Some((id.parse().ok()?, rest))
}

impl ContextKeys {
    /// The job that an element of a list names.
    ///
    /// # Errors
    /// Why the element names no job of this context; nothing may be done with it then.
    pub fn parse_job(&self, element: &[u8]) -> Result<JobKey, ElementError> {
        self.parse_element("job", element)
    }

    /// The message that an element of a list names.
    ///
    /// # Errors
    /// Why the element names no message of this context.
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

    /// A key without the prefix of this context.
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
            // Plain names, whatever else their braces may mean: the name itself says what is wrong.
            (ContextLayout::Db, None) => Ok(text),
            (ContextLayout::Prefix, Some((_, name))) => Ok(name),
            (ContextLayout::Prefix, None) => Err(without()),
            (ContextLayout::Db, Some(_)) => Err(ElementFault::Prefix {
                wanted: "job: or message:".to_owned(),
            }),
        }
    }

    /// What a string in `prerequisites` names: a whole key of this context, or the same without its prefix; any other
    /// word is the name of a gate.
    ///
    /// # Errors
    /// The text is empty, too long, has control characters, or looks like a key and is none of this context.
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
            // After the prefix of a context stands one of its objects.
            _ if name.len() < text.len() => {
                Err(refused("it is no job, message or flow".to_owned()))
            }
            _ => Ok(Prerequisite::Gate(text.to_owned())),
        }
    }

    /// Takes the name of a work queue apart; nothing for a list that is none of this context.
    #[must_use]
    pub fn queue_parts(&self, queue: &str) -> Option<QueueParts> {
        QueueParts::of_suffix(queue.strip_prefix(&self.work_prefix())?)
    }

    /// The work queue that `text` names: by its whole name, or by what comes after `queue:`.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn parse_work_queue(&self, text: &str) -> Result<String, NoWorkQueue> {
        let prefix = self.work_prefix();
        Ok(format!("{prefix}{}", suffix::named(text, &prefix)?))
    }
}

#[cfg(test)]
mod tests;
