//! Where the jobs of a fleet are, and what can happen to that: a server that writes every command to its
//! disk before it answers, or a master with a replica that sentinels put in its place.

use std::time::Duration;

use crate::chaos::ChaosError;
use meshwork_test_servers::eventually;
use meshwork_test_servers::servers::{RealSentinels, RealServer, Tool};

/// What the sentinels call the master.
const SERVICE: &str = "main";
/// How long a failover may take, with sentinels that miss a master after a second.
const PATIENCE: Duration = Duration::from_secs(60);

/// The server, or the servers.
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

    /// With `wait`, clients take a job for stored when the replica has it too.
    pub(super) async fn watched(wait: bool) -> Result<Self, ChaosError> {
        let sentinels = RealSentinels::start(RealServer::redis().append_only(), None).await;
        let sentinels = sentinels.ok_or(ChaosError::Missing(Tool::Redis.program()))?;
        Ok(Self::Watched { sentinels, wait })
    }

    pub(super) fn has_replica(&self) -> bool {
        matches!(self, Self::Watched { .. })
    }

    /// For workers.
    pub(super) fn url(&self) -> String {
        match self {
            Self::Single(server) => server.url(),
            Self::Watched { sentinels, .. } => sentinels.url(""),
        }
    }

    /// For whoever submits.
    pub(super) fn submit_url(&self) -> String {
        match self {
            Self::Watched {
                sentinels,
                wait: true,
            } => sentinels.url("?wait_replicas=1&wait_timeout_ms=1000"),
            _ => self.url(),
        }
    }

    /// `kill -9` of the server.
    pub(super) fn kill(&mut self) {
        if let Self::Single(server) = self {
            server.kill9();
        }
    }

    /// Starts it again after that.
    pub(super) fn start_again(&mut self) {
        if let Self::Single(server) = self {
            server.start_again();
        }
    }

    /// An orderly stop and start.
    pub(super) fn restart(&mut self) {
        if let Self::Single(server) = self {
            server.restart();
        }
    }

    /// Leaves the server no memory, or gives it back.
    pub(super) fn fill(&mut self, full: bool) -> Result<(), ChaosError> {
        let Self::Single(server) = self else {
            return Ok(());
        };
        let bytes = if full { "1" } else { "0" };
        let said = server.say::<String>(&["CONFIG", "SET", "maxmemory", bytes]);
        said.map_err(|error| ChaosError::io("CONFIG SET")(std::io::Error::other(error)))?;
        Ok(())
    }

    /// `kill -9` of the master; returns when the other has taken over and follows nobody, and the killed one
    /// is back and follows it.
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
        // Until then, some take the killed one for the master when it is back.
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
        // As whoever brings it back would: sentinels take a while to notice that it takes itself for a master.
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
