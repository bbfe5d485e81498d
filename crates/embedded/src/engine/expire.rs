//! Removes keys whose time is over, also those that nobody asks for, so that they take no memory
//! and the log says that they are gone. It sleeps while no key has a deadline.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use super::{Core, Shared};

/// Keys removed under one hold of the lock: about a millisecond.
const SWEEP_MAX: usize = 1_000;

/// Between two sweeps at least, as Redis does it ten times a second.
const SWEEP_EVERY: Duration = Duration::from_millis(100);

/// Between two sweeps at most: how late a key can be that was set while a sweep slept.
const SWEEP_AT_LEAST_EVERY: Duration = Duration::from_secs(1);

/// After a sweep that did not get through: time for others to have the lock.
const SWEEP_AGAIN: Duration = Duration::from_millis(1);

impl Core {
    /// Whether any key has a deadline.
    fn has_deadlines(&mut self) -> bool {
        self.world
            .store
            .expire_some(0, 0, &mut Vec::new())
            .is_some()
    }

    /// Removes what is due, and says how long to wait until the next time; none when no key has a
    /// deadline any more.
    fn sweep(&mut self) -> Option<Duration> {
        let now_us = self.world.clock.now_us();
        if self.world.trouble.is_some() {
            // It may take writes again, and nobody may come to ask.
            let _ = self.world.settle(now_us);
            if self.world.make_room(0).is_err() {
                return Some(SWEEP_AT_LEAST_EVERY);
            }
        }
        let world = &mut self.world;
        let next = world
            .store
            .expire_some(now_us / 1_000, SWEEP_MAX, &mut world.effects);
        // In trouble: the next writer is told, and tries again.
        let _ = world.settle(now_us);
        let until = next?.saturating_sub(now_us / 1_000);
        Some(if until == 0 {
            SWEEP_AGAIN
        } else {
            Duration::from_millis(until).clamp(SWEEP_EVERY, SWEEP_AT_LEAST_EVERY)
        })
    }
}

/// The task that sweeps, unless it runs or nothing is there to sweep. Without a runtime of tokio keys
/// only disappear when somebody asks for them.
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
    /// Starts it. Nobody may hold the lock: a runtime that is ending drops the task at once, which
    /// takes the lock to say that it runs no more.
    pub(super) fn start(self) {
        self.runtime.spawn(sweep(self.task));
    }
}

/// That the task runs, until it is dropped: with its runtime at the latest.
struct Sweeping(Weak<Shared>);

impl Sweeping {
    /// One sweep; none when there is no more to do, and the next deadline starts a new task.
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
