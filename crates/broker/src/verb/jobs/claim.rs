//! claim: claims jobs from queues, each under a lease.

use meshwork_macros::boxed;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use meshwork_model::job::Job;
use meshwork_model::keys::hero::JobKeys;
use meshwork_model::state::Status;
use meshwork_model::stored;
use redis::ToRedisArgs;

use crate::broker::Broker;
use crate::error::Error;
use crate::script::{Answer, Call, Verb};
use crate::verb::{MAX_ITEMS, at_most, job, text};

/// A request for jobs.
#[derive(Debug, Clone, Copy)]
pub struct Claim<'a> {
    /// Lists to claim from, in this order.
    pub queues: &'a [String],
    /// Legacy lists, which come after them. Their clients wait for the result on `hero:reply:{id}`.
    pub old: &'a [LegacyList],
    /// True to claim from the last list to the first.
    pub reverse: bool,
    /// Prefetch lists of this worker to read.
    pub prefetch: PrefetchLists<'a>,
    /// Greatest number of jobs; 0 only releases the ids in the prefetch lists.
    pub want: usize,
    /// Number of these for which the worker has no free slot yet. Limited queues give at most `want` - `ahead` jobs, since a
    /// job that does not run would use up the limit.
    pub ahead: usize,
    /// Lease duration.
    pub lease: Duration,
    /// Name of the worker with its incarnation, unique among all workers ever. It is part of the prefetch lists'
    /// names, and must not have blanks.
    pub worker: &'a str,
    /// Fencing token, unique for each call.
    pub token: &'a str,
}

/// Prefetch lists of a worker, one for each list that it claims from. They have the ids that arrived while the worker
/// waited.
#[derive(Debug, Clone, Copy)]
pub enum PrefetchLists<'a> {
    /// Those of all lists.
    All,
    /// Those of these lists; none for lists that are not claimed from.
    Of(&'a BTreeSet<String>),
}

impl PrefetchLists<'_> {
    fn has(self, list: &str) -> bool {
        match self {
            Self::All => true,
            Self::Of(lists) => lists.contains(list),
        }
    }
}

/// A list with one of the three patterns that Hero's protocol replaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LegacyList {
    /// The list.
    pub list: String,
    /// Queue of jobs whose record has no type. They are not requeued to a legacy list, which may have no readers by
    /// then.
    pub requeue_to: String,
}

/// The result of a claim.
#[derive(Debug, Default)]
pub struct ClaimedJobs {
    /// Claimed jobs, oldest first within a queue.
    pub jobs: Vec<Claimed>,
    /// Number of ids without a job that can run (deleted, cancelled, already running), which were removed from the
    /// queue.
    pub dropped: usize,
    /// True if the call reached its bound; there may be more jobs.
    pub more: bool,
    /// Lists whose queue is paused or has reached a limit, with the time after which to claim again.
    pub blocked: Vec<(String, Duration)>,
    /// Time of the claim by the server's clock, in milliseconds since 1970.
    pub at_ms: u64,
}

/// A claimed job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimed {
    /// Record before the claim, except that `attempt` counts this run.
    pub job: Arc<Job>,
    /// Queue of the job, for requeues. For a job from a legacy list, it is a canonical one.
    pub queue: String,
    /// Fencing token.
    pub token: String,
}

/// Form of the record, id, queue, attempt, record.
type Row = (String, Vec<u8>, Vec<u8>, i64, Vec<Vec<u8>>);

/// Form of a record that has only the values of [`stored::FieldLists::claimed`]. Other records have names and values.
const VALUES: &str = "values";

impl ClaimedJobs {
    /// Reads the answer to a claim.
    pub(crate) fn read(
        mut answer: Answer,
        keys: &JobKeys,
        claim: &Claim<'_>,
    ) -> Result<Self, Error> {
        let dropped = answer.next("dropped")?;
        let more = answer.flag("more")?;
        let rows: Vec<Row> = answer.next("jobs")?;
        let held: Vec<u64> = answer.next("held")?;
        let at_ms = answer.next("at_ms")?;
        let lists = claim.lists();
        let held = held.chunks_exact(2).filter_map(|pair| {
            let (list, _) = lists.get((pair[0] as usize).checked_sub(1)?)?;
            Some(((*list).to_owned(), Duration::from_millis(pair[1])))
        });
        Ok(Self {
            blocked: held.collect(),
            at_ms,
            dropped,
            more,
            jobs: rows
                .into_iter()
                .filter_map(|row| claimed(keys, claim, row))
                .collect(),
        })
    }
}

impl Broker {
    /// Claims up to `want` jobs from the queues, in their order and oldest first. In one step, each id is popped, and
    /// the job becomes `started` under a lease with the fencing token. Ids in this worker's prefetch lists come
    /// first; those beyond `want` are released.
    ///
    /// # Errors
    /// `want` exceeds [`MAX_ITEMS`], or the server refuses the call. In the latter case jobs may have been claimed;
    /// they return after their leases expire.
    #[boxed]
    pub async fn claim(&self, claim: Claim<'_>) -> Result<ClaimedJobs, Error> {
        at_most("claim", MAX_ITEMS, claim.want)?;
        let mut call = self.scripts.call(Verb::Claim);
        call.push_arg(self.clock.argument());
        self.push_claim(&mut call, &claim);
        ClaimedJobs::read(call.answer(&self.conn).await?, &self.keys, &claim)
    }

    /// Pushes the keys and the arguments of a claim, except the time.
    pub(crate) fn push_claim(&self, call: &mut Call<'_>, claim: &Claim<'_>) {
        self.push_claim_of(call, claim, claim.ahead);
    }

    /// Pushes a claim with this argument for the jobs without a slot.
    pub(super) fn push_claim_of(
        &self,
        call: &mut Call<'_>,
        claim: &Claim<'_>,
        ahead: impl ToRedisArgs,
    ) {
        let lists = claim.lists();
        let fed = (1..).zip(&lists);
        let fed: Vec<(usize, &str)> = fed
            .filter(|(_, (list, _))| claim.prefetch.has(list))
            .map(|(place, (list, _))| (place, *list))
            .collect();
        for (_, list) in &fed {
            call.push_key(self.keys.feed(claim.worker, list));
        }
        for (list, _) in &lists {
            call.push_key(*list);
        }
        call.push_arg(claim.want);
        call.push_arg(ahead);
        call.push_arg(claim.lease.as_millis() as u64);
        call.push_arg(claim.token);
        call.push_arg(claim.worker);
        call.push_arg(fed.len());
        for (place, _) in &fed {
            call.push_arg(*place);
        }
        for (place, (list, home)) in (1..).zip(&lists) {
            if list != home {
                call.push_arg(place);
                call.push_arg(*home);
            }
        }
    }
}

impl Claim<'_> {
    /// Returns the lists in the order of this claim, each with the queue for requeues.
    fn lists(&self) -> Vec<(&str, &str)> {
        let queues = self.queues.iter();
        let queues = queues.map(|queue| (queue.as_str(), queue.as_str()));
        let old = self.old.iter();
        let old = old.map(|old| (old.list.as_str(), old.requeue_to.as_str()));
        let mut lists: Vec<_> = queues.chain(old).collect();
        if self.reverse {
            lists.reverse();
        }
        lists
    }
}

/// Reads a job of the answer. An id that is not text cannot be reported; its lease is left to expire, so that the
/// other jobs are not lost with it.
fn claimed(
    keys: &JobKeys,
    claim: &Claim<'_>,
    (form, id, queue, attempt, record): Row,
) -> Option<Claimed> {
    let id = match String::from_utf8(id) {
        Ok(id) => id,
        Err(e) => {
            let id = text(e.into_bytes());
            tracing::warn!(id, "job skipped: its id is not UTF-8");
            return None;
        }
    };
    let count = record.len();
    let Some(mut job) = record_of(keys, &id, (&form, record)) else {
        tracing::error!(
            id,
            count,
            "job skipped: its values are not those of all fields"
        );
        return None;
    };
    job.attempt = u32::try_from(attempt).unwrap_or_default();
    Some(Claimed {
        job: Arc::new(job),
        queue: text(queue),
        token: claim.token.to_owned(),
    })
}

/// Reads a record. For a waiting job with only the standard fields, scripts return values without names, id and status;
/// `None` if they are not those of all these fields.
fn record_of(keys: &JobKeys, id: &str, (form, record): (&str, Vec<Vec<u8>>)) -> Option<Job> {
    if form == VALUES {
        let names = stored::field_lists(keys).claimed;
        if record.len() != names.len() {
            return None;
        }
        let mut job = stored::job(keys, id, names.iter().copied().zip(record));
        job.status = Status::Dispatched.to_string();
        return Some(job);
    }
    let mut record = record.into_iter();
    let pairs = std::iter::from_fn(|| record.next().zip(record.next()));
    Some(job(keys, id, pairs))
}

impl Claimed {
    /// Returns the job's key.
    pub(crate) fn key(&self, keys: &JobKeys) -> String {
        keys.job_hash_key(&self.job.job_id())
    }
}
