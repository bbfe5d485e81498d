//! The pruner forgets ended jobs beyond their retention.

use std::time::Duration;

use futures_util::future::BoxFuture;
use meshwork_broker::{Broker, Error, Retention};

use super::task::{Outcome, Task};

/// When it looks again where there was nothing to forget. Retention is days, or a number of jobs that may be passed for so long.
const AGAIN: Duration = Duration::from_secs(10);

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
            Ok(match gone {
                0 => Outcome {
                    worked: false,
                    next: Some(AGAIN),
                },
                _ => Outcome::more(more),
            })
        })
    }
}
