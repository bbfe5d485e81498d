//! The servers of the scenario: one, or the nodes of a Cluster.

use meshwork_test_servers::servers::{RealCluster, RealServer, Tool};
use rand::RngExt;
use rand::rngs::StdRng;

use crate::chaos::ChaosError;

/// Nodes of the Cluster.
const NODES: usize = 3;

/// Kind of the servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One redis-server.
    Single,
    /// A Cluster of three, which divide the parts.
    Cluster,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 2] = [Self::Single, Self::Cluster];

    /// Returns the name of the scenario.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Single => "spread",
            Self::Cluster => "spread-cluster",
        }
    }
}

/// Running servers, killed when dropped.
pub(super) enum Servers {
    Single(Box<RealServer>),
    Cluster(RealCluster),
}

impl Servers {
    pub(super) async fn start(kind: Kind) -> Result<Self, ChaosError> {
        let options = RealServer::redis().append_only();
        let started = match kind {
            Kind::Single => options.start_for("chaos").map(Box::new).map(Self::Single),
            Kind::Cluster => {
                let cluster = RealCluster::start_masters_for("chaos", options, NODES).await;
                cluster.map(Self::Cluster)
            }
        };
        started.ok_or(ChaosError::Missing(Tool::Redis.program()))
    }

    pub(super) fn url(&self) -> String {
        match self {
            Self::Single(server) => server.url(),
            Self::Cluster(cluster) => cluster.url(),
        }
    }

    /// Kills a server with `kill -9`, and starts it again.
    pub(super) fn kill_one(&mut self, random: &mut StdRng) {
        let server = match self {
            Self::Single(server) => server,
            Self::Cluster(cluster) => cluster.node_mut(random.random_range(0..NODES)),
        };
        server.kill9();
        server.start_again();
    }
}
