//! `meshwork worker --spread`: a worker, with its runner, for each part of the spread queues of its types. Parts that are
//! added later are served, too.

use std::collections::BTreeSet;
use std::time::Duration;

use meshwork::context::{ContextId, Identity, Node};
use meshwork::spread::{SpreadLayout, SpreadName};
use meshwork::{Client, Worker, WorkerPool};
use meshwork_model::name::ScriptType;

use super::in_contexts::{self, Started};
use crate::error::CommandError;
use crate::scope::ActorArgs;

/// Time between two looks at the registry of spread queues.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Workers of the parts of spread queues.
pub(super) struct InParts {
    me: Identity,
    node: Node,
    types: Vec<ScriptType>,
    pool: WorkerPool,
    pub(super) started: Vec<Started>,
}

impl InParts {
    /// Opens the connections. Starts no worker.
    pub(super) async fn open(
        client: &Client,
        actor: &ActorArgs,
        types: Vec<ScriptType>,
        concurrency: usize,
    ) -> Result<Self, CommandError> {
        let (node, me) = actor.identity().create(client).await?;
        // Parts have the layout `prefix`, which needs no database of its own.
        let pool = WorkerPool::open(&node, &[], concurrency).await?;
        let started = Vec::new();
        Ok(Self {
            me,
            node,
            types,
            pool,
            started,
        })
    }

    /// Starts a worker in each part that has none, and ends moves of keys that are over.
    pub(super) async fn look(
        &mut self,
        worker: impl Fn(&Client) -> Result<Worker, CommandError>,
    ) -> Result<(), CommandError> {
        let spreads = self.spreads().await?;
        let parts = spreads.iter().flat_map(|(_, layout)| &layout.parts);
        let parts: BTreeSet<ContextId> = parts.copied().collect();
        let mut missing = Vec::new();
        for id in parts {
            if !self.started.iter().any(|one| one.context == id) {
                missing.push(self.node.context(id).await?);
            }
        }
        if !missing.is_empty() {
            let pool = Some(&self.pool);
            let which = (&self.types[..], None, pool);
            let started = in_contexts::start_in(&self.me, &missing, which, worker).await?;
            self.started.extend(started);
        }
        for (name, layout) in &spreads {
            if layout.previous.is_some() {
                self.node.settle_spread(name).await?;
            }
        }
        Ok(())
    }

    /// Returns the spread queues of the types.
    async fn spreads(&self) -> Result<Vec<(SpreadName, SpreadLayout)>, CommandError> {
        let mut spreads = self.node.spreads().await?;
        spreads.retain(|(name, _)| self.types.contains(name.script_type()));
        Ok(spreads)
    }
}
