//! Notifications about new rows, which wake the relay. Polling finds the rows whose notification is lost.

use std::collections::HashSet;
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use meshwork_broker::Backoff;
use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use sqlx::{ConnectOptions, Connection, PgConnection, PgPool, Row};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tracing::{debug, info, warn};

use crate::Error;

/// Order in which two connections ask for their servers: no rotation of a pooler gives each always the same one.
const TURNS: [usize; 8] = [0, 1, 1, 0, 0, 1, 1, 0];

/// Listens on a connection of its own until the returned set is dropped. A connection that says nothing for `probe` is
/// probed.
pub(super) fn listen(
    pool: &PgPool,
    channel: String,
    wakeup: Arc<Notify>,
    probe: Duration,
) -> JoinSet<Error> {
    let options = pool.connect_options();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let (mut backoff, mut is_said, mut is_direct) = (Backoff::new(), false, false);
        loop {
            let error = match is_direct {
                false => match within(probe, is_pooled(&options)).await {
                    Ok(true) => {
                        info!(
                            "the database is behind a pooler, which passes no notifications: outbox rows are found by polling"
                        );
                        return std::future::pending().await;
                    }
                    Ok(false) => {
                        is_direct = true;
                        continue;
                    }
                    Err(error) => error,
                },
                true => {
                    let heard = receive(&options, &channel, &wakeup, probe, &mut backoff, &mut is_said);
                    let Err(error) = heard.await;
                    error
                }
            };
            match std::mem::replace(&mut is_said, true) {
                false => warn!(%error, "outbox notifications interrupted: rows are found by polling"),
                true => debug!(%error, "outbox notifications interrupted"),
            }
            backoff.wait().await;
        }
    });
    tasks
}

/// Returns true if a pooler gives each transaction another connection: two clients at once are served by one process, or one by
/// two.
pub(super) async fn is_pooled(options: &PgConnectOptions) -> Result<bool, sqlx::Error> {
    let mut clients = [options.connect().await?, options.connect().await?];
    let mut servers = [HashSet::new(), HashSet::new()];
    for at in TURNS {
        servers[at].insert(server(&mut clients[at]).await?);
    }
    for client in clients {
        client.close().await.ok();
    }
    let [first, second] = &servers;
    Ok(!first.is_disjoint(second) || first.len() > 1 || second.len() > 1)
}

/// Number of the process that serves a connection.
async fn server(connection: &mut PgConnection) -> Result<i32, sqlx::Error> {
    let pid = sqlx::raw_sql("SELECT pg_backend_pid()").fetch_one(connection);
    pid.await?.try_get(0)
}

async fn receive(
    options: &PgConnectOptions,
    channel: &str,
    wakeup: &Notify,
    probe: Duration,
    backoff: &mut Backoff,
    is_said: &mut bool,
) -> Result<Infallible, sqlx::Error> {
    // A pool for each attempt: a connection that went silent would keep its place for a long time.
    let own = PgPoolOptions::new()
        .max_connections(1)
        .max_lifetime(None)
        .idle_timeout(None)
        .acquire_timeout(probe)
        .connect_lazy_with(options.clone());
    let mut listener = PgListener::connect_with(&own).await?;
    listener.eager_reconnect(false);
    listener.listen(channel).await?;
    *backoff = Backoff::new();
    if std::mem::take(is_said) {
        info!("outbox notifications are heard again");
    }
    // Rows of the time before have no notification.
    wakeup.notify_one();
    loop {
        match timeout(probe, listener.try_recv()).await {
            Ok(heard) => match heard? {
                Some(_) => wakeup.notify_one(),
                None => return Err(io::Error::from(io::ErrorKind::ConnectionReset).into()),
            },
            Err(_) => check(&mut listener, probe).await?,
        }
    }
}

/// Asks the server whether the connection listens. The answer has to come within `bound`.
async fn check(listener: &mut PgListener, bound: Duration) -> Result<(), sqlx::Error> {
    let channels = sqlx::raw_sql("SELECT pg_listening_channels()").fetch_optional(listener);
    match within(bound, channels).await? {
        Some(_) => Ok(()),
        None => Err(io::Error::from(io::ErrorKind::NotConnected).into()),
    }
}

/// Returns the answer of a server, or an error if it does not come within `bound`.
async fn within<T>(
    bound: Duration,
    answer: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, sqlx::Error> {
    let answer = timeout(bound, answer).await;
    answer.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut).into()))
}
