//! Batch monitor: seals abandoned batches, counts jobs that ended without a report, continues cancellations, and
//! deletes old batches.

use futures_util::future::BoxFuture;
use meshwork_broker::{Broker, Error, LeaderTask, Retention};

use super::task::{Outcome, Task};

pub(super) struct BatchMonitor {
    broker: Broker,
    retention: Retention,
}

impl BatchMonitor {
    pub(super) fn new(broker: &Broker, retention: Retention) -> Self {
        let broker = broker.clone();
        Self { broker, retention }
    }
}

impl Task for BatchMonitor {
    fn name(&self) -> &'static str {
        LeaderTask::SweepBatches.as_str()
    }

    fn run_once(&mut self) -> BoxFuture<'_, Result<Outcome, Error>> {
        Box::pin(async move {
            let (_met, more) = self.broker.sweep_batches(self.retention).await?;
            Ok(Outcome::more(more))
        })
    }
}
