//! Dead letters of a queue of actions: listing and retry.

use super::{Nooble, Source};
use crate::error::Error;
use crate::script::Verb;
use crate::verb::inspect::stream::Entry;
use crate::verb::{MAX_ITEMS, at_most};
use meshwork_macros::boxed;

/// A dead letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadAction {
    /// Its id among the dead letters.
    pub id: String,
    /// The message, unchanged.
    pub message: Vec<u8>,
    /// Error of the last run.
    pub error: String,
    /// Number of failed runs.
    pub runs: u32,
    /// Time of the failure, in milliseconds since 1970.
    pub at_ms: u64,
    /// Queue of the message; `None` if an older version wrote the dead letter.
    pub queue: Option<String>,
}

/// The result of a retry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RetriedDead {
    /// The message is in its queue again.
    Back,
    /// The dead letter does not exist.
    Absent,
    /// The message came from this queue, of the other dialect, and was not changed: both dialects share one stream of
    /// dead letters.
    Elsewhere(String),
}

/// A page of dead letters, the latest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadActions {
    /// The dead letters.
    pub letters: Vec<DeadAction>,
    /// Cursor of the next page; `None` after the last one.
    pub next: Option<String>,
}

impl DeadAction {
    fn read(entry: Entry) -> Self {
        let mut letter = Self {
            at_ms: entry.at_ms(),
            id: entry.id.clone(),
            message: Vec::new(),
            error: String::new(),
            runs: 0,
            queue: None,
        };
        let text = |value: Vec<u8>| String::from_utf8_lossy(&value).into_owned();
        for (name, value) in entry.fields() {
            match name.as_slice() {
                b"data" => letter.message = value,
                b"error" => letter.error = text(value),
                b"runs" => letter.runs = text(value).parse().unwrap_or_default(),
                b"queue" => letter.queue = Some(text(value)),
                b"at" => letter.at_ms = text(value).parse().unwrap_or(letter.at_ms),
                _ => {}
            }
        }
        letter
    }
}

impl Nooble {
    /// Returns the dead letters of a queue before `before`, or from the latest one on, the latest first.
    ///
    /// # Errors
    /// `most` exceeds [`MAX_ITEMS`], or the server refuses the call.
    #[boxed]
    pub async fn dead(
        &self,
        source: &Source,
        before: Option<&str>,
        most: usize,
    ) -> Result<DeadActions, Error> {
        at_most("dead", MAX_ITEMS, most)?;
        let end = before.map_or_else(|| "+".to_owned(), |id| format!("({id}"));
        let mut cmd = redis::cmd("XREVRANGE");
        cmd.arg(&source.keys.dead).arg(end).arg("-");
        let found: Vec<_> = self.ask("dead", cmd.arg("COUNT").arg(most)).await?;
        let letters: Vec<_> = found
            .into_iter()
            .map(|entry| DeadAction::read(Entry::read(entry)))
            .collect();
        let next = letters.last().filter(|_| letters.len() == most);
        let next = next.map(|letter| letter.id.clone());
        Ok(DeadActions { letters, next })
    }

    /// Returns one dead letter; `None` if it does not exist.
    ///
    /// # Errors
    /// The id is not valid, or the server refuses the call.
    #[boxed]
    pub async fn dead_letter(
        &self,
        source: &Source,
        id: &str,
    ) -> Result<Option<DeadAction>, Error> {
        let mut cmd = redis::cmd("XRANGE");
        cmd.arg(&source.keys.dead).arg(id).arg(id);
        let mut found: Vec<_> = self.ask("dead", &cmd).await?;
        let entry = found.pop().map(Entry::read);
        Ok(entry.map(DeadAction::read))
    }

    /// Moves a dead letter back to its queue, with no failed runs.
    ///
    /// # Errors
    /// The id is not valid, or the server refuses the call.
    #[boxed]
    pub async fn retry_dead(&self, source: &Source, id: &str) -> Result<RetriedDead, Error> {
        let mut call = self.call(Verb::NoobleRetryDead, source);
        call.push_key(&source.keys.dead);
        call.push_arg(id);
        let from: String = call.run(&self.conn).await?;
        Ok(match from.as_str() {
            "" => RetriedDead::Absent,
            queue if queue == source.queue() => RetriedDead::Back,
            _ => RetriedDead::Elsewhere(from),
        })
    }
}
