//! Turns: a job whose record says `concurrent` = `false` runs alone on its worker. It waits until what runs
//! there has ended, nothing starts beside it, and while it waits or runs the worker claims nothing more; so
//! it comes to its turn however many others there are. Its timeout begins with its turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

/// Who may run now.
#[derive(Debug, Clone)]
pub(super) struct Turns {
    lock: Arc<RwLock<()>>,
    /// Whether a job waits to run alone, or does.
    alone: Arc<AtomicBool>,
}

/// A place in the line. It is given up when this is dropped.
#[derive(Debug)]
pub(super) enum Place {
    BesideOthers(Turns),
    Alone(Turns),
}

/// A job's turn: it lasts until this is dropped.
#[derive(Debug)]
pub(super) enum Turn {
    BesideOthers { _guard: OwnedRwLockReadGuard<()> },
    Alone { _guard: OwnedRwLockWriteGuard<()> },
}

impl Turns {
    pub(super) fn new() -> Self {
        Self {
            lock: Arc::default(),
            alone: Arc::default(),
        }
    }

    /// A place for a job that runs beside others.
    pub(super) fn beside_others(&self) -> Place {
        Place::BesideOthers(self.clone())
    }

    /// A place for a job that runs alone. There is one at a time; see [`Turns::is_taken`].
    pub(super) fn alone(&self) -> Place {
        self.alone.store(true, Ordering::SeqCst);
        Place::Alone(self.clone())
    }

    /// Whether a job waits to run alone, or does.
    pub(super) fn is_taken(&self) -> bool {
        self.alone.load(Ordering::SeqCst)
    }
}

impl Place {
    /// Waits for the turn. The lock is fair: who comes first is first.
    pub(super) async fn turn(&self) -> Turn {
        match self {
            Self::BesideOthers(turns) => Turn::BesideOthers {
                _guard: Arc::clone(&turns.lock).read_owned().await,
            },
            Self::Alone(turns) => Turn::Alone {
                _guard: Arc::clone(&turns.lock).write_owned().await,
            },
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Self::Alone(turns) = self {
            turns.alone.store(false, Ordering::SeqCst);
        }
    }
}
