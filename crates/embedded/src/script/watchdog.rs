//! The time limit of a script: no other command runs meanwhile.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use mlua::{HookTriggers, Lua, VmState, debug::Debug};
use rustix::time::{ClockId, clock_gettime};

use super::{
    error::{Raised, SANDBOX},
    pattern::{Effort, Fault},
};

/// Processor time of a script, after which it is stopped. Redis begins to answer `BUSY` then. Wall time would stop a
/// script half way, with a part of its writes, because its process had been suspended.
pub(super) const TIME_MAX: Duration = Duration::from_secs(5);

/// Instructions between two checks of the clock: about ten microseconds. One that joins or cuts texts of 100 MB takes
/// up to 50 ms, as long as a million others.
const EVERY: u32 = 1_000;

/// Steps of an engine's function between two checks of the clock: less than a millisecond.
pub(super) const STEPS: usize = 100_000;

/// Limits the time of the running script.
pub(super) struct Watchdog(Time);

/// The time of the running script.
#[derive(Clone, Default)]
pub(super) struct Time(Arc<Mutex<Watched>>);

impl Time {
    /// Returns whether the time limit is over.
    pub(super) fn is_over(&self) -> bool {
        is_over(&self.0)
    }
}

/// Returns the error of scripts whose time limit is over.
pub(super) fn stopped() -> String {
    let seconds = TIME_MAX.as_secs();
    format!("ERR the script was stopped after {seconds} seconds; its writes so far stay")
}

/// Counts the steps of functions that no hook interrupts.
pub(super) struct Work {
    left: usize,
    time: Time,
    over: bool,
}

impl Work {
    pub(super) fn new(time: Time) -> Self {
        Self {
            left: STEPS,
            time,
            over: false,
        }
    }

    /// Called at the start of a script.
    pub(super) fn begin(&mut self) {
        (self.left, self.over) = (STEPS, false);
    }

    #[cold]
    fn look(&mut self) -> Result<(), Fault> {
        self.over = self.over || self.time.is_over();
        // After the limit, every further step fails at once, so that `pcall` gains no time.
        self.left = if self.over { 0 } else { STEPS };
        if self.over {
            Err(Fault::Stopped)
        } else {
            Ok(())
        }
    }
}

impl Effort for Work {
    fn spend(&mut self, steps: usize) -> Result<(), Fault> {
        match self.left.checked_sub(steps) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => self.look(),
        }
    }
}

#[derive(Default)]
struct Watched {
    running: bool,
    /// Set at the first check: most scripts end before.
    deadline: Option<Deadline>,
    /// True after the limit: every line raises the error now, so that no `pcall` survives it.
    over: bool,
}

/// The deadline of a script.
struct Deadline {
    /// In processor time of the thread.
    processor: Duration,
    /// Time of the next check of that clock, which needs a system call. Processor time is never faster than wall
    /// time.
    look: Instant,
}

impl Deadline {
    fn new() -> Self {
        Self {
            processor: processor_time() + TIME_MAX,
            look: Instant::now() + TIME_MAX,
        }
    }

    fn is_over(&mut self) -> bool {
        let now = Instant::now();
        if now < self.look {
            return false;
        }
        let left = self.processor.saturating_sub(processor_time());
        self.look = now + left;
        left.is_zero()
    }
}

/// Returns the processor time of this thread.
fn processor_time() -> Duration {
    // It is never negative.
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

/// A script is running while this exists.
pub(super) struct Running<'a> {
    watchdog: &'a Watchdog,
    lua: &'a Lua,
}

impl Watchdog {
    pub(super) fn new(lua: &Lua, time: Time) -> mlua::Result<Self> {
        let watchdog = Self(time);
        watchdog.look_every(lua, HookTriggers::new().every_nth_instruction(EVERY))?;
        Ok(watchdog)
    }

    fn look_every(&self, lua: &Lua, triggers: HookTriggers) -> mlua::Result<()> {
        let watched = self.0.0.clone();
        lua.set_global_hook(triggers, move |lua, at| {
            look(lua, at, &watched).map(|()| VmState::Continue)
        })
    }

    pub(super) fn start<'a>(&'a self, lua: &'a Lua) -> Running<'a> {
        lock(&self.0.0).running = true;
        Running {
            watchdog: self,
            lua,
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let over = std::mem::take(&mut *lock(&self.watchdog.0.0)).over;
        let triggers = HookTriggers::new().every_nth_instruction(EVERY);
        if over && let Err(error) = self.watchdog.look_every(self.lua, triggers) {
            tracing::error!(%error, "scripts have no time limit from now on");
        }
    }
}

fn lock(watched: &Mutex<Watched>) -> std::sync::MutexGuard<'_, Watched> {
    watched.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns whether the time limit of the running script is over.
fn is_over(watched: &Mutex<Watched>) -> bool {
    let mut watched = lock(watched);
    watched.running && watched.deadline.get_or_insert_with(Deadline::new).is_over()
}

fn look(lua: &Lua, at: &Debug<'_>, shared: &Arc<Mutex<Watched>>) -> mlua::Result<()> {
    if !is_over(shared) || at.source().source.is_some_and(|source| source == SANDBOX) {
        // The sandbox does not loop, and must be able to report the error.
        return Ok(());
    }
    // Unlocked from here on: code that allocates memory of Lua may check the time.
    let was_over = std::mem::replace(&mut lock(shared).over, true);
    if !was_over {
        let shared = shared.clone();
        let triggers = HookTriggers::new().every_line().every_nth_instruction(1);
        lua.set_global_hook(triggers, move |lua, at| {
            look(lua, at, &shared).map(|()| VmState::Continue)
        })?;
    }
    Err(Raised::Reply(stopped()).into())
}
