//! claim: take jobs off the queues, each under a lease.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use meshwork_model::job::Job;
use meshwork_model::keys::hero::Hero;

use super::{Fields, MAX_ITEMS, at_most, job, text};
use crate::script::{Answer, Call, Verb};
use crate::{Broker, Error};
use meshwork_model::stored::stored;

/// What a worker asks for.
#[derive(Debug, Clone, Copy)]
pub struct Claim<'a> {
    /// The lists to take from, in this order.
    pub queues: &'a [String],
    /// Old lists, which are taken from after them: clients of that time wait for the
    /// result on `hero:reply:{id}`.
    pub old: &'a [OldList],
    /// The other way round, from the last list to the first.
    pub reverse: bool,
    /// Into which of this worker's feed lists to look.
    pub feeds: Feeds<'a>,
    /// How many jobs at most; 0 only hands back what waits in the feed lists.
    pub want: usize,
    /// How long a job is this worker's without a renewal.
    pub lease: Duration,
    /// The worker's name with its incarnation, unique among all workers there ever were. It names its feed
    /// lists too, so it holds no blank.
    pub worker: &'a str,
    /// The fencing token of what is claimed: another one for each call, ever.
    pub token: &'a str,
}

/// Feed lists of a worker, one for each list that it takes from: what came while it waited lies there.
#[derive(Debug, Clone, Copy)]
pub enum Feeds<'a> {
    /// Those of all lists.
    All,
    /// Those of these; of a list that is not taken from, none.
    Of(&'a BTreeSet<String>),
}

impl Feeds<'_> {
    fn has(self, list: &str) -> bool {
        match self {
            Self::All => true,
            Self::Of(lists) => lists.contains(list),
        }
    }
}

/// A list of the three patterns that Hero's protocol replaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OldList {
    /// The list.
    pub list: String,
    /// The queue that a job goes back to whose record does not say its type: it is not put on an old list
    /// again, which nobody may read any more by then.
    pub home: String,
}

/// What a claim brought.
#[derive(Debug, Default)]
pub struct Taken {
    /// The jobs, oldest first within a queue.
    pub jobs: Vec<Claimed>,
    /// Ids without a job that could be run (deleted, stopped, already running): they are gone from the
    /// queue.
    pub dropped: usize,
    /// The call stopped at its bound; there may be more.
    pub more: bool,
    /// Lists from which nothing may be taken now, since their queue is paused or at its limit, and for how
    /// long there is no use in asking again.
    pub held: Vec<(String, Duration)>,
    /// When the jobs were taken, by the server's clock: milliseconds since 1970.
    pub at_ms: u64,
}

/// A job that is this worker's until its lease ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimed {
    /// The record, as it was just before; its `attempt` counts this run.
    pub job: Arc<Job>,
    /// The queue it came from, and goes back to. Of a job that stood on an old list, a canonical one.
    pub queue: String,
    /// The proof that it is this worker's.
    pub token: String,
}

/// Id, queue, attempt, record.
type Row = (Vec<u8>, Vec<u8>, i64, Vec<Vec<u8>>);

impl Taken {
    /// What the answer means for what was asked.
    pub(super) fn read(mut answer: Answer, keys: &Hero, claim: &Claim<'_>) -> Result<Self, Error> {
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
            held: held.collect(),
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
    /// Takes up to `want` jobs off the queues, in their order and oldest first: each id is popped, and the
    /// job becomes `started` under a lease with the fencing token, in one step. What has already come into
    /// this worker's feed lists is taken first; more of it than wanted goes back to its queue.
    ///
    /// # Errors
    /// If more than [`MAX_ITEMS`] are wanted, or the server does not take the call. Then jobs may have been
    /// claimed for nobody: they come back when their lease ends.
    pub async fn claim(&self, claim: Claim<'_>) -> Result<Taken, Error> {
        at_most("claim", MAX_ITEMS, claim.want)?;
        let mut call = self.scripts.call(Verb::Claim);
        call.push_arg(self.clock.argument());
        self.push_claim(&mut call, &claim);
        Taken::read(call.answer(&self.conn).await?, &self.keys, &claim)
    }

    /// The keys and the arguments of a claim, but for the time.
    pub(super) fn push_claim(&self, call: &mut Call<'_>, claim: &Claim<'_>) {
        let lists = claim.lists();
        let fed = (1..).zip(&lists);
        let fed: Vec<(usize, &str)> = fed
            .filter(|(_, (list, _))| claim.feeds.has(list))
            .map(|(place, (list, _))| (place, *list))
            .collect();
        for (_, list) in &fed {
            call.push_key(self.keys.feed(claim.worker, list));
        }
        for (list, _) in &lists {
            call.push_key(*list);
        }
        call.push_arg(claim.want);
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
    /// The lists in the order of this claim, each with the queue that its jobs go back to.
    fn lists(&self) -> Vec<(&str, &str)> {
        let queues = self.queues.iter();
        let queues = queues.map(|queue| (queue.as_str(), queue.as_str()));
        let old = self.old.iter();
        let old = old.map(|old| (old.list.as_str(), old.home.as_str()));
        let mut lists: Vec<_> = queues.chain(old).collect();
        if self.reverse {
            lists.reverse();
        }
        lists
    }
}

/// A job of the answer. An id that is no text cannot be named in a report: its lease is left to end, and the
/// others are not claimed for nobody because of it.
fn claimed(keys: &Hero, claim: &Claim<'_>, (id, queue, attempt, record): Row) -> Option<Claimed> {
    let id = match String::from_utf8(id) {
        Ok(id) => id,
        Err(e) => {
            let id = text(e.into_bytes());
            tracing::warn!(id, "a job whose id is no text cannot be run");
            return None;
        }
    };
    let mut job = job(keys, &id, named(keys, record));
    job.attempt = u32::try_from(attempt).unwrap_or_default();
    Some(Claimed {
        job: Arc::new(job),
        queue: text(queue),
        token: claim.token.to_owned(),
    })
}

/// A record with its names: those that each new job has where the script tells values alone.
fn named(keys: &Hero, record: Vec<Vec<u8>>) -> Fields {
    let stored = stored(keys);
    if record.len() == stored.len() {
        let names = stored.iter().map(|name| name.as_bytes().to_vec());
        return names.zip(record).collect();
    }
    let mut record = record.into_iter();
    std::iter::from_fn(|| record.next().zip(record.next())).collect()
}

impl Claimed {
    /// The job's key.
    pub(crate) fn key(&self, keys: &Hero) -> String {
        keys.job_hash_key(&self.job.job_id())
    }
}
