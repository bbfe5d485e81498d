//! Pruner: deletes ended jobs after their retention.

use futures_util::future::BoxFuture;
use meshwork_broker::{Broker, Error, Retention};

use super::task::{Outcome, Task};

pub(super) struct Pruner {
    broker: Broker,
    retention: Retention,
}

impl Pruner {
    pub(super) fn new(broker: &Broker, retention: Retention) -> Self {
        let broker = broker.clone();
        Self { broker, retention }
    }
}

impl Task for Pruner {
    fn name(&self) -> &'static str {
        "prune"
    }

    fn run_once(&mut self) -> BoxFuture<'_, Result<Outcome, Error>> {
        Box::pin(async move {
            let (gone, more) = self.broker.prune(self.retention).await?;
            Ok(Outcome::more(gone > 0 && more))
        })
    }
}
