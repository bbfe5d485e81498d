//! Exclusive gate: a job whose record says `concurrent` = `false` runs alone on its worker. It waits until what runs
//! there has ended, nothing starts beside it, and while it waits or runs the worker claims nothing more; so
//! it comes to its turn however many others there are. Its timeout begins with its turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

/// Gate between exclusive and other jobs.
#[derive(Debug, Clone)]
pub(super) struct ExclusiveGate {
    lock: Arc<RwLock<()>>,
    /// True if an exclusive job waits or runs.
    alone: Arc<AtomicBool>,
}

/// A place in the line. It is given up when this is dropped.
#[derive(Debug)]
pub(super) enum GateTicket {
    BesideOthers(ExclusiveGate),
    Alone(ExclusiveGate),
}

/// A job's turn: it lasts until this is dropped.
#[derive(Debug)]
pub(super) enum GateGuard {
    BesideOthers { _guard: OwnedRwLockReadGuard<()> },
    Alone { _guard: OwnedRwLockWriteGuard<()> },
}

impl ExclusiveGate {
    pub(super) fn new() -> Self {
        Self {
            lock: Arc::default(),
            alone: Arc::default(),
        }
    }

    /// A place for a job that runs beside others.
    pub(super) fn beside_others(&self) -> GateTicket {
        GateTicket::BesideOthers(self.clone())
    }

    /// A place for a job that runs alone. There is one at a time; see [`ExclusiveGate::is_taken`].
    pub(super) fn alone(&self) -> GateTicket {
        self.alone.store(true, Ordering::SeqCst);
        GateTicket::Alone(self.clone())
    }

    /// True if an exclusive job waits or runs.
    pub(super) fn is_taken(&self) -> bool {
        self.alone.load(Ordering::SeqCst)
    }
}

impl GateTicket {
    /// Waits for the turn. The lock is fair: who comes first is first.
    pub(super) async fn enter(&self) -> GateGuard {
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
