//! One file for each verb: the typed function over its script, with its arguments and results.

mod add_child;
mod adopt;
mod alert;
pub mod bananas;
mod batch;
mod blockers;
mod blocking;
mod cancel;
mod claim;
pub mod complete;
mod complete_and_claim;
mod configure;
pub mod context;
mod control;
mod dead;
mod delete;
mod depth;
mod deregister;
mod enqueue;
mod events;
mod expire_workers;
mod export;
mod fail;
mod fire_schedules;
pub mod flow;
mod gate;
mod inputs;
mod isolate;
mod jobs;
mod log;
mod logs;
mod look;
mod migrate;
pub mod nooble;
mod promote;
mod prune;
mod queue_items;
mod queues;
mod reclaim;
mod register;
mod release;
mod renew;
mod replies;
mod request;
mod resolve_dependents;
mod restore;
mod retry;
mod run_now;
mod schedule;
mod series;
mod server_stats;
mod settings;
mod stale;
mod stats;
mod stranded;
mod stream;
mod summaries;
mod sweep;
mod watch;
mod workers;

pub use add_child::AddedChild;
pub use adopt::Suspect;
pub use alert::QueueAlert;
pub use batch::{BatchCancelled, BatchOpened, BatchSealed, BatchState, BatchStatus, MAX_BATCHES};
pub use blockers::Blocker;
pub use blocking::BlockingConn;
pub use cancel::Cancelled;
pub use claim::{Claim, Claimed, ClaimedJobs, LegacyList, PrefetchLists};
pub use complete::Completed;
pub use complete_and_claim::CompletedAndClaimed;
pub use configure::Configured;
pub use control::{Control, Controlled};
pub use dead::{DeadCursor, DeadLetter, DeadPage};
pub use delete::Deleted;
pub use depth::QueueDepth;
pub use enqueue::{BatchRefusal, Enqueued, MAX_ENQUEUE};
pub use events::JobEvent;
pub use export::IdList;
pub use fail::Failed;
pub use fire_schedules::{FiredSlots, ScheduleRun};
pub use inputs::Input;
pub use jobs::JobPage;
pub use log::{Line, Logged};
pub use logs::LogLine;
pub use look::{ContextConn, DueTasks, PollKeys, PollResult};
pub use migrate::{Ended, Found, LegacyQueue, MigrateError, Survey, TypeSurvey, Waiting};
pub use promote::Promoted;
pub use prune::Retention;
pub use queues::QueueInfo;
pub use reclaim::Reclaimed;
pub use register::{REGISTRATION_TTL, Registration};
pub use release::Released;
pub use renew::{Listener, Renewal, Renewed};
pub use retry::Retried;
pub use run_now::RunNow;
pub use schedule::{Put, SchedulePage, Scheduled};
pub use server_stats::ServerStats;
pub use settings::{Limits, MAX_QUEUE_LIMIT, Settings};
pub use stale::StaleJob;
pub(crate) use stale::count_stale;
pub use stats::{KnownQueues, MAX_QUEUES, QueueStats, Stats};
pub use stranded::UnregisteredPrefetch;
pub use sweep::OrphanScan;
pub use watch::{OrphanCheck, Rescue};
pub use workers::{RegisteredWorker, WorkerPage};

use data_encoding::HEXLOWER;
use meshwork_model::job::{Job, text};
use meshwork_model::keys::hero::JobKeys;
use meshwork_model::name::ScriptType;
use meshwork_model::stored;
use sha1::{Digest, Sha1};

use crate::script::{Call, Verb};
use crate::{Broker, Error};

/// Greatest number of items in a call of a script. A longer call would block the server for others.
pub const MAX_ITEMS: usize = 1000;

/// A hash as stored. Foreign clients may use any names of fields.
type Fields = Vec<(Vec<u8>, Vec<u8>)>;

/// Reads a record from a hash.
fn job(
    keys: &JobKeys,
    id: impl Into<String>,
    fields: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>,
) -> Job {
    let fields = fields.into_iter().map(|(name, value)| (text(name), value));
    stored::job(keys, id, fields)
}

fn at_most(verb: &'static str, most: usize, given: usize) -> Result<(), Error> {
    if given > most {
        Err(Error::TooMany { verb, most, given })
    } else {
        Ok(())
    }
}

/// Returns the digest that scripts use to name data in a key, or as a proof.
fn sha1(bytes: &[u8]) -> String {
    HEXLOWER.encode(&Sha1::digest(bytes))
}

/// Parses a script's one-word answer.
fn word<T>(verb: &'static str, answer: String, known: &[(&str, T)]) -> Result<T, Error>
where
    T: Copy,
{
    known
        .iter()
        .find(|(word, _)| *word == answer)
        .map(|(_, meaning)| *meaning)
        .ok_or(Error::Answer { verb, answer })
}

impl Broker {
    /// Begins a call that changes one job: its hash and its queue; the time, the actor, and its id.
    fn change(&self, verb: Verb, job: &Job) -> Call<'_> {
        let id = job.job_id();
        self.scripts
            .call(verb)
            .key(self.keys.job_hash_key(&id))
            .key(self.queue_of(job))
            .arg(self.clock.argument())
            .arg(&*self.who)
            .arg(id.as_str())
    }

    /// Returns the queue of a job: that of its last claim, if the record names one of this namespace, else that of its
    /// record's route. The queue of a foreign
    /// client's record without either is unknown; the returned key then does not exist.
    #[must_use]
    pub fn queue_of(&self, job: &Job) -> String {
        let own = |queue: &String| self.keys.is_queue(queue);
        let noted = job.queue.clone().filter(own);
        noted
            .or_else(|| job.route().map(|route| route.queue(&self.keys)))
            .unwrap_or_else(|| self.keys.work_prefix())
    }

    /// Returns the type of a job: that of its record, else that of the queue of its last claim.
    fn type_of(&self, job: &Job) -> ScriptType {
        let of_queue = || {
            let behind = job
                .queue
                .as_deref()?
                .strip_prefix(&self.keys.work_prefix())?;
            behind.split(':').next()
        };
        let name = job
            .script_type
            .as_deref()
            .or_else(of_queue)
            .unwrap_or_default();
        ScriptType::foreign(name.to_owned())
    }
}
