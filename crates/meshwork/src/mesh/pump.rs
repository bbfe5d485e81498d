//! Moves frames between the exchange of a node and its daemon, in the process that holds the lease.

use meshwork_macros::boxed;
use std::time::Duration;

use meshwork_model::actor_key::SecretKey;
use meshwork_model::context::NodeId;
use meshwork_model::mesh::MAX_FRAME;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::daemon::{Daemon, MeshError};
use super::exchange::Exchange;
use super::lease::Lease;
use crate::context::{ContextError, Node};

/// Pause between two polls of the daemon. A poll costs it about 0.1 ms.
const POLL: Duration = Duration::from_millis(10);
/// Pause after a failure of the daemon or the server.
const RETRY: Duration = Duration::from_secs(1);
/// Time without an exchange after which other nodes may take this one for absent.
const GAP: Duration = Duration::from_secs(4);
/// Number of frames that are taken before frames are sent.
const BATCH: usize = 256;
/// Number of frames that are taken with one call while small ones wait. The daemon's answers have at most 10 MiB.
const MANY: usize = 64;

/// Returns the topic of the frames for a node. Several nodes may share a daemon.
fn topic(node: NodeId) -> Vec<u8> {
    format!("meshwork.v1/{node}").into_bytes()
}

/// Exchanges frames with other nodes through the daemon of this host.
#[derive(Debug)]
pub struct Mesh {
    node: Node,
    daemon: Daemon,
    exchange: Exchange,
    lease: Lease,
    me: NodeId,
    began: Instant,
    /// Start of the daemon at the last look.
    started: Option<i64>,
    /// Time of the last turn.
    turned: Instant,
}

/// Failure of one turn.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Daemon(#[from] MeshError),
    #[error(transparent)]
    Store(#[from] ContextError),
}

impl Mesh {
    /// Creates the exchange of a node over a daemon, signed with the key of the node. Waits for no daemon.
    ///
    /// # Errors
    /// A call to the server fails.
    #[boxed]
    pub async fn new(node: &Node, daemon: Daemon, key: SecretKey) -> Result<Self, ContextError> {
        Ok(Self {
            exchange: Exchange::new(node, key).await?,
            me: node.identity().await?,
            node: node.clone(),
            daemon,
            lease: Lease::new(),
            began: Instant::now(),
            started: None,
            turned: Instant::now(),
        })
    }

    fn mono_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Exchanges frames until `stop` is cancelled. Failures are logged and retried.
    #[boxed]
    pub async fn run(mut self, stop: &CancellationToken) {
        let mut is_well = true;
        while !stop.is_cancelled() {
            let turn = tokio::select! {
                () = stop.cancelled() => break,
                turn = self.term() => turn,
            };
            let pause = match turn {
                Ok(()) => {
                    if !std::mem::replace(&mut is_well, true) {
                        tracing::warn!("messages of other nodes exchanged again");
                        self.tell(None).await;
                    }
                    continue;
                }
                Err(error) => error,
            };
            if std::mem::replace(&mut is_well, false) {
                tracing::warn!(error = %pause, "messages of other nodes wait; trying again");
                self.tell(Some(&pause.to_string())).await;
            }
            let _ = timeout(RETRY, stop.cancelled()).await;
        }
        if let Err(error) = self.lease.release(&self.node).await {
            tracing::debug!(%error, "lease of the mesh not released: it expires");
        }
    }

    /// Records for commands why no frames are exchanged.
    async fn tell(&self, fault: Option<&str>) {
        if let Err(error) = self.lease.tell(&self.node, fault).await {
            tracing::debug!(%error, "state of the mesh not recorded");
        }
    }

    /// Exchanges frames until the lease is to be renewed. Without the lease, waits that long.
    async fn term(&mut self) -> Result<(), Failure> {
        let until = Instant::now() + Lease::RENEW;
        if !self.lease.hold(&self.node).await? {
            self.started = None;
            tokio::time::sleep_until(until).await;
            return Ok(());
        }
        if self.turned.elapsed() >= GAP {
            // This process was paused, or the daemon or the server was away.
            self.started = None;
        }
        self.look().await?;
        while Instant::now() < until {
            let is_busy = self.turn().await?;
            self.turned = Instant::now();
            let woken = self.node.signals().outgoing.notified();
            if !is_busy && timeout(POLL, woken).await.is_ok() {
                self.exchange.wake();
            }
        }
        Ok(())
    }

    /// Looks for a restart of the daemon, and drops messages without a topic: forged replies would fill its memory.
    async fn look(&mut self) -> Result<(), Failure> {
        let started = self.daemon.info().await?.started;
        if self.started.replace(started) != Some(started) {
            // The daemon has lost what it had not sent.
            let mono_ms = self.mono_ms();
            self.exchange.read_peers(mono_ms).await?;
            self.exchange.resend(mono_ms).await?;
        }
        for _ in 0..BATCH {
            if self.daemon.pop(b"", 1).await?.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// Takes the frames that have arrived, and sends those that are due. Returns true if there was something to do.
    async fn turn(&mut self) -> Result<bool, Failure> {
        let mut is_busy = self.take().await?;
        let mono_ms = self.mono_ms();
        for frame in self.exchange.outbound(mono_ms).await? {
            is_busy = true;
            let to = self::topic(frame.to);
            self.daemon.push(frame.daemon, &to, &frame.bytes).await?;
            self.exchange.sent(frame, mono_ms).await?;
        }
        Ok(is_busy)
    }

    /// Takes frames that have arrived: one at first, and many with each call while they are small. Returns true if there
    /// were some.
    async fn take(&mut self) -> Result<bool, Failure> {
        let (topic, mut many, mut taken) = (topic(self.me), 1, 0);
        while taken < BATCH {
            let arrived = self.daemon.pop(&topic, many).await?;
            taken += arrived.len();
            let is_last = arrived.len() < many;
            let is_small = arrived.iter().all(|one| one.payload.len() <= MAX_FRAME);
            many = if is_small { MANY } else { 1 };
            for one in arrived {
                let mono_ms = self.mono_ms();
                let taken = self.exchange.receive(one.from, &one.payload, mono_ms);
                taken.await?;
            }
            if is_last {
                break;
            }
        }
        Ok(taken > 0)
    }
}
