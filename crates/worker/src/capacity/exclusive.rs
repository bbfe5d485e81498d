//! Exclusive gate: a job with `concurrent` = `false` in its record runs alone on its worker. It waits until the running
//! jobs have ended. While it waits or runs, the worker claims nothing more, so other jobs cannot delay it for ever. Its
//! timeout begins when it starts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

/// Gate between exclusive and other jobs.
#[derive(Debug, Clone)]
pub(crate) struct ExclusiveGate {
    lock: Arc<RwLock<()>>,
    /// True if an exclusive job waits or runs.
    alone: Arc<AtomicBool>,
}

/// A waiting job's place. Dropping it gives the place up.
#[derive(Debug)]
pub(crate) enum GateTicket {
    BesideOthers(ExclusiveGate),
    Alone(ExclusiveGate),
}

/// The right to run. Dropping it ends the run's place in the gate.
#[derive(Debug)]
pub(crate) enum GateGuard {
    BesideOthers { _guard: OwnedRwLockReadGuard<()> },
    Alone { _guard: OwnedRwLockWriteGuard<()> },
}

impl ExclusiveGate {
    pub(crate) fn new() -> Self {
        Self {
            lock: Arc::default(),
            alone: Arc::default(),
        }
    }

    /// Returns a ticket for a job that runs beside others.
    pub(crate) fn beside_others(&self) -> GateTicket {
        GateTicket::BesideOthers(self.clone())
    }

    /// Returns a ticket for an exclusive job. There is one at a time; see [`ExclusiveGate::is_taken`].
    pub(crate) fn alone(&self) -> GateTicket {
        self.alone.store(true, Ordering::SeqCst);
        GateTicket::Alone(self.clone())
    }

    /// Returns true if an exclusive job waits or runs.
    pub(crate) fn is_taken(&self) -> bool {
        self.alone.load(Ordering::SeqCst)
    }
}

impl GateTicket {
    /// Waits until the job may start. The lock is fair: first come, first served.
    pub(crate) async fn enter(&self) -> GateGuard {
        match self {
            Self::BesideOthers(gate) => GateGuard::BesideOthers {
                _guard: Arc::clone(&gate.lock).read_owned().await,
            },
            Self::Alone(gate) => GateGuard::Alone {
                _guard: Arc::clone(&gate.lock).write_owned().await,
            },
        }
    }
}

impl Drop for GateTicket {
    fn drop(&mut self) {
        if let Self::Alone(gate) = self {
            gate.alone.store(false, Ordering::SeqCst);
        }
    }
}
