//! A real master, a replica and three sentinels that watch them, on loopback.

use std::collections::HashMap;
use std::time::Duration;

use super::options::{ServerOptions, Watched};
use super::server::RealServer;
use super::tools::need;
use crate::eventually;

/// Number of sentinels: two of them agree on a failover.
const SENTINELS: usize = 3;
/// Longest wait until the servers know each other.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// Name of the master and its replica at the sentinels.
const SERVICE: &str = "main";

/// A master with a replica and their sentinels, killed when dropped.
pub struct RealSentinels {
    /// The first master and its replica.
    servers: Vec<RealServer>,
    sentinels: Vec<RealServer>,
}

impl RealSentinels {
    /// Starts the servers. `password` is that of the sentinels. Returns `None` if this machine lacks the server; the
    /// calling test has then been reported as skipped.
    ///
    /// # Panics
    /// They do not find each other; in CI, there is no server.
    pub async fn start(options: ServerOptions, password: Option<&str>) -> Option<Self> {
        let program = need(options.tool)?;
        let mut options = options.args(&["--repl-diskless-sync-delay", "0"]);
        if let Some(password) = options.password.clone() {
            options = options.args(&["--masterauth", &password]);
        }
        let master = RealServer::start(&program, options.clone());
        let port = master.port().to_string();
        let replica = options.clone().args(&["--replicaof", "127.0.0.1", &port]);
        let replica = RealServer::start(&program, replica);
        eventually("the replica follows", START_TIMEOUT, async || {
            (replica.info("master_link_status")? == "up").then_some(())
        })
        .await;
        let mut watching = ServerOptions::new(options.tool);
        watching.password = password.map(str::to_owned);
        let watching = watching.sentinel(Watched {
            service: SERVICE.to_owned(),
            port: master.port(),
            password: options.password.clone(),
        });
        let sentinel = |_| RealServer::start(&program, watching.clone());
        let sentinels = Self {
            sentinels: (0..SENTINELS).map(sentinel).collect(),
            servers: vec![master, replica],
        };
        sentinels.wait_until_acquainted().await;
        Some(sentinels)
    }

    /// Waits until each sentinel knows the replica and the other sentinels: a failover is possible.
    async fn wait_until_acquainted(&self) {
        for sentinel in &self.sentinels {
            eventually("the sentinels know each other", START_TIMEOUT, async || {
                let master: HashMap<String, String> =
                    sentinel.say(&["SENTINEL", "MASTER", SERVICE]).ok()?;
                let is = |name: &str, number: &str| master.get(name).is_some_and(|n| n == number);
                (is("num-slaves", "1") && is("num-other-sentinels", "2")).then_some(())
            })
            .await;
        }
    }

    /// Returns the URL, with `rest` after the service's name, such as `/1`.
    #[must_use]
    pub fn url(&self, rest: &str) -> String {
        let hosts = self.sentinels.iter().map(RealServer::host);
        let hosts = Vec::from_iter(hosts).join(",");
        let login = self.servers[0].login();
        format!("redis+sentinel://{login}{hosts}/{SERVICE}{rest}")
    }

    /// Returns the sentinels.
    #[must_use]
    pub fn sentinels(&self) -> &[RealServer] {
        &self.sentinels
    }

    /// Returns the first master, and its replica.
    #[must_use]
    pub fn servers(&self) -> &[RealServer] {
        &self.servers
    }

    /// Returns one of [`Self::servers`], to kill or start it.
    #[must_use]
    pub fn server_mut(&mut self, at: usize) -> &mut RealServer {
        &mut self.servers[at]
    }
}
