//! claim: take jobs off the lists, each under a lease.

use std::time::Duration;

use meshwork_model::bananas::Status;

use super::{Bananas, Found};
use crate::error::Error;
use crate::script::Verb;
use crate::verb::{BlockingConn, MAX_ITEMS, at_most};

/// What a worker asks for.
#[derive(Debug, Clone, Copy)]
pub struct Claim<'a> {
    /// The lists to take from, in this order.
    pub lists: &'a [String],
    /// How many jobs at most; 0 only hands back what waits in the feed lists.
    pub want: usize,
    /// How long a job is this worker's without a renewal.
    pub lease: Duration,
    /// The worker's name with its incarnation, without blanks.
    pub worker: &'a str,
    /// The fencing token: another one for each call, ever, and without blanks.
    pub token: &'a str,
}

/// A job that is this worker's until its lease ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimed {
    /// Its id, any bytes.
    pub id: Vec<u8>,
    /// Under what ours hold it: its id, or for a job without one what no other job has.
    pub hold: Vec<u8>,
    /// The list that it came from.
    pub list: String,
    /// The proof that it is this worker's.
    pub token: String,
    /// How many workers of ours went away while they had it.
    pub lost: u32,
    /// What it is.
    pub found: Found,
    /// When it was done, as its result says it, if that says that it is.
    pub done_at: Option<String>,
}

impl Claimed {
    /// Whether it is done already, and its id stood in a list once more.
    #[must_use]
    pub fn is_done(&self) -> bool {
        is_done(&self.id, &self.found, self.done_at.as_deref())
    }

    /// Its id as text, for people.
    #[must_use]
    pub fn id(&self) -> String {
        String::from_utf8_lossy(&self.id).into_owned()
    }
}

/// Whether a job is done already: its record says so, or the result does and the record is from before. Bananas'
/// scheduler moves what it has read a moment ago, and writes the record as it was then. Ids that are used again are none
/// of this, and neither is the empty id, which Bananas' cron gives to all its jobs.
pub(super) fn is_done(id: &[u8], found: &Found, done_at: Option<&str>) -> bool {
    let Found::Job(record) = found else {
        return false;
    };
    let ended = done_at.filter(|_| !id.is_empty());
    record.status() == Some(Status::Completed) || ended.is_some_and(|at| record.is_before(at))
}

/// What a claim brought.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// The jobs, in the order of the lists, oldest first within a list.
    pub jobs: Vec<Claimed>,
    /// Ids that ours run already: they are gone from the lists.
    pub dropped: usize,
    /// The call stopped at its bound; there may be more.
    pub more: bool,
    /// When they were taken, by the server's clock: milliseconds since 1970.
    pub at_ms: u64,
    /// Lists whose route is at one of its limits, and after what time to ask for each again.
    pub held: Vec<(String, Duration)>,
}

type Row = (Vec<u8>, usize, u32, String, Vec<u8>, String);

impl Bananas {
    /// Takes up to `want` ids off the lists, in their order and oldest first, as far as the limits of their routes let
    /// them start ([`Bananas::configure`]): each is this worker's under a lease with the token from then on, and stands
    /// among those that run, for Bananas' own tools. What came into this worker's feed lists is taken first; more of it
    /// than wanted goes back. Ids without a record are given too: the caller says what becomes of them.
    ///
    /// # Errors
    /// If more than [`MAX_ITEMS`] are wanted, or the server does not take the call. Then jobs may have been claimed
    /// for nobody: they come back when their lease ends.
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

    /// Waits until an id comes to `list` and moves it into the worker's prefetch list for it, where
    /// [`Bananas::claim`] finds it. Wakes one waiting worker, and sees what any client pushes. False if none came in
    /// time, which is 30 seconds at the longest.
    ///
    /// # Errors
    /// If the connection breaks, or the list is none.
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
