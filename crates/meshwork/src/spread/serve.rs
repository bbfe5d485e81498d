//! Workers of all parts of a spread queue.

use std::time::Duration;

use meshwork_model::access::{Object, Operation};
use meshwork_model::keys::context::ContextId;

use super::{Spread, SpreadError, part_of};
use crate::{Client, Worker, WorkerHandle, WorkerPool};

/// Time between two looks at the layout.
const LOOK_EVERY: Duration = Duration::from_secs(2);

impl Spread {
    /// Runs a worker in each part, also in parts that are added later, until `shutdown` returns. They share connections and
    /// `concurrency` slots. `worker` makes the worker of a part over its client. A change of the layout takes effect within
    /// 2 s.
    ///
    /// ```
    /// # use meshwork::spread::{Spread, SpreadError};
    /// # use meshwork::{Job, JobError, Worker, shutdown_signal};
    /// # use serde::{Deserialize, Serialize};
    /// #[derive(Serialize, Deserialize, Job)]
    /// struct Pay { order: u64 }
    ///
    /// async fn pay(job: Pay) -> Result<(), JobError> {
    ///     println!("{}", job.order);
    ///     Ok(())
    /// }
    ///
    /// # async fn run(spread: Spread) -> Result<(), SpreadError> {
    /// let worker = |client: &meshwork::Client| Worker::new(client).job(pay);
    /// spread.run_until(10, worker, shutdown_signal()).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The first workers cannot be started: the actor may not pop queues in a part, or a call to the server fails. Later
    /// failures are logged and tried again.
    pub async fn run_until(
        &self,
        concurrency: usize,
        worker: impl Fn(&Client) -> Worker,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), SpreadError> {
        let pool = WorkerPool::open(&self.state.node, &[], concurrency).await?;
        let mut started: Vec<(ContextId, WorkerHandle)> = Vec::new();
        let first = self.start_missing(&pool, &worker, &mut started).await;
        let mut shutdown = std::pin::pin!(shutdown);
        let mut looks = tokio::time::interval(LOOK_EVERY);
        looks.reset();
        while first.is_ok() {
            tokio::select! {
                () = &mut shutdown => break,
                _ = looks.tick() => {}
            }
            if let Err(error) = self.look(&pool, &worker, &mut started).await {
                tracing::warn!(%error, queue = %self.name(), "parts of the spread queue");
            }
        }
        let stops = started.into_iter().map(|(_, worker)| worker.stop());
        futures_util::future::join_all(stops).await;
        first
    }

    /// Reads the layout, starts workers in new parts, and ends a move of keys that is over.
    async fn look(
        &self,
        pool: &WorkerPool,
        worker: &impl Fn(&Client) -> Worker,
        started: &mut Vec<(ContextId, WorkerHandle)>,
    ) -> Result<(), SpreadError> {
        let opened = self.reopen().await?;
        self.start_missing(pool, worker, started).await?;
        if opened.layout.previous.is_some() {
            self.state.node.settle_spread(self.name()).await?;
        }
        Ok(())
    }

    async fn start_missing(
        &self,
        pool: &WorkerPool,
        worker: &impl Fn(&Client) -> Worker,
        started: &mut Vec<(ContextId, WorkerHandle)>,
    ) -> Result<(), SpreadError> {
        for id in &self.opened().layout.parts {
            if started.iter().any(|(known, _)| known == id) {
                continue;
            }
            let part = part_of(&self.state.node, *id).await?.over(pool.node());
            let (object, operation) = (Object::Queue, Operation::Pop);
            let client = part.client(&self.state.me, object, operation).await?;
            started.push((*id, worker(&client).pool(pool).start().await?));
        }
        Ok(())
    }
}
