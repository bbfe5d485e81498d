//! One file for each verb: the typed function over its script, with its arguments and results.

mod api_key;
pub mod bananas;
mod batch;
pub mod context;
pub mod flow;
mod inspect;
mod jobs;
mod migrate;
pub mod nooble;
mod objects;
mod orphans;
mod queue;
mod schedule;
mod series;
mod transfer;
mod worker;

pub use api_key::MAX_API_KEYS;
pub use batch::{BatchCancelled, BatchOpened, BatchSealed, BatchState, BatchStatus, MAX_BATCHES};
pub use inspect::dead::{DeadCursor, DeadLetter, DeadPage};
pub use inspect::events::JobEvent;
pub use inspect::jobs::JobPage;
pub use inspect::logs::LogLine;
pub use inspect::pages::{JobSet, ListEntry, MAX_POSITION, QueuePosition, SetEntry, SetPage};
pub use inspect::prerequisites::OpenPrerequisite;
pub use inspect::retained::{MIN_RETAINED, MIN_RETAINED_MS, Retained};
pub use jobs::add_child::AddedChild;
pub use jobs::blocking::BlockingConn;
pub use jobs::cancel::Cancelled;
pub use jobs::claim::{Claim, Claimed, ClaimedJobs, LegacyList, PrefetchLists};
pub use jobs::complete;
pub use jobs::complete::Completed;
pub use jobs::complete_and_claim::CompletedAndClaimed;
pub use jobs::delete::Deleted;
pub use jobs::enqueue::{BatchRefusal, Enqueued, MAX_ENQUEUE};
pub use jobs::fail::Failed;
pub use jobs::log::{Line, Logged};
pub use jobs::promote::Promoted;
pub use jobs::prune::Retention;
pub use jobs::release::Released;
pub use jobs::renew::{Listener, Renewal, Renewed};
pub use jobs::retry::Retried;
pub use jobs::run_now::RunNow;
pub use jobs::set_job::{JobChange, SetJob};
pub use jobs::wait_and_claim::{Arrived, WaitingClaim};
pub use migrate::{Ended, Found, LegacyQueue, MigrateError, Survey, TypeSurvey, Waiting};
pub use objects::{ObjectPage, ObjectVersion, Quota, SavedObject, StoredObject};
pub use orphans::check::{OrphanCheck, Rescue};
pub use orphans::list::StaleJob;
pub(crate) use orphans::list::count_stale;
pub use orphans::prefetch::UnregisteredPrefetch;
pub use orphans::reclaim::Reclaimed;
pub use orphans::scan::OrphanScan;
pub use orphans::track::Suspect;
pub use queue::alert::QueueAlert;
pub use queue::blockers::Blocker;
pub use queue::configure::Configured;
pub use queue::depth::QueueDepth;
pub use queue::history::CopiedCounters;
pub use queue::queues::QueueInfo;
pub use queue::server_stats::ServerStats;
pub use queue::settings::{Limits, MAX_QUEUE_LIMIT, Settings};
pub use queue::spread_keys::SpreadKeys;
pub use queue::stats::{KnownQueues, MAX_QUEUES, QueueStats, Stats};
pub use schedule::{FiredSlots, Put, SchedulePage, ScheduleRun, Scheduled};
pub use transfer::export::IdList;
pub use worker::control::{Control, Controlled, LeaderTask};
pub use worker::look::{ChangeConn, ContextConn, DueTasks, PollKeys, PollResult};
pub(crate) use worker::move_away;
pub use worker::register::{REGISTRATION_TTL, Registration};
pub use worker::workers::{RegisteredWorker, WorkerPage};

use data_encoding::HEXLOWER;
use meshwork_model::job::{Job, text};
use meshwork_model::keys::hero::JobKeys;
use meshwork_model::name::ScriptType;
use meshwork_model::stored;
use sha1::{Digest, Sha1};

use crate::broker::Broker;
use crate::error::Error;
use crate::script::{Call, Verb};

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
