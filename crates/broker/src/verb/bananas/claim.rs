//! claim: claims jobs from lists, each under a lease.

use meshwork_macros::boxed;
use std::time::Duration;

use meshwork_model::bananas::Status;

use super::{Bananas, Found};
use crate::error::Error;
use crate::script::Verb;
use crate::verb::{BlockingConn, MAX_ITEMS, at_most};

/// A request for jobs.
#[derive(Debug, Clone, Copy)]
pub struct Claim<'a> {
    /// Lists to claim from, in this order.
    pub lists: &'a [String],
    /// Greatest number of jobs; 0 only releases the ids in the prefetch lists.
    pub want: usize,
    /// Lease duration.
    pub lease: Duration,
    /// Name of the worker with its incarnation, without blanks.
    pub worker: &'a str,
    /// Fencing token, unique for each call, without blanks.
    pub token: &'a str,
}

/// A claimed job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimed {
    /// Id of the job, any bytes.
    pub id: Vec<u8>,
    /// Identity of the lease: the job's id, or a unique value for a job with an empty id.
    pub hold: Vec<u8>,
    /// List of the job.
    pub list: String,
    /// Fencing token.
    pub token: String,
    /// Number of Meshwork workers that died while they ran the job.
    pub lost: u32,
    /// Record of the job.
    pub found: Found,
    /// Time of completion in its result, if the result records one.
    pub done_at: Option<String>,
}

impl Claimed {
    /// Returns whether the job has completed already, and its id was pushed again.
    #[must_use]
    pub fn is_done(&self) -> bool {
        is_done(&self.id, &self.found, self.done_at.as_deref())
    }

    /// Returns the id as text, for people.
    #[must_use]
    pub fn id(&self) -> String {
        String::from_utf8_lossy(&self.id).into_owned()
    }
}

/// Returns whether a job has completed already: its record says so, or its result does and the record is older.
/// Bananas' scheduler moves a job that it read earlier, and writes the old record again. Ids that are reused are
/// excluded, as is the empty id, which Bananas' cron gives to its jobs.
pub(super) fn is_done(id: &[u8], found: &Found, done_at: Option<&str>) -> bool {
    let Found::Job(record) = found else {
        return false;
    };
    let ended = done_at.filter(|_| !id.is_empty());
    record.status() == Some(Status::Completed) || ended.is_some_and(|at| record.is_before(at))
}

/// The result of a claim.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Claimed jobs in the order of the lists, oldest first within a list.
    pub jobs: Vec<Claimed>,
    /// Number of ids that Meshwork's workers run already, which were removed from the lists.
    pub dropped: usize,
    /// True if the call reached its bound; there may be more jobs.
    pub more: bool,
    /// Time of the claim by the server's clock, in milliseconds since 1970.
    pub at_ms: u64,
    /// Lists whose route has reached a limit, with the time after which to claim again.
    pub held: Vec<(String, Duration)>,
}

type Row = (Vec<u8>, usize, u32, String, Vec<u8>, String);

impl Bananas {
    /// Claims up to `want` ids from the lists, in their order and oldest first, within the limits of their routes
    /// ([`Bananas::configure`]). Each id is then under a lease with the token, and in the list of running jobs for
    /// Bananas' own tools. Ids in this worker's prefetch lists come first; those beyond `want` are released. Ids
    /// without a record are returned too, for the caller to handle.
    ///
    /// # Errors
    /// `want` exceeds [`MAX_ITEMS`], or the server refuses the call. In the latter case jobs may have been claimed;
    /// they return after their leases expire.
    #[boxed]
    pub async fn claim(&self, claim: Claim<'_>) -> Result<Taken, Error> {
        at_most("claim", MAX_ITEMS, claim.want)?;
        let mut call = self.call(Verb::BananasClaim);
        for list in claim.lists {
            call.push_key(list);
            call.push_key(self.keys.feed(claim.worker, list));
        }
        call.push_arg(claim.want);
        call.push_arg(claim.lease.as_millis() as u64);
        call.push_arg(claim.token);
        let mut answer = call.answer(&self.conn).await?;
        let rows: Vec<Row> = answer.next("jobs")?;
        let (dropped, more) = (answer.next("dropped")?, answer.flag("more")?);
        let at_ms = answer.next("at_ms")?;
        let held: Vec<u64> = answer.next("held")?;
        let list = |place: usize| claim.lists.get(place.wrapping_sub(1)).cloned();
        let nameless = format!(" {}.", claim.token);
        let claimed = |(hold, place, lost, state, text, done_at): Row| Claimed {
            id: match hold.starts_with(nameless.as_bytes()) {
                true => Vec::new(),
                false => hold.clone(),
            },
            hold,
            list: list(place).unwrap_or_default(),
            token: claim.token.to_owned(),
            lost,
            found: Found::read(&state, text),
            done_at: Some(done_at).filter(|time| !time.is_empty()),
        };
        let held = held
            .chunks_exact(2)
            .filter_map(|pair| Some((list(pair[0] as usize)?, Duration::from_millis(pair[1]))));
        Ok(Taken {
            held: held.collect(),
            jobs: rows.into_iter().map(claimed).collect(),
            dropped,
            more,
            at_ms,
        })
    }

    /// Waits until an id arrives in `list`, and moves the id to the worker's prefetch list, where [`Bananas::claim`]
    /// finds it. Wakes one waiting worker, for ids of any client. Returns false after the timeout, which is at most
    /// 30 seconds.
    ///
    /// # Errors
    /// The connection breaks, or the key is not a list.
    #[boxed]
    pub async fn wait_for_job(
        &self,
        blocking: &BlockingConn,
        worker: &str,
        list: &str,
        wait: Duration,
    ) -> Result<bool, Error> {
        let prefetch = self.keys.feed(worker, list);
        blocking.move_id(list, &prefetch, wait).await
    }
}
