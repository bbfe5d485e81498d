//! Removal of expired keys, also of those that no client reads, so that they use no memory and the log has their
//! removal. The task sleeps while no key has a deadline.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use super::{Core, Shared};

/// Number of keys that are removed under one lock: about a millisecond.
const SWEEP_MAX: usize = 1_000;

/// Least interval of sweeps; Redis sweeps ten times a second.
const SWEEP_EVERY: Duration = Duration::from_millis(100);

/// Greatest interval of sweeps, and so the greatest lateness for a key that was set meanwhile.
const SWEEP_AT_LEAST_EVERY: Duration = Duration::from_secs(1);

/// Pause after an incomplete sweep, in which others can take the lock.
const SWEEP_AGAIN: Duration = Duration::from_millis(1);

impl Core {
    /// Returns whether any key has a deadline.
    fn has_deadlines(&mut self) -> bool {
        self.world
            .store
            .expire_some(0, 0, &mut Vec::new())
            .is_some()
    }

    /// Removes expired keys, and returns the time until the next sweep; `None` if no key has a deadline.
    fn sweep(&mut self) -> Option<Duration> {
        let now_us = self.world.clock.now_us();
        if self.world.trouble.is_some() {
            // The log may accept writes again, without a request that tries it.
            let _ = self.world.settle(now_us);
            if self.world.make_room(0).is_err() {
                return Some(SWEEP_AT_LEAST_EVERY);
            }
        }
        let world = &mut self.world;
        let next = world
            .store
            .expire_some(now_us / 1_000, SWEEP_MAX, &mut world.effects);
        // On failure, the next write gets the error, and tries again.
        let _ = world.settle(now_us);
        let until = next?.saturating_sub(now_us / 1_000);
        Some(if until == 0 {
            SWEEP_AGAIN
        } else {
            Duration::from_millis(until).clamp(SWEEP_EVERY, SWEEP_AT_LEAST_EVERY)
        })
    }
}

/// Returns the sweeping task, unless it runs or nothing needs it. Without a tokio runtime, keys expire only when they
/// are read.
pub(super) fn wanted(shared: &Arc<Shared>, core: &mut Core) -> Option<Sweep> {
    if core.sweeping || !core.has_deadlines() {
        return None;
    }
    let runtime = tokio::runtime::Handle::try_current().ok()?;
    core.sweeping = true;
    let task = Sweeping(Arc::downgrade(shared));
    Some(Sweep { runtime, task })
}

/// A task to be started.
pub(super) struct Sweep {
    runtime: tokio::runtime::Handle,
    task: Sweeping,
}

impl Sweep {
    /// Starts the task. The caller must not hold the lock: a runtime that is shutting down drops the task at once,
    /// whose drop takes the lock.
    pub(super) fn start(self) {
        self.runtime.spawn(sweep(self.task));
    }
}

/// Marks the task as running until it is dropped: with its runtime at the latest.
struct Sweeping(Weak<Shared>);

impl Sweeping {
    /// Does one sweep; `None` if none is needed any more. The next deadline starts a new task.
    fn once(&mut self) -> Option<Duration> {
        let shared = self.0.upgrade()?;
        let mut core = shared.lock();
        let pause = core.sweep();
        if pause.is_none() {
            core.sweeping = false;
            self.0 = Weak::new();
        }
        pause
    }
}

impl Drop for Sweeping {
    fn drop(&mut self) {
        if let Some(shared) = self.0.upgrade() {
            shared.lock().sweeping = false;
        }
    }
}

async fn sweep(mut sweeping: Sweeping) {
    while let Some(pause) = sweeping.once() {
        tokio::time::sleep(pause).await;
    }
}
