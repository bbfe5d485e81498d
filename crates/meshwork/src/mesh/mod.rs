//! Messages between nodes over the overlay network Mycelium.
//!
//! [`Daemon`] is the client of the Mycelium daemon of this host. [`Exchange`] turns outboxes into frames, and frames into
//! messages; it knows no daemon. [`Mesh`] moves frames between both, in the one process of a node that holds the lease.

mod daemon;
mod damage;
mod exchange;
mod inbound;
mod lease;
mod ping;
mod pump;
mod refusals;
mod sweep;
mod tend;

pub use daemon::{Daemon, DaemonInfo, MeshError};
pub use exchange::{Exchange, Outbound};
pub use ping::PingError;
pub use pump::Mesh;
