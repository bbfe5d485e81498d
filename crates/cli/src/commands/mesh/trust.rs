//! `meshwork mesh trust` and `revoke`.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use meshwork::context::{Node, Peer};
use meshwork_model::mesh::{MAX_CARD, PeerName};

use super::peers::Listed;
use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;

/// Trust the card of another node, under a name
///
/// A card with another key of a known node must be signed by the known key. Trust in a node gives its actors no rights:
/// `meshwork actor trust` and `meshwork context grant` do.
#[derive(Debug, clap::Args)]
pub(crate) struct Trust {
    /// File with the card; - for stdin
    #[arg(value_name = "FILE")]
    card: PathBuf,
    /// Name of the node here, as in `bob/8`
    #[arg(long, value_name = "NAME")]
    name: PeerName,
}

impl Trust {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let card = read(&self.card)?;
        let node = Node::of(context.client().await?.broker());
        let peer = node.trust_node(card.trim_ascii(), &self.name).await?;
        print(context, peer, "trusted")
    }
}

/// Revoke the trust in another node, at once
#[derive(Debug, clap::Args)]
pub(crate) struct Revoke {
    /// Name of the node
    #[arg(value_name = "NAME")]
    name: PeerName,
}

impl Revoke {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let node = Node::of(context.client().await?.broker());
        let peer = node.revoke_node(&self.name).await?;
        print(context, peer, "revoked")
    }
}

fn print(context: &mut App, peer: Peer, done: &str) -> Result<Exit, CommandError> {
    let listed = Listed::new(peer, 0);
    match context.out.is_json() {
        true => context.out.json(&listed)?,
        false => {
            let (name, node) = (&listed.name, &listed.node);
            context
                .out
                .line(format_args!("{name}: node {node} {done}"))?;
        }
    }
    Ok(Exit::DONE)
}

/// Reads a file, or stdin, of at most the length of a card.
fn read(path: &Path) -> Result<Vec<u8>, CommandError> {
    let most = u64::try_from(MAX_CARD).unwrap_or(u64::MAX) + 1;
    let mut bytes = Vec::new();
    let read = match path.as_os_str() == "-" {
        true => io::stdin().lock().take(most).read_to_end(&mut bytes),
        false => File::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes)),
    };
    let refused =
        |error| CommandError::usage(format_args!("{} cannot be read: {error}", path.display()));
    read.map_err(refused)?;
    Ok(bytes)
}
