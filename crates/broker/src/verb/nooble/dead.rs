//! The dead letters of a queue: what is among them, and how one gets its runs again.

use super::{Nooble, Source};
use crate::error::Error;
use crate::script::Verb;
use crate::verb::stream::Entry;
use crate::verb::{MAX_ITEMS, at_most};

/// A message that failed for good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadAction {
    /// Its id among the dead letters.
    pub id: String,
    /// The message, as it came.
    pub message: Vec<u8>,
    /// Why it failed.
    pub error: String,
    /// How many runs of it failed.
    pub runs: u32,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// The queue that it came from; None if an older version buried it.
    pub queue: Option<String>,
}

/// What became of a dead letter that was to have its runs again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Replayed {
    /// It is in its queue again.
    Back,
    /// It is not there.
    Absent,
    /// It came from this queue, of the other dialect, and was left as it is: both have one stream of dead letters.
    Elsewhere(String),
}

/// Dead letters, the latest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadActions {
    /// These.
    pub letters: Vec<DeadAction>,
    /// What to go on before; None if there are no more.
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
    /// The dead letters of a queue, the latest first: those before `before`, or from the latest on.
    ///
    /// # Errors
    /// If more than [`MAX_ITEMS`] are wanted, or the server does not take the call.
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

    /// One dead letter; None if it is not there.
    ///
    /// # Errors
    /// If the id is none, or the server does not take the call.
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

    /// Puts a dead letter back into its queue, where it has all its runs again.
    ///
    /// # Errors
    /// If the id is none, or the server does not take the call.
    pub async fn replay(&self, source: &Source, id: &str) -> Result<Replayed, Error> {
        let mut call = self.call(Verb::NoobleReplay, source);
        call.push_key(&source.keys.dead);
        call.push_arg(id);
        let from: String = call.run(&self.conn).await?;
        Ok(match from.as_str() {
            "" => Replayed::Absent,
            queue if queue == source.queue() => Replayed::Back,
            _ => Replayed::Elsewhere(from),
        })
    }
}
