//! The engine: who holds the data, who may call, in which order things happen. One lock guards
//! all of it; commands run in the task of the caller, so that a sequential caller pays no hop to
//! another thread. The state is in `world`, the commands in `command` and
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
    store::Store,
    world::{Call, Clock, Journal, World},
};

/// An engine. Clones are cheap and stand for the same one; it ends with the last of them.
#[derive(Clone)]
pub struct Handle {
    shared: Arc<Shared>,
}

/// What all handles and sessions share.
struct Shared {
    core: Mutex<Core>,
}

impl Shared {
    /// Locks the engine; never held over an await. A panic in a command does not end the engine
    /// for everybody else.
    fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something under the lock that may set deadlines.
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

/// What the lock guards.
struct Core {
    world: World,
    /// None until the first script comes.
    scripts: Option<Scripts>,
    /// Whether the task that removes expired keys runs.
    sweeping: bool,
}

impl Handle {
    /// An empty engine that keeps nothing on disk.
    #[must_use]
    pub fn in_memory() -> Self {
        Self::with_clock(Clock::system())
    }

    /// An empty engine that keeps nothing on disk and whose time is `clock`.
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

    /// A new session: database 0, RESP2.
    #[must_use]
    pub fn session(&self) -> Session {
        Session::new(self.shared.clone())
    }

    /// Runs one command of the log, before [`Self::attach`]. Nothing expires and nothing is
    /// logged. An error reply comes back as the error: such a log was not written by an engine.
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

    /// From here on every write goes to `journal` before anybody is told of it.
    pub(crate) fn attach(&self, journal: Box<dyn Journal>) {
        self.shared.with(|core| {
            core.world.settings.set("appendonly", "yes".to_owned());
            core.world.journal = Some(journal);
        });
    }

    /// All data as it is now, and at the same moment [`Journal::snapshot_taken`].
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
