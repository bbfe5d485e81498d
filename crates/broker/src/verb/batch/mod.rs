//! Batches: open, seal, cancel and sweep them. Jobs join by `enqueue`; the script that ends a job counts it.
//! [`status`] reads batches.

mod status;

use meshwork_macros::boxed;
use meshwork_model::batch::{Callback, NewBatch};
use meshwork_model::name::BatchId;

use super::{MAX_ITEMS, Retention, word};
use crate::broker::Broker;
use crate::conn::Conn;
use crate::error::Error;
use crate::script::{Call, Verb};
use crate::verb::jobs::enqueue::{Enqueued, parse_enqueued};

pub use status::{BatchState, BatchStatus, MAX_BATCHES};

/// Greatest number of jobs of a cancelled batch in a call. To cancel a waiting job, its queue is scanned.
const MOST_STOPPED: usize = 100;

/// The result of opening a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BatchOpened {
    /// The batch exists, and its callbacks wait.
    Opened,
    /// A batch with this id exists already; nothing was written.
    Exists,
    /// This callback was refused; nothing was written.
    Refused(Callback, Enqueued),
}

/// The result of sealing a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchSealed {
    /// The batch is sealed, now or before.
    Sealed,
    /// The batch has ended already.
    Ended,
    /// The batch was cancelled.
    Cancelled,
    /// The batch does not exist.
    Missing,
}

/// The result of cancelling a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchCancelled {
    /// All its jobs are cancelled, or their workers were notified.
    Cancelled,
    /// A part of its jobs is cancelled; repeat the call.
    GoingOn,
    /// The batch had ended already.
    Ended,
    /// The batch does not exist.
    Missing,
}

impl Broker {
    /// Opens a batch and stores its callbacks in one step. Callbacks are jobs that wait: `dispatched`, on no queue.
    /// The script that counts the last job of a batch queues them, so that each runs once. With
    /// [`Broker::acknowledge`] it succeeds when replicas have all of it.
    ///
    /// # Errors
    /// The batch is not valid: nothing was written. If the server refuses the call, repeat it;
    /// [`BatchOpened::Exists`] may then mean this batch.
    #[boxed]
    pub async fn open_batch(&self, batch: &NewBatch) -> Result<BatchOpened, Error> {
        batch.check()?;
        for (_, job) in &batch.callbacks {
            job.check()?;
        }
        let open = async |conn: &Conn| {
            let mut call = self.batch_call(Verb::CreateBatch, &batch.id);
            call.push_arg(&batch.name);
            call.push_arg(u64::try_from(batch.open_for.as_millis()).unwrap_or(u64::MAX >> 12));
            call.push_arg(batch.request_digest.as_deref().unwrap_or_default());
            for (kind, job) in &batch.callbacks {
                call.push_arg(kind.as_str());
                self.push_job(&mut call, job);
            }
            call.run::<String>(conn).await
        };
        let answer = match &self.confirmed {
            None => open(&self.conn).await?,
            Some(confirmed) => {
                let what = || format!("batch {} is", batch.id);
                confirmed.write(&self.conn, open, what).await?
            }
        };
        match answer.as_str() {
            "opened" => return Ok(BatchOpened::Opened),
            "exists" => return Ok(BatchOpened::Exists),
            _ => {}
        }
        let verb = "create_batch";
        let Some((kind, why)) = answer.split_once(' ') else {
            return Err(Error::Answer { verb, answer });
        };
        match Callback::ALL
            .into_iter()
            .find(|known| known.as_str() == kind)
        {
            Some(kind) => Ok(BatchOpened::Refused(kind, parse_enqueued(why.to_owned())?)),
            None => Err(Error::Answer { verb, answer }),
        }
    }

    /// Seals a batch: clients can add no more jobs. It ends with the last of its jobs, or at once if it has none.
    /// With [`Broker::acknowledge`] it succeeds when replicas have the change.
    ///
    /// # Errors
    /// The server refuses the call; repeat it then.
    #[boxed]
    pub async fn seal_batch(&self, id: &BatchId) -> Result<BatchSealed, Error> {
        let seal = async |conn: &Conn| {
            let call = self.batch_call(Verb::SealBatch, id);
            call.run::<String>(conn).await
        };
        let answer = match &self.confirmed {
            None => seal(&self.conn).await?,
            Some(confirmed) => {
                let what = || format!("the seal of batch {id} is");
                confirmed.write(&self.conn, seal, what).await?
            }
        };
        let known = [
            ("sealed", BatchSealed::Sealed),
            ("ended", BatchSealed::Ended),
            ("cancelled", BatchSealed::Cancelled),
            ("missing", BatchSealed::Missing),
        ];
        word("seal_batch", answer, &known)
    }

    /// Cancels a batch with its callbacks, and a part of its jobs, like [`Broker::cancel`] without force. Repeat the
    /// call until it is complete; otherwise the workers' maintenance continues it.
    ///
    /// # Errors
    /// The server refuses the call; repeat it then.
    #[boxed]
    pub async fn cancel_batch(&self, id: &BatchId, reason: &str) -> Result<BatchCancelled, Error> {
        let call = self.batch_call(Verb::CancelBatch, id);
        let answer = call.arg(reason).arg(MOST_STOPPED).run(&self.conn).await?;
        let known = [
            ("cancelled", BatchCancelled::Cancelled),
            ("going on", BatchCancelled::GoingOn),
            ("ended", BatchCancelled::Ended),
            ("missing", BatchCancelled::Missing),
        ];
        word("cancel_batch", answer, &known)
    }

    /// Sweeps batches. Seals, as failed, batches to which no job was added for their open time. Counts jobs that
    /// foreign workers ended or that were deleted. Continues cancellations, and deletes ended batches beyond
    /// `retention`. Returns the number of handled jobs and batches, and whether there are more.
    ///
    /// # Errors
    /// The server refuses the call; repeat it then.
    #[boxed]
    pub async fn sweep_batches(&self, retention: Retention) -> Result<(usize, bool), Error> {
        let call = self.scripts.call(Verb::SweepBatches);
        let mut answer = call
            .arg(self.clock.argument())
            .arg(MAX_ITEMS)
            .arg(u64::try_from(retention.age.as_millis()).unwrap_or(u64::MAX >> 12))
            .arg(retention.count)
            .answer(&self.conn)
            .await?;
        Ok((answer.next("met")?, answer.flag("more")?))
    }

    /// Begins a call that changes one batch: its hash; the time, the actor, and its id.
    fn batch_call(&self, verb: Verb, id: &BatchId) -> Call<'_> {
        let call = self.scripts.call(verb).key(self.keys.batch(id));
        call.arg(self.clock.argument())
            .arg(&*self.who)
            .arg(id.as_str())
    }
}
