//! `meshwork mesh peers`.

use meshwork::context::{Node, Peer, RefusedCounts};
use meshwork_model::time;
use serde::Serialize;

use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::{Column, Row, note};

/// List the nodes that this node knows
#[derive(Debug, clap::Args)]
pub(crate) struct Peers {}

impl Peers {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let node = Node::of(context.client().await?.broker());
        let figures = node.mesh_figures().await?;
        let now = figures.now_ms / 1000;
        let listed = figures.peers.into_iter().map(|of| Listed {
            waiting: of.waiting,
            refused: of.refused,
            ..Listed::new(of.peer, now)
        });
        context.out.rows(listed)?;
        if !figures.refused.is_empty() {
            note(format_args!(
                "refused frames of unknown nodes: {}",
                counts(&figures.refused)
            ));
        }
        Ok(Exit::DONE)
    }
}

/// A node.
#[derive(Debug, Serialize)]
pub(super) struct Listed {
    pub(super) name: String,
    pub(super) node: String,
    key: String,
    daemon: String,
    /// Expiry of its card, in seconds since 1970.
    expires_at: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    revoked_at: Option<u64>,
    /// Time of its last frame, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    seen_ms: Option<u64>,
    /// Its clock minus the own one, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    offset_ms: Option<i64>,
    /// Version of its program, by its last answer to a ping.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    /// Number of messages and answers that wait for it.
    waiting: u64,
    /// Refused frames and messages of it, by reason.
    refused: RefusedCounts,
    #[serde(skip)]
    now: u64,
}

impl Listed {
    pub(super) fn new(peer: Peer, now: u64) -> Self {
        Self {
            name: peer.name.to_string(),
            node: peer.card.node.to_string(),
            key: peer.card.key.to_string(),
            daemon: peer.card.daemon.to_string(),
            expires_at: peer.card.expires_at,
            revoked_at: peer.revoked_at,
            seen_ms: peer.seen_ms,
            offset_ms: peer.offset_ms,
            version: peer.pong.map(|pong| pong.version),
            waiting: 0,
            refused: RefusedCounts::new(),
            now,
        }
    }
}

/// Returns counts in one line.
fn counts(refused: &RefusedCounts) -> String {
    let each = refused
        .iter()
        .map(|(code, count)| format!("{code} {count}"));
    each.collect::<Vec<_>>().join(", ")
}

impl Row for Listed {
    fn columns() -> Vec<Column> {
        let names = [
            "name",
            "state",
            "last frame",
            "clock ms",
            "waiting",
            "refused",
            "node",
        ];
        Column::named(names, &["clock ms", "waiting"])
    }

    fn optional() -> &'static [&'static str] {
        &["node", "clock ms"]
    }

    fn cells(&self) -> Vec<String> {
        let day = |seconds: u64| time::iso(seconds * 1000);
        let state = match self.revoked_at {
            Some(at) => format!("revoked {}", day(at)),
            None if self.expires_at < self.now => format!("expired {}", day(self.expires_at)),
            None => "trusted".to_owned(),
        };
        vec![
            self.name.clone(),
            state,
            self.seen_ms.map_or_else(|| "never".to_owned(), time::iso),
            self.offset_ms.map_or_else(String::new, |it| it.to_string()),
            self.waiting.to_string(),
            counts(&self.refused),
            self.node.clone(),
        ]
    }
}
