//! The metrics of other nodes, in their table.

use super::metric::{Kind, Metric, Source, figure};
use crate::context::PeerFigures;

/// Another node, by its name here.
const PEER: &[&str] = &["peer"];

const fn of_peer(
    name: &'static str,
    help: &'static str,
    of: fn(&PeerFigures, u64) -> Option<f64>,
) -> Metric {
    figure(name, Kind::Gauge, PEER, help, Source::Peer(of))
}

/// All of them.
pub(super) const FIGURES: [Metric; 5] = [
    of_peer(
        "meshwork_mesh_peer_trusted",
        "1 if the other node is trusted, 0 if it is revoked or its card has expired",
        |it, now| Some(f64::from(u8::from(it.peer.is_trusted(now / 1000)))),
    ),
    of_peer(
        "meshwork_mesh_last_frame_age_seconds",
        "Time since the last frame of another node; missing before the first one",
        |it, now| Some(now.saturating_sub(it.peer.seen_ms?) as f64 / 1000.0),
    ),
    of_peer(
        "meshwork_mesh_clock_offset_seconds",
        "Clock of another node minus the own one, by its last frame",
        |it, _| Some(it.peer.offset_ms? as f64 / 1000.0),
    ),
    of_peer(
        "meshwork_mesh_waiting_messages",
        "Messages and answers that wait for another node",
        |it, _| Some(it.waiting as f64),
    ),
    figure(
        "meshwork_mesh_refused",
        Kind::Counter,
        &["peer", "reason"],
        "Refused frames and messages of other nodes, by reason; no peer: of no known node",
        Source::Refused,
    ),
];
