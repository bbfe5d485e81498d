//! Report: tells how runs ended that ended well, many in one call. Batches make themselves, as those of our own jobs do:
//! what is ready goes out at once unless a call is under way, and what becomes ready meanwhile goes with the next one. So
//! a lone job waits for none. Failures are told by [`super::run`], each by itself.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use meshwork_broker::bananas::{Bananas, Claimed, Ended, Finished};
use meshwork_broker::{Error, MAX_ITEMS};
use tokio::sync::oneshot;

/// The most that the results of one call take, in bytes: others wait while the server reads it.
const MOST_BYTES: usize = 4 * 1024 * 1024;

/// What became of a report. A call that failed has failed for all that were in it.
type Told = Result<Finished, Arc<Error>>;

/// What is to be told.
#[derive(Debug, Default)]
pub(super) struct Reports {
    /// At most one for each job that runs.
    ready: Mutex<VecDeque<Ran>>,
    /// Who has it tells what is ready.
    turn: tokio::sync::Mutex<()>,
}

/// A run that ended well.
#[derive(Debug)]
struct Ran {
    claimed: Claimed,
    result: Option<String>,
    took: Duration,
    told: oneshot::Sender<Told>,
}

impl Ran {
    fn bytes(&self) -> usize {
        self.result.as_ref().map_or(0, String::len) + self.claimed.found.bytes()
    }
}

impl Reports {
    /// Ends a job with its result, if it is still this worker's. Of those that are ready one tells all.
    ///
    /// # Errors
    /// As [`Bananas::finish`]; repeat it then.
    pub(super) async fn finish(
        &self,
        broker: &Bananas,
        claimed: &Claimed,
        result: Option<&str>,
        took: Duration,
    ) -> Told {
        let (told, mut hears) = oneshot::channel();
        self.push(Ran {
            claimed: claimed.clone(),
            result: result.map(str::to_owned),
            took,
            told,
        });
        loop {
            tokio::select! {
                biased;
                // Who had the turn may have been cut off.
                told = &mut hears => return told.unwrap_or_else(|_| {
                    Err(Arc::new(Error::timed_out("finish")))
                }),
                _turn = self.turn.lock() => {
                    // Others that run may be about to end too.
                    tokio::task::yield_now().await;
                    tell(broker, self.batch()).await;
                }
            }
        }
    }

    fn push(&self, ran: Ran) {
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        ready.push_back(ran);
    }

    /// Those that go together: the oldest.
    fn batch(&self) -> Vec<Ran> {
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = 0;
        let fits = |ran: &&Ran| {
            let first = bytes == 0;
            bytes += ran.bytes().max(1);
            first || bytes <= MOST_BYTES
        };
        let together = ready.iter().take(MAX_ITEMS).take_while(fits).count();
        ready.drain(..together).collect()
    }
}

/// Tells a batch. One that is refused for good spoils no other: they are told one by one then.
async fn tell(broker: &Bananas, batch: Vec<Ran>) {
    match call(broker, &batch).await {
        Err(error) if !error.is_temporary() && batch.len() > 1 => {
            for ran in batch {
                let told = call(broker, std::slice::from_ref(&ran)).await;
                answer([ran], told);
            }
        }
        told => answer(batch, told),
    }
}

async fn call(broker: &Bananas, batch: &[Ran]) -> Result<Vec<Finished>, Error> {
    let ended = batch.iter().map(|ran| Ended {
        claimed: &ran.claimed,
        result: ran.result.as_deref(),
        took: ran.took,
    });
    broker.finish(&ended.collect::<Vec<_>>()).await
}

fn answer(batch: impl IntoIterator<Item = Ran>, told: Result<Vec<Finished>, Error>) {
    let (told, error) = match told {
        Ok(told) => (told, None),
        Err(error) => (Vec::new(), Some(Arc::new(error))),
    };
    let mut told = told.into_iter();
    for ran in batch {
        let told = match &error {
            Some(error) => Err(Arc::clone(error)),
            None => Ok(told.next().unwrap_or(Finished::Stale)),
        };
        // Whose run was cut off hears nothing.
        let _ = ran.told.send(told);
    }
}
