//! Connections of PostgreSQL that are not what they seem: those of a pooler, silent ones, and those of a relay that is stopped.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use meshwork::{Client, JobRequest};
use meshwork_test_servers::servers::{RealPgBouncer, RealPostgres};
use sqlx::Postgres;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};

use super::Ground;
use crate::database::Dialect;
use crate::{Outbox, Relay};

/// Bound of each wait.
const PATIENCE: Duration = Duration::from_secs(60);

/// A store, and the tables of a schema behind a pooler in this mode.
async fn behind_pooler(
    test: &'static str,
    mode: &'static str,
) -> Option<(Ground<Postgres>, RealPgBouncer)> {
    let start = move || {
        let server = RealPostgres::shared_for(test)?;
        RealPgBouncer::start_for(test, server, mode)
    };
    let pooler = tokio::task::spawn_blocking(start).await.unwrap()?;
    let options: PgConnectOptions = pooler.url().parse().unwrap();
    // A pooler refuses settings at the start of a connection that it does not know.
    let pool = PgPoolOptions::new().max_connections(8);
    let pool = pool.connect_lazy_with(options.extra_float_digits(None));
    let outbox = Outbox::in_schema(test).unwrap();
    outbox.migrate(&pool).await.unwrap();
    let ground = Ground {
        pool,
        outbox,
        client: Client::in_memory(),
        _home: (),
    };
    Some((ground, pooler))
}

impl Ground<Postgres> {
    /// Waits until a job is stored.
    async fn stored(&self, id: &meshwork::JobId) {
        let stored = async {
            while self.client.status(id).await.is_err() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, stored).await.unwrap();
    }
}

/// Runs a relay until the returned sender is dropped.
fn running(
    relay: Relay<Postgres>,
) -> (
    oneshot::Sender<()>,
    tokio::task::JoinHandle<Result<(), crate::Error>>,
) {
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(relay.run_until(async { drop(stopped.await) }));
    (stop, running)
}

/// A client that prepares statements with names, as others do, shares the connections with two relays and a program.
#[tokio::test]
async fn transactions_share_connections() {
    let Some((ground, _pooler)) = behind_pooler("pooled_transactions", "transaction").await else {
        return;
    };
    let relay = || running(ground.relay().poll(Duration::from_millis(50)));
    let relays = [relay(), relay()];
    let others = tokio::spawn({
        let pool = ground.pool.clone();
        async move {
            loop {
                // It fails once a server has a statement of that name.
                let named = sqlx::query_scalar::<_, i64>("SELECT $1::bigint").bind(7_i64);
                named.fetch_one(&pool).await.ok();
            }
        }
    });
    for order in 0..300 {
        ground.commit(order).await;
    }
    let all = async {
        while ground.rows().await.0 > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, all).await.unwrap();
    others.abort();
    for (stop, relay) in relays {
        drop(stop);
        relay.await.unwrap().unwrap();
    }
    assert_eq!(ground.orders().await, (0..300).collect::<Vec<_>>());
    assert_eq!(ground.rows().await, (0, 0));
    ground
        .change("INSERT INTO ROWS (id, job) VALUES ('bad', 'no job')")
        .await;
    ground.relay().drain().await.unwrap();
    let rows = ground.outbox.errors(&ground.pool, None).await.unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!(ground.outbox.retry(&ground.pool, None).await.unwrap(), 1);
    let ids = ["bad".to_owned()];
    assert_eq!(ground.outbox.delete(&ground.pool, &ids).await.unwrap(), 1);
    let mut tx = ground.pool.begin().await.unwrap();
    assert!(ground.outbox.first_time(&mut tx, "j").await.unwrap());
    tx.commit().await.unwrap();
    let age = Duration::ZERO;
    assert_eq!(
        ground
            .outbox
            .prune_processed(&ground.pool, age)
            .await
            .unwrap(),
        1
    );
    let examined = ground.outbox.examine(&ground.pool).await.unwrap();
    assert!(
        examined.remarks.iter().any(|it| it.contains("pooler")),
        "{examined:?}"
    );
}

/// A pooler that gives each client a connection passes notifications.
#[tokio::test]
async fn sessions_have_their_connections() {
    let Some((ground, _pooler)) = behind_pooler("pooled_sessions", "session").await else {
        return;
    };
    let examined = ground.outbox.examine(&ground.pool).await.unwrap();
    assert_eq!(examined.remarks, [""; 0]);
    let (stop, relay) = running(ground.relay().poll(Duration::from_secs(3600)));
    for order in 0..3 {
        let id = ground.commit(order).await.id;
        ground.stored(&id).await;
    }
    drop(stop);
    relay.await.unwrap().unwrap();
}

/// Starts a proxy. Connections that it has when the sender changes become silent, and stay open.
async fn proxy(server: SocketAddr) -> (SocketAddr, watch::Sender<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let here = listener.local_addr().unwrap();
    let (mute, muted) = watch::channel(());
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let mut server = TcpStream::connect(server).await.unwrap();
            let mut muted = muted.clone();
            muted.mark_unchanged();
            tokio::spawn(async move {
                tokio::select! {
                    _ = tokio::io::copy_bidirectional(&mut client, &mut server) => {}
                    _ = muted.changed() => std::future::pending().await,
                }
            });
        }
    });
    (here, mute)
}

/// A network that forgets a connection tells neither end. The relay notices it, and listens again.
#[tokio::test]
async fn a_silent_connection_is_noticed() {
    let Some(ground) = Ground::<Postgres>::new("silent_connection").await else {
        return;
    };
    let options = (*ground.pool.connect_options()).clone();
    let server = format!("{}:{}", options.get_host(), options.get_port());
    let (at, mute) = proxy(server.parse().unwrap()).await;
    // The connection of its batches is direct, that for notifications goes through the proxy.
    let direct = PgPoolOptions::new().max_connections(1);
    let direct = direct.idle_timeout(None).max_lifetime(None);
    let direct = direct.connect_with(options.clone()).await.unwrap();
    direct.set_connect_options(options.port(at.port()));
    let relay = Relay::new(&direct, &ground.client).outbox(&ground.outbox);
    let mut relay = relay.poll(Duration::from_secs(3600));
    relay.probe = Duration::from_secs(1);
    let (stop, relay) = running(relay);
    for order in 0..4 {
        let id = ground.commit(order).await.id;
        ground.stored(&id).await;
        mute.send_replace(());
    }
    drop(stop);
    relay.await.unwrap().unwrap();
}

/// Text that is logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn times(&self, text: &str) -> usize {
        let log = self.0.lock().unwrap();
        String::from_utf8_lossy(&log).matches(text).count()
    }

    /// Waits until a text is logged.
    async fn says(&self, text: &str) {
        let said = async {
            while self.times(text) == 0 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, said).await.unwrap();
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A role with few connections has none for the question whether there is a pooler. The relay says so once, and asks again.
#[tokio::test]
async fn notifications_begin_when_there_are_connections() {
    let Some(ground) = Ground::<Postgres>::new("few_connections").await else {
        return;
    };
    for sql in [
        "CREATE ROLE few LOGIN PASSWORD 'few' CONNECTION LIMIT 2",
        "GRANT USAGE ON SCHEMA few_connections TO few",
        "GRANT ALL ON ALL TABLES IN SCHEMA few_connections TO few",
    ] {
        ground.change(sql).await;
    }
    let options = (*ground.pool.connect_options()).clone();
    let one = PgPoolOptions::new().max_connections(1);
    let one = one.idle_timeout(None).max_lifetime(None);
    let one = one.connect_with(options.username("few").password("few"));
    let one = one.await.unwrap();
    let log = Log::default();
    let written = log.clone();
    let lines = tracing_subscriber::fmt().with_writer(move || written.clone());
    let _logged = tracing::subscriber::set_default(lines.finish());
    let relay = Relay::new(&one, &ground.client).outbox(&ground.outbox);
    let (stop, relay) = running(relay.poll(Duration::from_secs(3600)));
    log.says("outbox notifications interrupted").await;
    ground.change("ALTER ROLE few CONNECTION LIMIT 8").await;
    log.says("outbox notifications are heard again").await;
    for order in 0..2 {
        let id = ground.commit(order).await.id;
        ground.stored(&id).await;
    }
    assert_eq!(log.times("outbox notifications interrupted"), 1);
    drop(stop);
    relay.await.unwrap().unwrap();
}

/// The server ends the transaction of a relay that gives no sign of life; one that waits for the store gives some.
#[tokio::test]
async fn a_frozen_relay_frees_its_rows() {
    let Some(ground) = Ground::<Postgres>::new("frozen_relay").await else {
        return;
    };
    let mut holds = HashMap::new();
    for order in 0..2 {
        ground.commit(order).await;
        let relay = ground.relay();
        let claimed = relay.claim(7).await.unwrap().rows;
        let (hold, held) = relay.hold(&claimed).await.unwrap();
        assert_eq!(held.len(), 1);
        holds.insert(order, hold);
    }
    let mut kept = holds.remove(&1).unwrap();
    let other = ground.relay();
    let freed = async {
        loop {
            let rows = other.claim(8).await.unwrap().rows;
            if !rows.is_empty() {
                return rows;
            }
        }
    };
    let freed = tokio::time::timeout(PATIENCE, freed);
    let rows = tokio::select! {
        rows = freed => rows.unwrap(),
        never = Postgres::keep(&mut kept) => match never {},
    };
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].earlier_ms, Some(7));
    // The frozen one wakes, and writes nothing.
    let late = holds.remove(&0).unwrap();
    let sent = crate::database::Sent {
        stored: vec![rows[0].id.clone()],
        refused: Vec::new(),
    };
    assert!(Postgres::settle(late, &sent).await.is_err());
    assert_eq!(ground.rows().await, (2, 0));
}

/// A row of three fields, as any program can write it.
#[tokio::test]
async fn the_smallest_row_is_a_job() {
    let Some(ground) = Ground::<Postgres>::new("smallest_row").await else {
        return;
    };
    let row = r#"{"type":"pay","script":"{\"order\":7}"}"#;
    Outbox::check_row("small", row).unwrap();
    ground
        .change(&format!(
            "INSERT INTO ROWS (id, job) VALUES ('small', '{row}')"
        ))
        .await;
    ground.relay().drain().await.unwrap();
    assert_eq!(ground.orders().await, [7]);
    let job = ground
        .client
        .status(&"small".parse().unwrap())
        .await
        .unwrap();
    let usual = JobRequest::new("pay".parse().unwrap(), "{}")
        .build()
        .unwrap();
    assert_eq!((job.timeout, job.retries), (usual.timeout, usual.retries));
    for (id, job, part) in [
        ("..", row, "step of a path"),
        ("a", "{}", "type"),
        (
            "a",
            r#"{"type":"pay","script":"1","timeout":"9"}"#,
            "invalid type",
        ),
        ("a", r#"{"type":"pay","script":"1","color":1}"#, "`color`"),
        ("a", r#"{"type":"pay","script":"1","timeout":0}"#, "timeout"),
    ] {
        let error = Outbox::check_row(id, job).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}
