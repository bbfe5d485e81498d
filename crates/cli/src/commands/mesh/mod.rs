//! `meshwork mesh`.

mod card;
mod node_key;
mod peers;
mod ping;
mod trust;

use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;

pub(crate) use node_key::{DaemonArgs, NodeKeyArgs};

/// Exchange messages with other nodes over the overlay network Mycelium
///
/// Two nodes trust each other's cards, and run `meshwork supervisor --mycelium URL` beside a Mycelium daemon each. Then
/// `meshwork message send bob/8` reaches context 8 of the node bob (docs/mesh.md).
#[derive(Debug, clap::Subcommand)]
pub(crate) enum MeshCommand {
    Card(card::Card),
    Trust(trust::Trust),
    Revoke(trust::Revoke),
    Peers(peers::Peers),
    Ping(ping::Ping),
}

impl MeshCommand {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        match self {
            Self::Card(card) => card.run(context).await,
            Self::Trust(trust) => trust.run(context).await,
            Self::Revoke(revoke) => revoke.run(context).await,
            Self::Peers(peers) => peers.run(context).await,
            Self::Ping(ping) => ping.run(context).await,
        }
    }
}
