//! A case in a context of each layout, as the ACL user of a runner where the server has one.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use meshwork_broker::{Broker, Clock};
use meshwork_model::keys::context::{ContextId, ContextKeys, ContextLayout};
use meshwork_model::keys::hero::JobKeys;
use redis::aio::ConnectionLike as _;

use crate::cases::harness::engine::as_runner;
use crate::cases::harness::world::{Got, START};
use crate::cases::{Failure, Outcome, World};
use crate::snapshot;

/// Databases for a context of a case that uses the first one: the last database of a shared server, and the last one
/// of an embedded engine.
const OF_NO_CASE: [u32; 2] = [4095, 15];

/// Runs a case in a context of each layout; on a cluster, only of the layout with a prefix. Foreign clients and checks
/// have all rights, Meshwork's verbs those of a runner ([`World::context`]).
pub(crate) async fn in_both(world: &World, case: impl AsyncFn(&World) -> Outcome) -> Outcome {
    for layout in ContextLayout::ALL {
        let Some(context) = world.context(layout).await? else {
            continue;
        };
        let outcome = case(&context).await;
        context.clear().await?;
        outcome.map_err(|failure| Failure::new(format!("{layout}: {failure}")))?;
    }
    Ok(())
}

impl World {
    /// Returns a context with the same clock and scripts, in a database of its own, or with its prefix in the first one.
    /// The verbs are run by the ACL user of a runner, if the server can restrict one to the context. `None` on a
    /// cluster, which has only one database.
    pub(crate) async fn context(&self, layout: ContextLayout) -> Got<Option<Self>> {
        let database = self.raw.get_db() as u32;
        let id = match database {
            0 if self.raw.in_database(OF_NO_CASE[0]).await.is_ok() => OF_NO_CASE[0],
            0 => OF_NO_CASE[1],
            number => number,
        };
        let id = ContextId::new(id).ok_or_else(|| Failure::new("no context"))?;
        let keys = ContextKeys::new(id, layout);
        let raw = match self.raw.in_database(keys.database()).await {
            Err(error) if error.kind() == redis::ErrorKind::InvalidClientConfig => return Ok(None),
            conn => conn?.of_key(keys.prefix()),
        };
        let runner = match &self.url {
            Some(url) => as_runner(&raw, url, &keys).await?,
            None => None,
        };
        let verbs = runner.map_or_else(|| raw.clone(), |conn| conn.of_key(keys.prefix()));
        let broker = Broker::new(verbs, JobKeys::of_context(keys))
            .with_clock(Clock::Manual(Arc::clone(&self.hand)))
            .with_scripts(&self.scripts);
        self.at(START);
        Ok(Some(Self {
            broker,
            raw,
            namespace: String::new(),
            url: self.url.clone(),
            hand: Arc::clone(&self.hand),
            scripts: self.scripts.clone(),
            tokens: AtomicU64::new(0),
            began: self.began,
        }))
    }

    /// Deletes all keys of a context.
    pub(crate) async fn clear(&self) -> Got<()> {
        let keys = snapshot::scan(self.conn(), &format!("{}*", self.keys().prefix())).await?;
        for key in keys {
            let mut del = redis::cmd("DEL");
            del.arg(key)
                .query_async::<()>(&mut self.conn().clone())
                .await?;
        }
        Ok(())
    }
}
