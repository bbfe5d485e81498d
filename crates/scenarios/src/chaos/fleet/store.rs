//! The store of a fleet, and its troubles. It is a server that writes every command to its disk before it answers, or
//! a master whose replica takes over through sentinels.

use std::time::Duration;

use crate::chaos::ChaosError;
use meshwork_test_servers::eventually;
use meshwork_test_servers::servers::{RealSentinels, RealServer, Tool};

/// Name of the master at the sentinels.
const SERVICE: &str = "main";
/// Timeout of a failover, with sentinels that notice a lost master after a second.
const PATIENCE: Duration = Duration::from_secs(60);

/// One or several servers.
pub(super) enum Store {
    Single(Box<RealServer>),
    Watched {
        sentinels: RealSentinels,
        wait: bool,
    },
}

impl Store {
    pub(super) fn single() -> Result<Self, ChaosError> {
        let server = RealServer::redis().append_only().start_for("chaos");
        server
            .map(|server| Self::Single(Box::new(server)))
            .ok_or(ChaosError::Missing(Tool::Redis.program()))
    }

    /// Starts a master, a replica and sentinels. With `wait`, clients take a job for stored when the replica has it
    /// too.
    pub(super) async fn watched(wait: bool) -> Result<Self, ChaosError> {
        let sentinels = RealSentinels::start(RealServer::redis().append_only(), None).await;
        let sentinels = sentinels.ok_or(ChaosError::Missing(Tool::Redis.program()))?;
        Ok(Self::Watched { sentinels, wait })
    }

    pub(super) fn has_replica(&self) -> bool {
        matches!(self, Self::Watched { .. })
    }

    /// Returns the URL for workers.
    pub(super) fn url(&self) -> String {
        match self {
            Self::Single(server) => server.url(),
            Self::Watched { sentinels, .. } => sentinels.url(""),
        }
    }

    /// Returns the URL for submitters.
    pub(super) fn submit_url(&self) -> String {
        match self {
            Self::Watched {
                sentinels,
                wait: true,
            } => sentinels.url("?wait_replicas=1&wait_timeout_ms=1000"),
            _ => self.url(),
        }
    }

    /// Kills the server with `kill -9`.
    pub(super) fn kill(&mut self) {
        if let Self::Single(server) = self {
            server.kill9();
        }
    }

    /// Starts the server again after a kill.
    pub(super) fn start_again(&mut self) {
        if let Self::Single(server) = self {
            server.start_again();
        }
    }

    /// Stops and starts the server in order.
    pub(super) fn restart(&mut self) {
        if let Self::Single(server) = self {
            server.restart();
        }
    }

    /// Makes the server's memory full, or frees it.
    pub(super) fn fill(&mut self, full: bool) -> Result<(), ChaosError> {
        let Self::Single(server) = self else {
            return Ok(());
        };
        let bytes = if full { "1" } else { "0" };
        let said = server.say::<String>(&["CONFIG", "SET", "maxmemory", bytes]);
        said.map_err(|error| ChaosError::io("CONFIG SET")(std::io::Error::other(error)))?;
        Ok(())
    }

    /// Kills the master with `kill -9`. Returns when the replica is a master, and the killed server is back and
    /// follows it.
    pub(super) async fn fail_over(&mut self) -> Result<(), ChaosError> {
        let Self::Watched { sentinels, .. } = self else {
            return Ok(());
        };
        let is = |server: &RealServer, name: &str, value: &str| {
            server.info(name).is_some_and(|is| is == value)
        };
        let master = usize::from(!is(&sentinels.servers()[0], "role", "master"));
        sentinels.server_mut(master).kill9();
        eventually("the replica takes over", PATIENCE, async || {
            is(&sentinels.servers()[1 - master], "role", "master").then_some(())
        })
        .await;
        // Until then, some clients take the killed server for the master when it is back.
        let port = sentinels.servers()[1 - master].port().to_string();
        eventually(
            "the sentinels agree on the new master",
            PATIENCE,
            async || {
                let named = ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", SERVICE];
                let agree = |sentinel: &RealServer| {
                    let address = sentinel.say::<Vec<String>>(&named);
                    address.is_ok_and(|address| address.get(1) == Some(&port))
                };
                sentinels.sentinels().iter().all(agree).then_some(())
            },
        )
        .await;
        sentinels.server_mut(master).start_again();
        // As an administrator would: sentinels take a while to notice that the server takes itself for a master.
        let [back, other] = [master, 1 - master].map(|at| &sentinels.servers()[at]);
        let follow = back.say::<String>(&["REPLICAOF", "127.0.0.1", &other.port().to_string()]);
        follow.map_err(|error| ChaosError::io("REPLICAOF")(std::io::Error::other(error)))?;
        eventually("the killed master follows", PATIENCE, async || {
            is(&sentinels.servers()[master], "master_link_status", "up").then_some(())
        })
        .await;
        Ok(())
    }
}
