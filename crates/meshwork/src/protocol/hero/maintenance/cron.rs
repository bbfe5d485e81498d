//! Cron: decides the due slots of schedules. Each slot is decided once, by any worker.

use futures_util::future::BoxFuture;
use meshwork_broker::{Broker, Error};

use super::promoter::TICK;
use super::task::{Outcome, Task};

pub(super) struct Cron(Broker);

impl Cron {
    pub(super) fn new(broker: &Broker) -> Self {
        Self(broker.clone())
    }
}

impl Task for Cron {
    fn name(&self) -> &'static str {
        "fire_schedules"
    }

    fn run_once(&mut self) -> BoxFuture<'_, Result<Outcome, Error>> {
        Box::pin(async move {
            let fired = self.0.fire_schedules().await?;
            for (schedule, why) in &fired.troubles {
                tracing::warn!(%schedule, why, "schedule slot not fired: trying again");
            }
            Ok(Outcome {
                worked: fired.due > 0,
                next: fired.next.map(|next| next + TICK),
            })
        })
    }
}
