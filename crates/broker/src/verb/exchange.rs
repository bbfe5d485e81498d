//! exchange: end jobs with their results and take the next, in one step.

use super::claim::{Claim, Taken};
use super::finish::{self, Finished};
use super::{MAX_ITEMS, at_most};
use crate::script::Verb;
use crate::{Broker, Error};

/// What an exchange brought.
#[derive(Debug)]
pub struct Exchanged {
    /// What became of each result.
    pub finished: Vec<Finished>,
    /// The jobs that were taken.
    pub taken: Taken,
}

impl Broker {
    /// Reports results as [`Broker::finish`] does and then takes jobs as [`Broker::claim`] does, in one call of
    /// one script: a busy worker needs no other.
    ///
    /// # Errors
    /// If there are more than [`MAX_ITEMS`] results or wanted jobs, or the server does not take the call. The
    /// results may be repeated then; jobs may have been claimed for nobody, and come back when their lease
    /// ends.
    pub async fn exchange(
        &self,
        results: &[finish::Result<'_>],
        claim: Claim<'_>,
    ) -> Result<Exchanged, Error> {
        at_most("exchange", MAX_ITEMS, results.len())?;
        at_most("exchange", MAX_ITEMS, claim.want)?;
        let mut call = self.scripts.call(Verb::Exchange);
        call.push_arg(self.clock.argument());
        call.push_arg(results.len());
        for result in results {
            self.push_result(&mut call, result);
        }
        self.push_claim(&mut call, &claim);
        let mut answer = call.answer(&self.conn).await?;
        let stale: Vec<usize> = answer.next("stale")?;
        let taken = Taken::read(answer.nested("claim")?, &self.keys, &claim)?;
        let told = |at| finish::told(&stale, at);
        Ok(Exchanged {
            finished: (0..results.len()).map(told).collect(),
            taken,
        })
    }
}
