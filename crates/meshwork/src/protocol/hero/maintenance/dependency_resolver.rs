//! Dependency resolver: notifies dependents of ended prerequisites that the ending script could not notify within its
//! limit.

use futures_util::future::BoxFuture;
use meshwork_broker::{Broker, Error, LeaderTask};

use super::task::{Outcome, Task};

pub(super) struct DependencyResolver(Broker);

impl DependencyResolver {
    pub(super) fn new(broker: &Broker) -> Self {
        Self(broker.clone())
    }
}

impl Task for DependencyResolver {
    fn name(&self) -> &'static str {
        LeaderTask::ResolveDependents.as_str()
    }

    fn run_once(&mut self) -> BoxFuture<'_, Result<Outcome, Error>> {
        Box::pin(async move { self.0.resolve_dependents().await.map(Outcome::more) })
    }
}
