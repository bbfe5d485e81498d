//! Memory watchdog of a script: Rhai limits single values, but not every growth of an array or map. It works on Linux
//! only.

use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

/// Greatest growth of the process, in bytes, while a script caused at least half of it: several times the need of the
/// largest input.
pub(super) const MOST: u64 = 1 << 30;

/// Interval of checks; a script allocates some tens of MiB in this time.
const EVERY: Duration = Duration::from_millis(50);

/// A script used too much memory.
#[derive(Debug, thiserror::Error)]
#[error("the script took more than {} MiB of memory", .0 >> 20)]
pub(super) struct TooMuch(u64);

/// Memory of a script's thread.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// File with the thread's statistics, once it runs.
    stat: OnceLock<PathBuf>,
}

impl Memory {
    /// Starts watching the thread that calls this.
    pub(super) fn watch_this_thread(&self) {
        if let Ok(own) = fs::read_link("/proc/thread-self") {
            // Set once, since a run has one thread.
            let _ = self.stat.set(PathBuf::from("/proc").join(own).join("stat"));
        }
    }

    /// Waits until the script uses more than `most` bytes.
    pub(super) async fn exceeds(&self, most: u64) -> TooMuch {
        let mut before = None;
        loop {
            tokio::time::sleep(EVERY).await;
            let Some(now) = self.look() else { continue };
            if now.exceeds(*before.get_or_insert(now), most) {
                return TooMuch(most);
            }
        }
    }

    fn look(&self) -> Option<Look> {
        Some(Look {
            all: resident()?,
            own: self.taken()?,
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

/// A measurement, in bytes.
#[derive(Debug, Clone, Copy)]
struct Look {
    /// Memory of the whole process.
    all: u64,
    /// Memory that the script's thread has touched since its start.
    own: u64,
}

impl Look {
    fn exceeds(self, before: Self, most: u64) -> bool {
        let grown = self.all.saturating_sub(before.all);
        grown > most && self.own.saturating_sub(before.own) > most / 2
    }
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

    #[test]
    fn only_who_took_it_is_too_hungry() {
        let before = Look { all: 100, own: 50 };
        let after = |all, own| Look { all, own }.exceeds(before, 10);
        assert!(after(111, 61), "it took what the process grew by");
        assert!(after(111, 56), "or the most of it");
        assert!(!after(111, 55), "another did");
        assert!(!after(110, 999), "it gave back what it took");
        assert!(!after(0, 0), "there is less than before");
    }
}
