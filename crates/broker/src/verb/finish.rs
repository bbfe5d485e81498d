//! finish: end a job with its result.

use meshwork_model::stored;

use super::{Claimed, MAX_ITEMS, at_most};
use crate::script::{Call, Verb};
use crate::{Broker, Error};

/// A job and its result.
#[derive(Debug, Clone, Copy)]
pub struct Result<'a> {
    /// The job.
    pub claimed: &'a Claimed,
    /// What it gave.
    pub output: &'a [u8],
    /// The end of what it wrote to stdout.
    pub stdout: &'a [u8],
    /// The end of what it wrote to stderr.
    pub stderr: &'a [u8],
}

/// What became of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finished {
    /// It is in the record, and on the reply list if somebody may wait there.
    Finished,
    /// The job is not this worker's any more: the result was thrown away.
    Stale,
}

impl Broker {
    /// Sets a job `finished` with its output, if the fencing token is still the one in force. The
    /// ends of stdout and stderr are kept beside it.
    ///
    /// # Errors
    /// If the server does not take the call; repeat it then.
    pub async fn finish(
        &self,
        claimed: &Claimed,
        output: &[u8],
        stdout: &[u8],
        stderr: &[u8],
    ) -> std::result::Result<Finished, Error> {
        let result = Result {
            claimed,
            output,
            stdout,
            stderr,
        };
        let told = self.finish_all(&[result]).await?;
        Ok(told.first().copied().unwrap_or(Finished::Stale))
    }

    /// The same for several jobs in one call: what became of each.
    ///
    /// # Errors
    /// If there are more than [`MAX_ITEMS`], or the server does not take the call; repeat it then.
    pub async fn finish_all(
        &self,
        results: &[Result<'_>],
    ) -> std::result::Result<Vec<Finished>, Error> {
        at_most("finish", MAX_ITEMS, results.len())?;
        let mut call = self.scripts.call(Verb::Finish);
        call.push_arg(self.clock.argument());
        for result in results {
            self.push_result(&mut call, result);
        }
        let stale: Vec<usize> = call.run(&self.conn).await?;
        Ok((0..results.len()).map(|at| told(&stale, at)).collect())
    }

    /// The key and the arguments of one result.
    pub(super) fn push_result(&self, call: &mut Call<'_>, result: &Result<'_>) {
        call.push_key(result.claimed.key(&self.keys));
        call.push_arg(&result.claimed.job.id);
        call.push_arg(&result.claimed.token);
        call.push_arg(&*stored::output(&self.keys, result.output));
        call.push_arg(result.stdout);
        call.push_arg(result.stderr);
    }
}

/// What became of the result at place `at`; the script counts from 1.
pub(super) fn told(stale: &[usize], at: usize) -> Finished {
    if stale.contains(&(at + 1)) {
        Finished::Stale
    } else {
        Finished::Finished
    }
}
