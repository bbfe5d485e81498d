//! A server with jobs of Bananas, and what another program would see there.

use std::time::Duration;

use meshwork::protocol::bananas::{Client, Worker};
use meshwork_test_servers::eventually;
use meshwork_test_servers::servers::{FreshDatabase, Tool, shared};

/// Timeout of each step, also on a busy machine.
pub(crate) const BOUND: Duration = Duration::from_secs(60);
/// A lease that tests can wait for.
pub(crate) const LEASE: Duration = Duration::from_secs(1);

/// A database of its own.
pub(crate) struct Ground {
    pub(crate) client: Client,
    database: FreshDatabase,
}

impl Ground {
    pub(crate) async fn open() -> Option<Self> {
        let database = shared(Tool::Redis)?;
        let client = Client::open(&database.url()).await;
        Some(Self {
            client: client.expect("the server takes connections"),
            database,
        })
    }

    pub(crate) fn url(&self) -> String {
        self.database.url()
    }

    /// A worker with the handler `echo`, which gives what it is given, and `fail`.
    pub(crate) fn worker(&self) -> Worker {
        let echo = async |value: serde_json::Value, _: meshwork::runtime::JobContext| {
            Ok::<_, String>(value)
        };
        let fail = async |(): (), _: meshwork::runtime::JobContext| Err::<(), _>("boom");
        Worker::new(&self.client)
            .handle("echo", echo)
            .handle("fail", fail)
            .lease(LEASE)
    }

    /// A connection as any program has it.
    pub(crate) async fn raw(&self) -> redis::aio::MultiplexedConnection {
        let client = redis::Client::open(self.url()).expect("the address is one");
        // Calls that block take longer than the bound that connections have.
        let config = redis::AsyncConnectionConfig::new().set_response_timeout(None);
        let raw = client.get_multiplexed_async_connection_with_config(&config);
        let raw = raw.await;
        raw.expect("the server takes connections")
    }

    pub(crate) async fn say<T: redis::FromRedisValue>(&self, words: &[&str]) -> T {
        let mut cmd = redis::Cmd::new();
        let said = cmd.arg(words).query_async(&mut self.raw().await).await;
        said.unwrap_or_else(|error| panic!("{words:?}: {error}"))
    }

    /// A record and its id, as any client writes them.
    pub(crate) async fn put(&self, list: &str, id: &str, record: &str) {
        self.say::<()>(&["SET", &format!("bananas:job:{id}"), record])
            .await;
        self.say::<()>(&["LPUSH", list, id]).await;
    }

    /// A field of a result, when it is there.
    pub(crate) async fn result(&self, id: &str, field: &str) -> String {
        let key = format!("bananas:result:{id}");
        eventually("there is a result", BOUND, async || {
            self.say::<Option<String>>(&["HGET", &key, field]).await
        })
        .await
    }

    /// Returns when nothing runs.
    pub(crate) async fn quiet(&self) {
        eventually("nothing runs", BOUND, async || {
            let running: usize = self.say(&["LLEN", "bananas:queue:processing"]).await;
            let held: usize = self.say(&["HLEN", "bananas:mw:held"]).await;
            let leases: usize = self.say(&["ZCARD", "bananas:mw:lease"]).await;
            (running + held + leases == 0).then_some(())
        })
        .await;
    }

    /// Returns Meshwork's keys, except those that stay: served routes and counters.
    pub(crate) async fn left(&self) -> Vec<String> {
        let mut left: Vec<String> = self.say(&["KEYS", "bananas:mw:*"]).await;
        left.retain(|key| !key.ends_with(":routes") && !key.ends_with(":stats"));
        left
    }

    /// Number of connections that wait for an id in this database.
    pub(crate) async fn waiting(&self) -> usize {
        self.database.blocked_in(&["blmove"]).await.unwrap().len()
    }

    /// The ids of the connections to this database that stand in this command.
    pub(crate) async fn connections(&self, command: &str) -> Vec<String> {
        self.database.connections_in(&[command]).await.unwrap()
    }

    pub(crate) async fn record(&self, id: &str) -> String {
        self.say(&["GET", &format!("bananas:job:{id}")]).await
    }
}
