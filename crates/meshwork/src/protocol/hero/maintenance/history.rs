//! History: copies the counters of queues once an hour.

use std::time::Duration;

use futures_util::future::BoxFuture;
use meshwork_broker::{Broker, Error, KnownQueues};

use super::task::{Outcome, Task};

/// Longest pause between two runs, after which new queues become known.
const EVERY: Duration = Duration::from_secs(60);
/// Pause while lists with counters are searched for.
const SEARCH_EVERY: Duration = Duration::from_secs(5);

pub(super) struct History {
    broker: Broker,
    known: KnownQueues,
}

impl History {
    pub(super) fn new(broker: &Broker) -> Self {
        let broker = broker.clone();
        let known = KnownQueues::default();
        Self { broker, known }
    }
}

impl Task for History {
    fn name(&self) -> &'static str {
        "copy_counters"
    }

    fn run_once(&mut self) -> BoxFuture<'_, Result<Outcome, Error>> {
        Box::pin(async move {
            let copied = self.broker.record_history(&mut self.known).await?;
            let pause = match copied.all_known {
                true => EVERY,
                false => SEARCH_EVERY,
            };
            let next = match copied.more {
                true => Duration::ZERO,
                false => copied.next_hour.min(pause),
            };
            Ok(Outcome {
                worked: copied.more,
                next: Some(next),
            })
        })
    }
}
