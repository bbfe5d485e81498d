//! control: returns the data that a worker polls once a second.

use meshwork_macros::boxed;
use std::time::Duration;

use meshwork_model::migration::Migration;
use meshwork_model::name::ScriptType;

use crate::broker::Broker;
use crate::error::Error;
use crate::script::Verb;
use crate::verb::{MAX_ITEMS, at_most};

/// A request of a worker.
#[derive(Debug, Clone, Copy)]
pub struct Controlled<'a> {
    /// Name of the worker with its incarnation.
    pub worker: &'a str,
    /// Lists with requests to cancel jobs: `hero:q:ctl:…`, and `hero:stop_queue:…` of the worker's legacy names.
    pub queues: &'a [String],
    /// Types that it runs.
    pub types: &'a [ScriptType],
    /// Ids of the jobs that it runs.
    pub held: &'a [String],
    /// Duration of the leadership for maintenance.
    pub turn: Duration,
}

/// A task of maintenance whose work a poll detects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaderTask {
    /// Releases the jobs of dead processes of this host.
    ReclaimDead,
    /// [`Broker::resolve_dependents`].
    ResolveDependents,
    /// [`Broker::check_orphans`].
    CheckOrphans,
    /// [`Broker::sweep_batches`].
    SweepBatches,
}

impl LeaderTask {
    /// All of them, in the order in which a leader runs them.
    pub const ALL: [Self; 4] = [
        Self::ReclaimDead,
        Self::ResolveDependents,
        Self::CheckOrphans,
        Self::SweepBatches,
    ];

    /// Returns the name in the script's answer and in logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ReclaimDead => "reclaim_dead",
            Self::ResolveDependents => "resolve_dependents",
            Self::CheckOrphans => "check_orphans",
            Self::SweepBatches => "sweep_batches",
        }
    }

    fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|task| task.as_str() == name)
    }
}

/// The answer for the worker.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Control {
    /// Jobs to cancel; the requests were removed.
    pub stop: Vec<String>,
    /// True if the worker is the leader, which does maintenance: promotes delayed jobs, resolves dependents, checks
    /// orphans, prunes.
    pub turn: bool,
    /// For the leader, the tasks that have something to do. Others are due by time alone.
    pub tasks: Vec<LeaderTask>,
    /// Time until the next delayed job is due, if there is one.
    pub due: Option<Duration>,
    /// For each type, its migration, if it has one.
    pub migrations: Vec<Option<Migration>>,
    /// Number of steps back of the server's clock.
    pub steps_back: u64,
}

impl Broker {
    /// Reads the control queues. The queue of a type is shared, so a worker takes only the ids that it runs. Waiting
    /// jobs are cancelled by any worker that reads the request. Requests for jobs of other workers stay for a minute.
    ///
    /// # Errors
    /// There are more than [`MAX_ITEMS`] jobs, or the server refuses the call. [`Broker::renew`] then reports the
    /// cancellations that were removed.
    #[boxed]
    pub async fn control(&self, request: Controlled<'_>) -> Result<Control, Error> {
        at_most("control", MAX_ITEMS, request.held.len())?;
        let mut call = self
            .scripts
            .call(Verb::Control)
            .arg(self.clock.argument())
            .arg(request.worker)
            .arg(request.turn.as_millis() as u64)
            .arg(request.types.len());
        for queue in request.queues {
            call.push_key(queue);
        }
        for script_type in request.types {
            call.push_arg(script_type.as_str());
        }
        for id in request.held {
            call.push_arg(id);
        }
        let mut answer = call.answer(&self.conn).await?;
        let (stop, turn) = (answer.texts("stop")?, answer.flag("turn")?);
        let due = answer.millis("due")?;
        let migrations = answer.texts("migrations")?;
        let tasks = answer.texts("tasks")?;
        Ok(Control {
            stop,
            turn,
            due,
            migrations: migrations.iter().map(|text| set(text)).collect(),
            tasks: tasks
                .iter()
                .filter_map(|name| LeaderTask::of(name))
                .collect(),
            steps_back: answer.next::<String>("steps")?.parse().unwrap_or_default(),
        })
    }
}

/// Parses the migration of a type. An unreadable one is from a later release.
fn set(value: &str) -> Option<Migration> {
    if value.is_empty() {
        return None;
    }
    let read = value.parse::<Migration>();
    read.inspect_err(|error| tracing::warn!(%error, "unknown"))
        .ok()
}
