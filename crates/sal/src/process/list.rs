//! Processes that the script can see: in the sandbox, its own.

use std::fs;
use std::io;

use regex::Regex;
use rustix::process::{Pid, Signal, kill_process};

/// Bytes of a mebibyte.
const MIB: f64 = (1 << 20) as f64;

/// Reason why no process was found or ended.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProcessError {
    #[error("Failed to list processes: {0}")]
    List(io::Error),
    #[error("No processes found matching '{0}'")]
    None(String),
    #[error("Multiple processes ({1}) found matching '{0}'")]
    Several(String, usize),
    #[error("Failed to kill processes: {0}")]
    Pattern(regex::Error),
    #[error("Failed to kill processes: {0}: {1}")]
    Kill(i64, io::Error),
}

/// A process.
#[derive(Debug, Clone)]
pub(super) struct ProcessInfo {
    pub(super) pid: i64,
    pub(super) name: String,
    /// Resident memory, in MiB.
    pub(super) memory: f64,
    /// Processor time since its start, in percent of one processor.
    pub(super) cpu: f64,
}

/// Returns the numbers of all processes.
fn pids() -> Result<Vec<i64>, ProcessError> {
    let entries = fs::read_dir("/proc").map_err(ProcessError::List)?;
    let names = entries.flatten().map(|entry| entry.file_name());
    let mut pids: Vec<i64> = names
        .filter_map(|name| name.to_str()?.parse().ok())
        .collect();
    pids.sort_unstable();
    Ok(pids)
}

/// Returns the processes whose name contains `pattern`.
pub(super) fn all(pattern: &str) -> Result<Vec<ProcessInfo>, ProcessError> {
    let uptime = uptime();
    // A process may end meanwhile.
    let all = pids()?.into_iter().filter_map(|pid| info(pid, uptime));
    Ok(all
        .filter(|process| process.name.contains(pattern))
        .collect())
}

/// Returns the only process whose name contains `pattern`.
pub(super) fn one(pattern: &str) -> Result<ProcessInfo, ProcessError> {
    let mut found = all(pattern)?;
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(ProcessError::None(pattern.to_owned())),
        several => Err(ProcessError::Several(pattern.to_owned(), several)),
    }
}

/// Sends SIGTERM to the processes whose command line matches the regular expression, but for this one.
pub(super) fn kill(pattern: &str) -> Result<String, ProcessError> {
    let pattern = Regex::new(pattern).map_err(ProcessError::Pattern)?;
    let own = i64::from(std::process::id());
    let mut killed = false;
    for pid in pids()?.into_iter().filter(|pid| *pid != own) {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        let target = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let Some(target) = target.filter(|_| pattern.is_match(line.trim())) else {
            continue;
        };
        match kill_process(target, Signal::TERM) {
            Ok(()) => killed = true,
            Err(rustix::io::Errno::SRCH) => {}
            Err(error) => return Err(ProcessError::Kill(pid, error.into())),
        }
    }
    Ok(match killed {
        true => "Successfully killed processes".to_owned(),
        false => "No matching processes found".to_owned(),
    })
}

/// Returns the time since the start of the host, in seconds.
fn uptime() -> f64 {
    let text = fs::read_to_string("/proc/uptime").unwrap_or_default();
    let first = text.split(' ').next();
    first
        .and_then(|seconds| seconds.parse().ok())
        .unwrap_or(0.0)
}

fn info(pid: i64, uptime: f64) -> Option<ProcessInfo> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (before, after) = stat.rsplit_once(')')?;
    let (_, name) = before.split_once('(')?;
    // The state is the third field of `stat`.
    let fields: Vec<&str> = after.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<f64>().ok();
    let (ticks, page) = (
        rustix::param::clock_ticks_per_second(),
        rustix::param::page_size(),
    );
    let ticks = ticks as f64;
    let (used, start) = ((field(14)? + field(15)?) / ticks, field(22)? / ticks);
    let age = uptime - start;
    Some(ProcessInfo {
        pid,
        name: name.to_owned(),
        memory: field(24)? * page as f64 / MIB,
        cpu: if age > 0.0 { 100.0 * used / age } else { 0.0 },
    })
}
