//! Batches: open, seal, cancel and tend them. Jobs come in by `enqueue`, and are counted out by whatever ends
//! them. How a batch stands is told in [`status`].

mod status;

use meshwork_model::batch::{Callback, NewBatch};
use meshwork_model::name::BatchId;

use super::enqueue::{Enqueued, told};
use super::{MAX_ITEMS, Retention, word};
use crate::conn::Conn;
use crate::script::{Call, Verb};
use crate::{Broker, Error};

pub use status::{BatchState, BatchStatus, MAX_BATCHES};

/// The most jobs of a cancelled batch that one call meets: to stop one that waits, its queue is walked over.
const MOST_STOPPED: usize = 100;

/// What became of a batch that was to be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BatchOpened {
    /// It is there, and its callbacks wait.
    Opened,
    /// There is a batch of that id already; nothing was written.
    Exists,
    /// This callback was refused; nothing was written.
    Refused(Callback, Enqueued),
}

/// What became of a batch that was to be sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchSealed {
    /// It is sealed, now or before.
    Sealed,
    /// It has ended already.
    Ended,
    /// It was cancelled.
    Cancelled,
    /// There is no such batch.
    Missing,
}

/// What became of a batch that was to be cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchCancelled {
    /// All its jobs are stopped, or their workers are told.
    Cancelled,
    /// A part of them is; say it again.
    GoingOn,
    /// It had ended already.
    Ended,
    /// There is no such batch.
    Missing,
}

impl Broker {
    /// Opens a batch and stores its callbacks, all in one step. They are there as jobs that wait: `dispatched`,
    /// on no queue. The script that counts out the last job of a batch queues them, so each runs once. With
    /// [`Broker::acknowledge`] it succeeds when replicas have all of it.
    ///
    /// # Errors
    /// If something is wrong with it: nothing was written then. If the server does not take the call; repeat
    /// it then: [`BatchOpened::Exists`] may mean this very one.
    pub async fn open_batch(&self, batch: &NewBatch) -> Result<BatchOpened, Error> {
        batch.check()?;
        for (_, job) in &batch.callbacks {
            job.check()?;
        }
        let open = async |conn: &Conn| {
            let mut call = self.batch_call(Verb::OpenBatch, &batch.id);
            call.push_arg(&batch.name);
            call.push_arg(u64::try_from(batch.open_for.as_millis()).unwrap_or(u64::MAX >> 12));
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
        let verb = "open_batch";
        let Some((kind, why)) = answer.split_once(' ') else {
            return Err(Error::Answer { verb, answer });
        };
        match Callback::ALL
            .into_iter()
            .find(|known| known.as_str() == kind)
        {
            Some(kind) => Ok(BatchOpened::Refused(kind, told(why.to_owned())?)),
            None => Err(Error::Answer { verb, answer }),
        }
    }

    /// Seals a batch: from outside no job comes any more, so it ends with the last of those that it has; at
    /// once if it has none. With [`Broker::acknowledge`] it succeeds when replicas know it.
    ///
    /// # Errors
    /// If the server does not take the call; repeat it then.
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

    /// Cancels a batch with its callbacks, and a part of its jobs, as [`Broker::cancel`] does it without
    /// force. Say it again while it is going on; where nobody does, the workers' duties go on with it.
    ///
    /// # Errors
    /// If the server does not take the call; repeat it then.
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

    /// Looks after batches: one to which nobody has added for as long as it may stay open is sealed, and
    /// counts as failed; jobs that a worker of another make ended, or somebody deleted, are counted out; what
    /// is cancelled goes on; and ended batches beyond `retention` are forgotten. Returns how many jobs and
    /// batches it had to do with, and whether there are more.
    ///
    /// # Errors
    /// If the server does not take the call; repeat it then.
    pub async fn tend_batches(&self, retention: Retention) -> Result<(usize, bool), Error> {
        let call = self.scripts.call(Verb::TendBatches);
        let mut answer = call
            .arg(self.clock.argument())
            .arg(MAX_ITEMS)
            .arg(u64::try_from(retention.age.as_millis()).unwrap_or(u64::MAX >> 12))
            .arg(retention.count)
            .answer(&self.conn)
            .await?;
        Ok((answer.next("met")?, answer.flag("more")?))
    }

    /// A call that changes one batch: its hash; the time, who asks, and its id.
    fn batch_call(&self, verb: Verb, id: &BatchId) -> Call<'_> {
        let call = self.scripts.call(verb).key(self.keys.batch(id));
        call.arg(self.clock.argument())
            .arg(&*self.who)
            .arg(id.as_str())
    }
}
