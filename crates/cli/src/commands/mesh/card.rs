//! `meshwork mesh card`.

use std::path::PathBuf;

use meshwork::context::{Node, read_key};
use meshwork_model::mesh::{Card as NodeCard, MAX_CARD_LIFE};

use super::{DaemonArgs, NodeKeyArgs};
use crate::app::App;
use crate::args::parsers;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::note;

/// Seconds of a day.
const DAY: u64 = 24 * 3600;

/// Print the signed card of this node, for the owners of other nodes
///
/// The card has the name of the node, its public key and that of its Mycelium daemon. The first call creates the key file.
#[derive(Debug, clap::Args)]
pub(crate) struct Card {
    /// Days until the card expires, 1 to 730
    #[arg(long, value_name = "N", default_value_t = 365, value_parser = parsers::whole::<u64>(1..=730))]
    days: u64,
    /// Sign with the previous key too, so that nodes that know it accept the new one
    #[arg(long, value_name = "FILE")]
    old_key: Option<PathBuf>,
    #[command(flatten)]
    key: NodeKeyArgs,
    #[command(flatten)]
    daemon: DaemonArgs,
}

impl Card {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let daemon = self.daemon.daemon()?;
        let node = Node::of(context.client().await?.broker());
        // Before a key is created: without a daemon there is no card.
        let info = daemon.info().await?;
        let before = self.old_key.as_deref().map(read_key).transpose()?;
        let (key, created) = self.key.create()?;
        if let Some(path) = created {
            note(format_args!(
                "created the key of this node in {}",
                path.display()
            ));
        }
        let created_at = node.time().await?;
        let card = NodeCard {
            node: node.identity().await?,
            key: key.public(),
            daemon: info.key,
            created_at,
            expires_at: created_at + (self.days * DAY).min(MAX_CARD_LIFE),
        };
        context.out.line(card.seal(&key, before.as_ref()))?;
        Ok(Exit::DONE)
    }
}
