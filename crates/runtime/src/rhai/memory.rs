//! Memory watchdog of scripts: Rhai limits single values, but not every growth of an array or map. It limits each script,
//! and all scripts of the process together: of those, it ends the greatest. It works on Linux only.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use crate::host_memory::host_memory;

/// Greatest growth of the process, in bytes, while a script caused at least half of it: several times the need of the
/// largest input.
pub(super) const MOST: u64 = 1 << 30;

/// Interval of checks; a script allocates some tens of MiB in this time.
const EVERY: Duration = Duration::from_millis(50);

/// Running scripts of the process.
static RUNNING: Mutex<Vec<Arc<Script>>> = Mutex::new(Vec::new());

/// A script used too much memory.
#[derive(Debug, thiserror::Error)]
pub(super) enum TooMuch {
    /// It alone.
    #[error("the script took more than {} MiB of memory", .0 >> 20)]
    Alone(u64),
    /// With others, of which it was the greatest.
    #[error("the scripts of this worker took more than {} MiB of memory, this one the most", .0 >> 20)]
    Together(u64),
}

/// Limits, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// For one script.
    pub(super) each: u64,
    /// For all scripts of the process.
    pub(super) all: u64,
}

impl Limits {
    /// Returns the limits on this host: all scripts may use half of its memory, or of that of its container.
    pub(super) fn of_host() -> Self {
        static ALL: OnceLock<u64> = OnceLock::new();
        let all = || MOST.max(host_memory().unwrap_or(MOST) / 2);
        Self {
            each: MOST,
            all: *ALL.get_or_init(all),
        }
    }
}

/// Memory of a script's thread.
#[derive(Debug, Default)]
struct Script {
    /// File with the thread's statistics, once it runs.
    stat: OnceLock<PathBuf>,
    /// The first measurement.
    before: OnceLock<Look>,
    /// True when the script is being ended; its memory is still in use then.
    ending: OnceLock<()>,
}

/// A script that is watched until this is dropped.
#[derive(Debug)]
pub(super) struct Memory(Arc<Script>);

impl Memory {
    /// Begins to watch a script, whose thread calls [`Watched::this_thread`].
    pub(super) fn watch() -> Self {
        let script = Arc::<Script>::default();
        running().push(Arc::clone(&script));
        Self(script)
    }

    /// Returns a handle for the script's thread.
    pub(super) fn thread(&self) -> Watched {
        Watched(Arc::clone(&self.0))
    }

    /// Waits until the script, or all scripts together, use too much.
    pub(super) async fn exceeds(&self, limits: Limits) -> TooMuch {
        loop {
            tokio::time::sleep(EVERY).await;
            let Some(now) = self.0.look() else { continue };
            self.0.before.get_or_init(|| now);
            let running = running();
            let scripts: Vec<_> = running.iter().filter_map(|script| script.used()).collect();
            let Some(own) = self.0.used() else { continue };
            let too_much = match own {
                own if own.share(now.all, &scripts) > limits.each => TooMuch::Alone(limits.each),
                own if own.is_greatest(now.all, &scripts, limits.all) => {
                    TooMuch::Together(limits.all)
                }
                _ => continue,
            };
            // Set once; no script is ended twice.
            let _ = self.0.ending.set(());
            return too_much;
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        running().retain(|script| !Arc::ptr_eq(script, &self.0));
    }
}

fn running() -> MutexGuard<'static, Vec<Arc<Script>>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Registers the thread of a script.
#[derive(Debug)]
pub(super) struct Watched(Arc<Script>);

impl Watched {
    /// Starts watching the thread that calls this.
    pub(super) fn this_thread(&self) {
        if let Ok(own) = fs::read_link("/proc/thread-self") {
            // Set once, since a run has one thread.
            let _ = self
                .0
                .stat
                .set(PathBuf::from("/proc").join(own).join("stat"));
        }
    }
}

impl Script {
    fn look(&self) -> Option<Look> {
        Some(Look {
            all: resident()?,
            own: self.taken()?,
        })
    }

    /// Returns the use of a script that was measured before.
    fn used(&self) -> Option<Used> {
        let before = self.before.get()?;
        Some(Used {
            own: self.taken()?.saturating_sub(before.own),
            all_before: before.all,
            ending: self.ending.get().is_some(),
        })
    }

    /// Returns the memory that the thread has touched since its start, in bytes. Reused memory and huge pages count as
    /// new small pages, so the value only attributes the growth of the process.
    fn taken(&self) -> Option<u64> {
        let stat = fs::read_to_string(self.stat.get()?).ok()?;
        // The name in parentheses may contain anything. Minor faults are the tenth field.
        let faults = stat.rsplit_once(") ")?.1.split(' ').nth(7)?;
        Some(faults.parse::<u64>().ok()? * rustix::param::page_size() as u64)
    }
}

/// Use of memory by one of several scripts, in bytes.
#[derive(Debug, Clone, Copy)]
struct Used {
    own: u64,
    /// Memory of the whole process when the script began.
    all_before: u64,
    ending: bool,
}

impl Used {
    /// Returns the script's share of the growth of the process since it began. If the scripts caused less than half of
    /// it, only the memory that the script touched counts.
    fn share(self, all: u64, scripts: &[Self]) -> u64 {
        let grown = all.saturating_sub(self.all_before);
        let sum: u64 = scripts.iter().map(|script| script.own).sum();
        if sum < grown / 2 || sum == 0 {
            return self.own;
        }
        let share = u128::from(grown) * u128::from(self.own) / u128::from(sum);
        u64::try_from(share).unwrap_or(u64::MAX)
    }

    /// Returns true if all scripts use more than `most` bytes, and none more than this one. While one is being ended, its
    /// memory is about to be freed.
    fn is_greatest(self, all: u64, scripts: &[Self], most: u64) -> bool {
        let before = scripts.iter().map(|script| script.all_before).min();
        let grown = all.saturating_sub(before.unwrap_or(all));
        let sum: u64 = scripts.iter().map(|script| script.own).sum();
        let stays = |script: &Self| script.own <= self.own && !script.ending;
        grown > most && sum > most / 2 && scripts.iter().all(stays)
    }
}

/// A measurement, in bytes.
#[derive(Debug, Clone, Copy)]
struct Look {
    /// Memory of the whole process.
    all: u64,
    /// Memory that the script's thread has touched since its start.
    own: u64,
}

/// Returns the memory of the whole process, in bytes.
fn resident() -> Option<u64> {
    let pages = fs::read_to_string("/proc/self/statm").ok()?;
    let pages = pages.split(' ').nth(1)?.parse::<u64>().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(own: u64) -> Used {
        Used {
            own,
            all_before: 100,
            ending: false,
        }
    }

    #[test]
    fn the_share_of_a_script_is_what_it_caused() {
        let one = used(20);
        assert_eq!(one.share(120, &[one]), 20, "it caused all");
        assert_eq!(
            one.share(120, &[one, used(20)]),
            10,
            "another script caused half"
        );
        assert_eq!(one.share(110, &[one]), 10, "the memory was freed");
        assert_eq!(one.share(1000, &[one]), 20, "the worker caused the most");
        assert_eq!(one.share(0, &[one]), 0, "there is less than before");
    }

    #[test]
    fn of_all_scripts_the_greatest_is_ended_and_only_one() {
        let (small, large) = (used(20), used(30));
        let scripts = [small, large];
        assert!(large.is_greatest(151, &scripts, 50));
        assert!(!small.is_greatest(151, &scripts, 50), "another took more");
        assert!(
            !large.is_greatest(150, &scripts, 50),
            "they are within the limit"
        );
        assert!(
            !large.is_greatest(1000, &scripts, 100),
            "the worker took it"
        );
        let ending = Used {
            ending: true,
            ..large
        };
        assert!(
            !small.is_greatest(151, &[small, ending], 50),
            "one is ending"
        );
    }
}
