//! control: what a worker has to know once a second.

use std::time::Duration;

use meshwork_model::migration::Migration;
use meshwork_model::name::ScriptType;

use super::{MAX_ITEMS, at_most};
use crate::script::Verb;
use crate::{Broker, Error};

/// Who asks.
#[derive(Debug, Clone, Copy)]
pub struct Controlled<'a> {
    /// The worker's name with its incarnation.
    pub worker: &'a str,
    /// The lists on which it is asked to stop jobs: `hero:q:ctl:…`, and `hero:stop_queue:…` of the old
    /// names that it goes by.
    pub queues: &'a [String],
    /// The types that it runs.
    pub types: &'a [ScriptType],
    /// The ids of the jobs that it runs.
    pub held: &'a [String],
    /// How long a turn to do the duties of all lasts.
    pub turn: Duration,
}

/// What it has to know.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Control {
    /// Which of its jobs are to stop; the requests are taken.
    pub stop: Vec<String>,
    /// Whether it is its turn to do the duties of all: promote, settle, watch, prune.
    pub turn: bool,
    /// When the next delayed job is due, if there is one.
    pub due: Option<Duration>,
    /// Per type, its migration while there is one.
    pub migrations: Vec<Option<Migration>>,
}

impl Broker {
    /// Reads the control queues. The queue of a type is shared, so a worker takes only the ids that it runs;
    /// jobs that wait are stopped by whoever sees the request; requests about jobs that others run stay, for
    /// a minute.
    ///
    /// # Errors
    /// If there are more than [`MAX_ITEMS`] jobs, or the server does not take the call. Requests that were
    /// taken then are told by [`Broker::renew`].
    pub async fn control(&self, asked: Controlled<'_>) -> Result<Control, Error> {
        at_most("control", MAX_ITEMS, asked.held.len())?;
        let mut call = self
            .scripts
            .call(Verb::Control)
            .arg(self.clock.argument())
            .arg(asked.worker)
            .arg(asked.turn.as_millis() as u64)
            .arg(asked.types.len());
        for queue in asked.queues {
            call.push_key(queue);
        }
        for script_type in asked.types {
            call.push_arg(script_type.as_str());
        }
        for id in asked.held {
            call.push_arg(id);
        }
        let mut answer = call.answer(&self.conn).await?;
        Ok(Control {
            stop: answer.texts("stop")?,
            turn: answer.flag("turn")?,
            due: answer.millis("due")?,
            migrations: answer.texts("migrations")?.iter().map(set).collect(),
        })
    }
}

/// What is set about a type's migration. One that cannot be read was written by a later release.
fn set(value: &String) -> Option<Migration> {
    if value.is_empty() {
        return None;
    }
    let read = value.parse::<Migration>();
    read.inspect_err(|error| tracing::warn!(%error, "unknown"))
        .ok()
}
