//! For tests outside of this crate: a call on a copy of an engine whose log refuses writes, and the data after a
//! crash.

use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;

use super::{Handle, Session, dispatch::Step};
use crate::{
    Reply,
    store::{Effect, Store},
    world::Journal,
};

/// A copy of an engine, which keeps loaded scripts.
#[derive(Debug)]
pub struct Probe {
    handle: Handle,
    log: Arc<Mutex<Log>>,
}

#[derive(Default)]
struct Log {
    /// The data after a replay of the log.
    effects: Vec<Effect>,
    full: bool,
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Log").field("full", &self.full).finish()
    }
}

struct Append(Arc<Mutex<Log>>);

impl Journal for Append {
    fn append(&mut self, effects: &[Effect]) -> io::Result<()> {
        let mut log = lock(&self.0);
        if log.full {
            return Err(io::ErrorKind::StorageFull.into());
        }
        log.effects.extend_from_slice(effects);
        Ok(())
    }

    /// Acts like a file system that cannot reserve space.
    fn make_room(&mut self, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn snapshot_taken(&mut self) {}

    fn start_rewrite(&mut self) -> Result<(), String> {
        Err("ERR a probe has no log to rewrite".to_owned())
    }

    fn info(&self) -> Vec<String> {
        Vec::new()
    }
}

fn lock(log: &Mutex<Log>) -> MutexGuard<'_, Log> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Default for Probe {
    fn default() -> Self {
        let (handle, log) = (Handle::in_memory(), Arc::<Mutex<Log>>::default());
        handle.attach(Box::new(Append(log.clone())));
        Self { handle, log }
    }
}

impl Probe {
    /// Copies the data of `engine`, if that takes no more than `commands` commands. From now on, the log refuses
    /// writes.
    pub fn begin(&self, engine: &Handle, commands: usize) -> bool {
        let data = engine.snapshot();
        let effects: Vec<_> = data.snapshot().take(commands + 1).collect();
        if effects.len() > commands {
            return false;
        }
        *lock(&self.log) = Log {
            effects,
            full: true,
        };
        let copy = Store::new();
        let mut core = self.handle.shared.lock();
        core.world.effects.clear();
        core.world.unsent.clear();
        core.world.trouble = None;
        core.world.store = copy;
        drop(core);
        for effect in &lock(&self.log).effects {
            // Commands of a snapshot can be replayed.
            let _ = self.handle.replay(effect.db, &effect.args);
        }
        true
    }

    /// Lets the log accept writes again.
    pub fn heal(&self) {
        lock(&self.log).full = false;
    }

    /// Returns a session with this engine.
    #[must_use]
    pub fn session(&self) -> Session {
        self.handle.session()
    }

    /// Returns whether a change is not in the log.
    #[must_use]
    pub fn is_behind(&self) -> bool {
        !self.handle.shared.lock().world.effects.is_empty()
    }

    /// Returns the first key, if any, that a crash now would restore differently.
    #[must_use]
    pub fn lost(&self) -> Option<String> {
        let reloaded = Handle::in_memory();
        for effect in &lock(&self.log).effects {
            if let Err(error) = reloaded.replay(effect.db, &effect.args) {
                return Some(format!("{:?} cannot be replayed: {error}", effect.args));
            }
        }
        let (is, was) = (content(&self.handle), content(&reloaded));
        let differs = |key: &&(usize, Bytes)| is.get(*key) != was.get(*key);
        let first = is.keys().chain(was.keys()).find(differs);
        first.map(|(db, key)| format!("{db}: {}", key.escape_ascii()))
    }
}

/// Returns all data by key, without the order of unordered values.
fn content(handle: &Handle) -> BTreeMap<(usize, Bytes), Vec<Bytes>> {
    let mut content = BTreeMap::<_, Vec<Bytes>>::new();
    for Effect { db, args } in handle.snapshot().snapshot() {
        let ordered = args[0] == "RPUSH";
        let Some(key) = args.get(1).cloned() else {
            continue;
        };
        let all = content.entry((db, key)).or_default();
        all.extend(args);
        if !ordered {
            all.sort();
        }
    }
    content
}

impl Session {
    /// Runs a command that must not block: a blocked one is cancelled, without a reply.
    #[doc(hidden)]
    pub fn call_now(&mut self, args: &[Bytes]) -> Option<Reply> {
        let step = self.shared.with(|core| core.request(self.id, args));
        match step {
            Step::Done(reply) => Some(reply),
            Step::Waits { mut reply, .. } => {
                self.shared.lock().world.waiters.forget(self.id);
                reply.try_recv().ok()
            }
        }
    }
}
