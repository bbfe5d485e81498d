//! The dependency resolver tells jobs that wait for others how those ended, where the script that ended a prerequisite had
//! no room for all of them.

use futures_util::future::BoxFuture;
use meshwork_broker::{Broker, Error};

use super::task::{Outcome, Task};

pub(super) struct DependencyResolver(Broker);

impl DependencyResolver {
    pub(super) fn new(broker: &Broker) -> Self {
        Self(broker.clone())
    }
}

impl Task for DependencyResolver {
    fn name(&self) -> &'static str {
        "settle"
    }

    fn run_once(&mut self) -> BoxFuture<'_, Result<Outcome, Error>> {
        Box::pin(async move { self.0.settle().await.map(Outcome::more) })
    }
}
