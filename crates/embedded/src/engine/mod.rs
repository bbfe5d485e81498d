//! The engine: data, callers and the order of commands. One lock guards all of it. Commands run in the caller's task,
//! so that a sequential caller needs no other thread. The state is in `world`, the commands in `command` and
//! `session_command`, the file in `log`.

mod dispatch;
mod expire;
mod gate;
mod probe;
mod session;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

pub use probe::Probe;
pub use session::Session;

use crate::{
    command::Stop,
    script::Scripts,
    session_command::{COMMANDS, find},
    store::{DATABASES, Store},
    world::{Call, Clock, Journal, World},
};

/// An engine. Clones are cheap and share it; it ends with the last of them.
#[derive(Clone)]
pub struct Handle {
    shared: Arc<Shared>,
}

/// State that all handles and sessions share.
struct Shared {
    core: Mutex<Core>,
}

impl Shared {
    /// Locks the engine; never across an await. A panic in a command does not end the engine for other callers.
    fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs work under the lock that may set deadlines.
    fn with<T>(self: &Arc<Self>, work: impl FnOnce(&mut Core) -> T) -> T {
        let mut core = self.lock();
        let done = work(&mut core);
        let sweep = expire::wanted(self, &mut core);
        drop(core);
        if let Some(sweep) = sweep {
            sweep.start();
        }
        done
    }
}

/// State under the lock.
struct Core {
    world: World,
    /// `None` before the first script.
    scripts: Option<Scripts>,
    /// True while the task that removes expired keys runs.
    sweeping: bool,
}

impl Handle {
    /// Returns an empty engine without a file.
    #[must_use]
    pub fn in_memory() -> Self {
        Self::with_clock(Clock::system())
    }

    /// Returns an empty engine without a file, with the clock `clock`.
    #[must_use]
    pub fn with_clock(clock: Clock) -> Self {
        let core = Core {
            world: World::new(clock, &COMMANDS),
            scripts: None,
            sweeping: false,
        };
        Self {
            shared: Arc::new(Shared {
                core: Mutex::new(core),
            }),
        }
    }

    /// Returns a new session: database 0, RESP2.
    #[must_use]
    pub fn session(&self) -> Session {
        Session::new(self.shared.clone())
    }

    /// Runs one command of the log, before [`Self::attach`]. Nothing expires and nothing is logged. An error reply is
    /// returned as an error: no engine wrote such a log.
    pub(crate) fn replay(&self, db: usize, args: &[Bytes]) -> Result<(), String> {
        let spec = find(args)?;
        spec.check_arity(args.len())?;
        if spec.data.is_none() {
            return Err(format!(
                "ERR the command '{}' has no place in a log",
                spec.name
            ));
        }
        let mut core = self.shared.lock();
        let mut call = Call::detached(&mut core.world, 0, 0);
        call.db = db;
        let outcome = call.run(spec, args);
        core.world.effects.clear();
        core.world.store.take_ready();
        match outcome {
            Ok(_) => Ok(()),
            Err(Stop::Error(text)) => Err(text),
            Err(Stop::Wait { .. }) => Err("ERR a log cannot wait".to_owned()),
        }
    }

    /// Returns the number of keys in all databases, with expired ones that are not yet removed.
    pub(crate) fn keys(&self) -> u64 {
        let core = self.shared.lock();
        let keys = (0..DATABASES).map(|db| core.world.store.len(db) as u64);
        keys.sum()
    }

    /// From now on, every write is appended to `journal` before any client gets a reply.
    pub(crate) fn attach(&self, journal: Box<dyn Journal>) {
        self.shared.with(|core| {
            core.world.settings.set("appendonly", "yes".to_owned());
            core.world.journal = Some(journal);
        });
    }

    /// Returns a snapshot of all data, and calls [`Journal::snapshot_taken`] at the same moment.
    pub(crate) fn snapshot(&self) -> Store {
        let mut core = self.shared.lock();
        let frozen = core.world.store.frozen();
        if let Some(journal) = &mut core.world.journal {
            journal.snapshot_taken();
        }
        frozen
    }
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handle").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
