//! enqueue: stores new jobs, and adds each to its list or to the delayed jobs.

use meshwork_macros::boxed;
use meshwork_model::bananas::{ClientVariant, InvalidJob, NewJob, score};

use super::{Bananas, push_draft};
use crate::conn::Conn;
use crate::error::Error;
use crate::script::Verb;
use crate::verb::jobs::enqueue::named;
use crate::verb::{MAX_ITEMS, at_most};

/// The result of enqueuing a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enqueued {
    /// The job was stored.
    Stored,
    /// A record with this id exists; nothing was changed.
    Exists,
}

impl Bananas {
    /// Stores jobs in the format of `variant`. Each is pushed to the list of this client implementation, or added to
    /// the delayed jobs. An existing id is not changed, so that the call can be repeated.
    ///
    /// # Errors
    /// A job is refused, there are more than [`MAX_ITEMS`], or the server refuses the call. If required replicas do
    /// not confirm in time, all jobs are stored.
    #[boxed]
    pub async fn enqueue(
        &self,
        jobs: &[NewJob],
        variant: ClientVariant,
    ) -> Result<Vec<Enqueued>, Error> {
        at_most("enqueue", MAX_ITEMS, jobs.len())?;
        let mut call = self.call(Verb::BananasEnqueue);
        for job in jobs {
            let record = job.record(variant)?;
            let due = job.at_ms.map(|ms| match variant {
                // Bananas' scheduler in Go compares whole seconds; rounding up keeps jobs from starting early.
                ClientVariant::Go | ClientVariant::GoRouted => ms.div_ceil(1000).to_string(),
                ClientVariant::TypeScript | ClientVariant::Python => score(ms),
            });
            call.push_key(job.list(variant, &self.keys));
            call.push_arg(job.id.as_str());
            call.push_arg(due.unwrap_or_default());
            push_draft(&mut call, Some(&record));
        }
        let there: Vec<usize> = match &self.confirmed {
            None => call.run(&self.conn).await?,
            Some(confirmed) => {
                let ids: Vec<_> = jobs.iter().map(|job| job.id.as_str()).collect();
                let store = async |conn: &Conn| call.run(conn).await;
                confirmed.write(&self.conn, store, || named(&ids)).await?
            }
        };
        let outcome = |at| match there.contains(&(at + 1)) {
            true => Enqueued::Exists,
            false => Enqueued::Stored,
        };
        Ok((0..jobs.len()).map(outcome).collect())
    }
}

impl From<InvalidJob> for Error {
    fn from(invalid: InvalidJob) -> Self {
        Self::InvalidBananas(invalid)
    }
}
