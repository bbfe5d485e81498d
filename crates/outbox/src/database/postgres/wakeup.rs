//! Notifications about new rows, which wake the relay.

use std::sync::Arc;

use meshwork_broker::Backoff;
use sqlx::PgPool;
use sqlx::postgres::{PgListener, PgPoolOptions};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tracing::debug;

/// Listens on a connection of its own until the returned set is dropped. Polling finds the rows whose notification is
/// lost while the connection is down.
pub(super) fn listen(pool: &PgPool, channel: &str, wakeup: &Arc<Notify>) -> JoinSet<()> {
    let options = pool.connect_options();
    let own = PgPoolOptions::new()
        .max_connections(1)
        .max_lifetime(None)
        .idle_timeout(None)
        .connect_lazy_with((*options).clone());
    let (channel, wakeup) = (channel.to_owned(), Arc::clone(wakeup));
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut backoff = Backoff::new();
        loop {
            if let Err(error) = receive(&own, &channel, &wakeup, &mut backoff).await {
                debug!(%error, "outbox notifications interrupted");
            }
            backoff.wait().await;
        }
    });
    tasks
}

async fn receive(
    pool: &PgPool,
    channel: &str,
    wakeup: &Notify,
    backoff: &mut Backoff,
) -> Result<(), sqlx::Error> {
    let mut listener = PgListener::connect_with(pool).await?;
    listener.listen(channel).await?;
    *backoff = Backoff::new();
    loop {
        // Also after the connection was made again: rows of the time between have no notification.
        wakeup.notify_one();
        listener.try_recv().await?;
    }
}
