//! One server for all tests of a test binary, each in a database of its own.

use std::collections::HashMap;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use super::server::RealServer;
use super::tools::{Tool, need, need_for};

/// More than the tests of a binary; an empty database costs a server some hundred bytes.
const DATABASES: u32 = 4096;

struct Shared {
    server: RealServer,
    next: AtomicU32,
}

static REDIS: OnceLock<Shared> = OnceLock::new();
static VALKEY: OnceLock<Shared> = OnceLock::new();

/// An empty database that no other test uses. Pub/sub channels belong to the whole server, and `FLUSHALL` affects all
/// tests.
pub struct FreshDatabase {
    /// The server, which other tests use at the same time.
    pub server: &'static RealServer,
    /// The number of the database.
    pub number: u32,
}

impl FreshDatabase {
    /// Returns the URL of this database.
    #[must_use]
    pub fn url(&self) -> String {
        self.server.url_of(self.number)
    }

    /// Returns the ids of connections to this database whose last command is one of these, as `CLIENT LIST` names them.
    ///
    /// # Errors
    /// The server does not answer.
    pub async fn connections_in(&self, commands: &[&str]) -> redis::RedisResult<Vec<String>> {
        self.connections(commands, "").await
    }

    /// The same, but only those that are blocked in it.
    ///
    /// # Errors
    /// The server does not answer.
    pub async fn blocked_in(&self, commands: &[&str]) -> redis::RedisResult<Vec<String>> {
        self.connections(commands, "b").await
    }

    async fn connections(&self, commands: &[&str], flag: &str) -> redis::RedisResult<Vec<String>> {
        let client = redis::Client::open(self.url())?;
        let mut raw = client.get_multiplexed_async_connection().await?;
        let clients: String = redis::cmd("CLIENT")
            .arg("LIST")
            .query_async(&mut raw)
            .await?;
        let number = self.number.to_string();
        let id = |line: &str| {
            let words = line.split(' ').filter_map(|word| word.split_once('='));
            let words: HashMap<_, _> = words.collect();
            let ours = words.get("db") == Some(&number.as_str());
            let flagged = words.get("flags")?.contains(flag);
            let in_one = commands.contains(words.get("cmd")?);
            (ours && flagged && in_one).then(|| words.get("id").map(|id| (*id).to_owned()))?
        };
        Ok(clients.lines().filter_map(id).collect())
    }
}

/// Returns a fresh database on the shared server of this test binary, which is started at the first call. `None`:
/// this machine lacks it, and the calling `#[test]` has been reported as skipped.
///
/// # Panics
/// In CI if there is no server, for [`Tool::Python`], and after 4096 databases.
#[must_use]
#[track_caller]
pub fn shared(tool: Tool) -> Option<FreshDatabase> {
    need(tool).map(|program| fresh_database(tool, &program))
}

/// Does the same as [`shared`] for custom harnesses, whose threads do not have a test's name.
///
/// # Panics
/// As [`shared`].
#[must_use]
pub fn shared_for(test: &str, tool: Tool) -> Option<FreshDatabase> {
    need_for(test, tool).map(|program| fresh_database(tool, &program))
}

fn fresh_database(tool: Tool, program: &Path) -> FreshDatabase {
    let (cell, options) = match tool {
        Tool::Redis => (&REDIS, RealServer::redis()),
        Tool::Valkey => (&VALKEY, RealServer::valkey()),
        _ => panic!("{} is no server", tool.program()),
    };
    let shared = cell.get_or_init(|| Shared {
        server: RealServer::start(program, options.databases(DATABASES)),
        next: AtomicU32::new(0),
    });
    let number = shared.next.fetch_add(1, Ordering::Relaxed);
    assert!(
        number < DATABASES,
        "no database is left on the shared server"
    );
    FreshDatabase {
        server: &shared.server,
        number,
    }
}
