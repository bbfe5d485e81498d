//! complete_and_claim: completes jobs with their results and claims the next ones, in one step.

use crate::broker::Broker;
use crate::error::Error;
use crate::script::Verb;
use crate::verb::jobs::claim::{Claim, ClaimedJobs};
use crate::verb::jobs::complete;
use crate::verb::jobs::complete::Completed;
use crate::verb::{MAX_ITEMS, at_most};
use meshwork_macros::boxed;

/// The result of a call of `complete_and_claim`.
#[derive(Debug)]
pub struct CompletedAndClaimed {
    /// The result of each report.
    pub finished: Vec<Completed>,
    /// The claimed jobs.
    pub taken: ClaimedJobs,
}

impl Broker {
    /// Reports results like [`Broker::complete`] and then claims jobs like [`Broker::claim`], in one call of one
    /// script. A busy worker needs no other.
    ///
    /// # Errors
    /// There are more than [`MAX_ITEMS`] results or wanted jobs, or the server refuses the call. The results may be
    /// repeated then; jobs may have been claimed, and return after their leases expire.
    #[boxed]
    pub async fn complete_and_claim(
        &self,
        results: &[complete::Completion<'_>],
        claim: Claim<'_>,
    ) -> Result<CompletedAndClaimed, Error> {
        at_most("complete_and_claim", MAX_ITEMS, results.len())?;
        at_most("complete_and_claim", MAX_ITEMS, claim.want)?;
        let mut call = self.scripts.call(Verb::CompleteAndClaim);
        call.push_arg(self.clock.argument());
        call.push_arg(results.len());
        for result in results {
            self.push_result(&mut call, result);
        }
        self.push_claim(&mut call, &claim);
        let mut answer = call.answer(&self.conn).await?;
        let stale: Vec<usize> = answer.next("stale")?;
        let taken = ClaimedJobs::read(answer.nested("claim")?, &self.keys, &claim)?;
        let outcome = |at| complete::outcome(&stale, at);
        Ok(CompletedAndClaimed {
            finished: (0..results.len()).map(outcome).collect(),
            taken,
        })
    }
}
