//! Messages between nodes over the overlay network Mycelium.
//!
//! [`Daemon`] is the client of the Mycelium daemon of this host. [`Exchange`] turns outboxes into frames, and frames into
//! messages; it knows no daemon. [`Mesh`] moves frames between both, in the one process of a node that holds the lease.

#[cfg(feature = "mesh")]
mod daemon;
mod damage;
mod exchange;
mod inbound;
#[cfg(feature = "mesh")]
mod lease;
#[cfg(feature = "mesh")]
mod ping;
#[cfg(feature = "mesh")]
mod pump;
mod refusals;
mod sweep;
mod tend;

#[cfg(feature = "mesh")]
pub use daemon::{Daemon, DaemonInfo, MeshError};
pub use exchange::{Exchange, Outbound};
#[cfg(feature = "mesh")]
pub use ping::PingError;
#[cfg(feature = "mesh")]
pub use pump::Mesh;
