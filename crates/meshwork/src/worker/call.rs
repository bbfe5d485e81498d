//! Call: one exchange with the broker: results of runs that have ended go there, jobs come back. When one is
//! made, and of what, [`super::pull`] says.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use meshwork_broker::{Backoff, Claim, Feeds, Finished, Taken, finish};
use tokio::time::Instant;

use super::Setup;
use super::lists::{Lists, Turn};
use super::report::Ran;

/// What a claim asks for.
#[derive(Debug)]
pub(super) struct Asked {
    /// Until when what it brings is this worker's for certain: a lease begins when the server has the call.
    pub(super) until: Instant,
    pub(super) want: usize,
    pub(super) turn: Turn,
    pub(super) lists: Arc<Lists>,
    /// Lists that are left out, since they are held back.
    pub(super) skipped: Vec<String>,
    /// The lists whose feeders brought an id: none of them is left out.
    pub(super) fed: BTreeSet<String>,
    /// Looks into the feeds of all lists.
    pub(super) sweep: bool,
}

/// What is sent: results, a claim, or both.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) results: Vec<Ran>,
    pub(super) claim: Option<Asked>,
}

impl Call {
    /// How many slots it may need: those of its results are not free before they are known to be reported.
    pub(super) fn slots(&self) -> usize {
        let want = self.claim.as_ref().map_or(0, |claim| claim.want);
        want.max(self.results.len())
    }
}

/// What the server said: what became of each result, and what was taken if that was asked.
pub(super) type Told = Result<(Vec<Finished>, Option<Taken>), meshwork_broker::Error>;

/// What the pull loop waits for.
pub(super) enum Landed {
    /// A call.
    Called(Box<Call>, Told),
    /// Jobs that are not wanted now are back in their queues.
    Released,
    /// The pause after a call that failed.
    Rested(Backoff),
}

/// Makes the call.
pub(super) async fn make(setup: Arc<Setup>, call: Box<Call>) -> Landed {
    let told = told(&setup, &call).await;
    Landed::Called(call, told)
}

async fn told(setup: &Setup, call: &Call) -> Told {
    let broker = &setup.broker;
    let results: Vec<finish::Result<'_>> = call.results.iter().map(Ran::result).collect();
    let Some(asked) = &call.claim else {
        return Ok((broker.finish_all(&results).await?, None));
    };
    let (token, lists) = (setup.identity.token(), &asked.lists);
    let (mut queues, mut old) = (lists.queues_in(asked.turn), Cow::Borrowed(lists.old()));
    if !asked.skipped.is_empty() {
        queues.to_mut().retain(|list| !asked.skipped.contains(list));
        old.to_mut()
            .retain(|old| !asked.skipped.contains(&old.list));
    }
    let claim = Claim {
        queues: &queues,
        old: &old,
        reverse: asked.turn.reverse,
        feeds: if asked.sweep {
            Feeds::All
        } else {
            Feeds::Of(&asked.fed)
        },
        want: asked.want,
        lease: setup.lease,
        worker: setup.identity.worker(),
        token: &token,
    };
    if results.is_empty() {
        return Ok((Vec::new(), Some(broker.claim(claim).await?)));
    }
    let exchanged = broker.exchange(&results, claim).await?;
    Ok((exchanged.finished, Some(exchanged.taken)))
}
