//! Processes of this host: their identity, and whether they have ended.

use rustix::process::{Pid, test_kill_process};

/// Identity of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: u32,
    pub(super) hostname: String,
    /// Start time in the kernel's ticks. Pids are reused, but not with the same start time.
    pub(super) started: Option<u64>,
    /// Scope of the pid: the boot of the kernel, and the pid namespace. Several hosts may have the same name.
    pub(super) counted_in: Option<String>,
}

impl Process {
    /// Returns the identity of this process.
    pub(super) fn own() -> Self {
        let pid = std::process::id();
        Self {
            pid,
            hostname: rustix::system::uname()
                .nodename()
                .to_string_lossy()
                .into_owned(),
            started: started(pid),
            counted_in: counted_in(),
        }
    }

    /// Returns true if the process ran in the pid namespace of this one and has ended; false if unknown.
    pub(super) fn is_gone(&self, own: &Self) -> bool {
        let same_host = match (&self.counted_in, &own.counted_in) {
            (Some(there), Some(here)) => there == here,
            _ => self.hostname == own.hostname,
        };
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        let Some(pid) = pid.filter(|_| same_host) else {
            return false;
        };
        if test_kill_process(pid) == Err(rustix::io::Errno::SRCH) {
            return true;
        }
        match (self.started, State::of(self.pid)) {
            (Some(then), State::Runs { started }) => then != started,
            (Some(_), State::Ended) => true,
            // Processes of other users may be hidden (`hidepid`).
            (None, _) | (_, State::Unknown) => false,
        }
    }

    /// Returns true if the process certainly runs: in the pid namespace of this one, under its start time.
    pub(super) fn is_alive(&self, own: &Self) -> bool {
        let same_scope = self.counted_in.is_some() && self.counted_in == own.counted_in;
        let runs = || match State::of(self.pid) {
            State::Runs { started } => self.started == Some(started),
            State::Ended | State::Unknown => false,
        };
        same_scope && runs()
    }

    /// As [`Self::is_gone`], but the kernel must show that both processes have the same boot and pid namespace. Only
    /// then may the jobs of the process be released: two hosts may have the same name.
    pub(super) fn is_dead(&self, own: &Self) -> bool {
        self.counted_in.is_some() && self.counted_in == own.counted_in && self.is_gone(own)
    }
}

/// State of a pid.
enum State {
    /// Start time in clock ticks since the boot. A suspended process counts as running.
    Runs {
        started: u64,
    },
    /// It has ended, and its parent has not reaped it.
    Ended,
    Unknown,
}

impl State {
    fn of(pid: u32) -> Self {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // The name in parentheses may contain anything. The state and numbers follow.
        let Some((_, rest)) = stat.rsplit_once(')') else {
            return Self::Unknown;
        };
        let mut words = rest.split_ascii_whitespace();
        if matches!(words.next(), Some("Z" | "X")) {
            return Self::Ended;
        }
        let started = words.nth(18).and_then(|word| word.parse().ok());
        started.map_or(Self::Unknown, |started| Self::Runs { started })
    }
}

/// Returns the start time of a running process, in clock ticks since the boot, if known.
fn started(pid: u32) -> Option<u64> {
    match State::of(pid) {
        State::Runs { started } => Some(started),
        State::Ended | State::Unknown => None,
    }
}

fn counted_in() -> Option<String> {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let namespace = std::fs::read_link("/proc/self/ns/pid").ok()?;
    let counted_in = format!("{} {}", boot.trim(), namespace.display());
    // Start times depend on the reader's time namespace.
    match std::fs::read_link("/proc/self/ns/time") {
        Ok(time) => Some(format!("{counted_in} {}", time.display())),
        Err(_) => Some(counted_in),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_ended_is_gone_and_this_one_is_not() {
        let own = Process::own();
        assert!(!own.is_gone(&own) && own.is_alive(&own) == own.started.is_some());
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let other = Process {
            pid: child.id(),
            started: started(child.id()),
            ..own.clone()
        };
        assert!(!other.is_gone(&own));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(other.is_gone(&own) && !other.is_alive(&own));
    }

    #[test]
    fn a_pid_given_out_again_is_another_process() {
        let own = Process::own();
        let before = Process {
            started: own.started.map(|started| started + 1),
            ..own.clone()
        };
        assert_eq!(before.is_gone(&own), own.started.is_some());
    }

    #[test]
    fn a_process_that_is_stopped_is_not_dead() {
        let own = Process::own();
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let pid = Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
        let other = Process {
            pid: child.id(),
            started: started(child.id()),
            ..own.clone()
        };
        assert!(!other.is_dead(&own));
        // It has ended, although it is not reaped.
        child.kill().unwrap();
        while !matches!(State::of(child.id()), State::Ended) {
            std::thread::yield_now();
        }
        assert_eq!(other.is_dead(&own), own.counted_in.is_some());
        child.wait().unwrap();
    }

    #[test]
    fn of_another_host_nothing_is_known() {
        let own = Process::own();
        let gone = Process {
            pid: u32::try_from(i32::MAX).unwrap(),
            ..own.clone()
        };
        assert!(gone.is_gone(&own));
        let unknown = Process {
            counted_in: None,
            started: None,
            ..gone.clone()
        };
        assert!(unknown.is_gone(&own));
        // A host name suffices to take over a name, but not to release jobs.
        assert!(!unknown.is_dead(&own));
        assert_eq!(gone.is_dead(&own), own.counted_in.is_some());
        // Hosts with the same name differ by kernel.
        let twin = Process {
            counted_in: Some("another boot".to_owned()),
            ..gone
        };
        assert_eq!(twin.is_gone(&own), own.counted_in.is_none());
        let elsewhere = Process {
            counted_in: twin.counted_in.clone(),
            ..own.clone()
        };
        assert!(!elsewhere.is_alive(&own));
        let elsewhere = Process {
            hostname: "another".to_owned(),
            ..twin
        };
        assert!(!elsewhere.is_gone(&own));
    }
}
