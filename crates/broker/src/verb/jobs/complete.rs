//! complete: completes a job with its result.

use meshwork_macros::boxed;
use meshwork_model::stored;

use crate::broker::Broker;
use crate::error::Error;
use crate::script::{Call, Verb};
use crate::verb::{Claimed, MAX_ITEMS, at_most};

/// A job and its result.
#[derive(Debug, Clone, Copy)]
pub struct Completion<'a> {
    /// The job.
    pub claimed: &'a Claimed,
    /// Output of the run.
    pub output: &'a [u8],
    /// Last part of its stdout.
    pub stdout: &'a [u8],
    /// Last part of its stderr.
    pub stderr: &'a [u8],
}

/// The result of reporting a success.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completed {
    /// The result is in the record, and on the reply list if a client may wait there.
    Finished,
    /// This worker has lost the lease; the result was ignored.
    Stale,
}

impl Broker {
    /// Sets a job `finished` with its output, if the fencing token is current. The last parts of stdout and stderr
    /// are stored with it.
    ///
    /// # Errors
    /// The server refuses the call; repeat it then.
    #[boxed]
    pub async fn complete(
        &self,
        claimed: &Claimed,
        output: &[u8],
        stdout: &[u8],
        stderr: &[u8],
    ) -> std::result::Result<Completed, Error> {
        let result = Completion {
            claimed,
            output,
            stdout,
            stderr,
        };
        let outcomes = self.complete_all(&[result]).await?;
        Ok(outcomes.first().copied().unwrap_or(Completed::Stale))
    }

    /// Completes several jobs in one call, and returns the result of each.
    ///
    /// # Errors
    /// There are more than [`MAX_ITEMS`], or the server refuses the call; repeat it then.
    #[boxed]
    pub async fn complete_all(
        &self,
        results: &[Completion<'_>],
    ) -> std::result::Result<Vec<Completed>, Error> {
        at_most("complete", MAX_ITEMS, results.len())?;
        let mut call = self.scripts.call(Verb::Complete);
        call.push_arg(self.clock.argument());
        for result in results {
            self.push_result(&mut call, result);
        }
        let stale: Vec<usize> = call.run(&self.conn).await?;
        Ok((0..results.len()).map(|at| outcome(&stale, at)).collect())
    }

    /// Pushes the key and the arguments of one result.
    pub(crate) fn push_result(&self, call: &mut Call<'_>, result: &Completion<'_>) {
        call.push_key(result.claimed.key(&self.keys));
        call.push_arg(&result.claimed.job.id);
        call.push_arg(&result.claimed.token);
        call.push_arg(&*stored::output(&self.keys, result.output));
        call.push_arg(result.stdout);
        call.push_arg(result.stderr);
    }
}

/// Returns the result of the report at index `at`; the script counts from 1.
pub(crate) fn outcome(stale: &[usize], at: usize) -> Completed {
    if stale.contains(&(at + 1)) {
        Completed::Stale
    } else {
        Completed::Finished
    }
}
