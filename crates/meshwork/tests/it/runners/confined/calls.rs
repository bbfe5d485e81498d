//! Random system calls in the profile `strict`: they change neither the host nor the worker.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant, SystemTime};

use meshwork::runtime::{Confinement, sandbox_host};
use meshwork_model::outcome::Report;
use meshwork_model::sandbox::{Limit, Profile};

use super::super::LAUNCHED;
use super::super::support::output;
use super::escape::compile;
use super::{is_root, python_in, run_again, run_in};

/// Variables with the number of calls, and with the first of the seeds.
const CALLS: &str = "MESHWORK_CALLS";
const SEED: &str = "MESHWORK_SEED";
/// Calls of the ordinary check: a few seconds.
const FEW: u64 = 20_000;
/// Most calls of one run, which ends before its deadline.
const OF_ONE_RUN: u64 = 50_000;
/// Most runs. A call that kills all processes of its run ends it early.
const MAX_RUNS: u64 = 1_000;
/// Greatest difference of a clock that nobody has set.
const CLOCK: Duration = Duration::from_secs(2);

/// Files of `/proc` that stay as they are on a host where nothing else happens, in namespaces of the test.
const UNCHANGED: [&str; 13] = [
    "self/mountinfo",
    "self/limits",
    "swaps",
    "sysvipc/msg",
    "sysvipc/sem",
    "sysvipc/shm",
    "sys/kernel/core_pattern",
    "sys/kernel/domainname",
    "sys/kernel/hostname",
    "sys/kernel/pid_max",
    "sys/kernel/randomize_va_space",
    "sys/net/ipv4/ip_forward",
    "sys/vm/overcommit_memory",
];
/// Lines of the status of a process that nothing changes by itself.
const STATUS: [&str; 12] = [
    "Name",
    "Uid",
    "Gid",
    "Groups",
    "SigBlk",
    "SigIgn",
    "CapEff",
    "CapBnd",
    "NoNewPrivs",
    "Seccomp",
    "Cpus_allowed",
    "PPid",
];

/// Returns what the host, the worker, which is this process, and another process of its user are like.
fn host(outside: &Path, other: &Child) -> Vec<String> {
    let read = |path: String| {
        let text = fs::read_to_string(format!("/proc/{path}")).unwrap_or_default();
        format!("{path}: {text}")
    };
    let mut all: Vec<String> = UNCHANGED
        .iter()
        .map(|path| read((*path).to_owned()))
        .collect();
    for pid in [std::process::id(), other.id()] {
        let status = read(format!("{pid}/status"));
        let lines = status.lines();
        let kept = |line: &&str| {
            STATUS
                .iter()
                .any(|name| line.starts_with(&format!("{name}:")))
        };
        all.push(lines.filter(kept).collect::<Vec<_>>().join("\n"));
        all.push(read(format!("{pid}/limits")));
        all.push(read(format!("{pid}/oom_score_adj")));
        let stat = read(format!("{pid}/stat"));
        let fields: Vec<&str> = stat
            .rsplit_once(')')
            .unwrap()
            .1
            .split_whitespace()
            .collect();
        // Group, session, priority, niceness, policy.
        all.push(format!(
            "{pid}: {:?}",
            [2, 3, 15, 16, 38].map(|at: usize| fields[at])
        ));
    }
    for path in ["/", "/etc", "/usr", "/root", "/dev"].map(Path::new) {
        let metadata = fs::metadata(path).unwrap();
        all.push(format!("{path:?} {:o} {}", metadata.mode(), metadata.uid()));
    }
    for name in ["null", "zero", "random", "urandom"] {
        let device = fs::metadata(Path::new("/dev").join(name)).unwrap();
        let of_device = [device.mode(), device.uid(), device.gid()];
        all.push(format!("{name}: {of_device:?} {}", device.mtime()));
    }
    for entry in fs::read_dir(outside).unwrap().flatten() {
        let metadata = entry.metadata().unwrap();
        let content = fs::read(entry.path()).unwrap();
        all.push(format!(
            "{:?} {:?} {:?} {content:?}",
            entry.path(),
            metadata.mode(),
            metadata.mtime()
        ));
    }
    all
}

/// Returns the number of calls that a run made.
fn made(report: &Report) -> u64 {
    let said = String::from_utf8_lossy(&report.stdout).into_owned();
    let counts = said.lines().filter_map(|line| line.strip_prefix("calls "));
    counts
        .filter_map(|count| count.parse().ok())
        .max()
        .unwrap_or(0)
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Runs in a process that the test below starts.
#[tokio::test]
#[ignore = "started by another test"]
async fn random_calls() {
    if sandbox_host().await.unwrap().namespaces.is_err() {
        eprintln!("skipped: the host has no namespaces, so no profile `strict`");
        return;
    }
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "secret").unwrap();
    fs::set_permissions(
        outside.path().join("secret"),
        fs::Permissions::from_mode(0o600),
    )
    .unwrap();
    let programs = tempfile::tempdir().unwrap();
    let program = compile(
        programs.path(),
        "calls",
        &[("calls.c", include_str!("calls.c"))],
    );
    let mut other = Command::new("sleep").arg("10000").spawn().unwrap();
    let most = number(CALLS).unwrap_or(FEW);
    let first = number(SEED).unwrap_or_else(|| u64::from(std::process::id()));
    eprintln!("{SEED}={first}");
    let mut confinement = Confinement::of(Profile::Strict);
    confinement.read.push(program.clone());
    for (limit, value) in [
        (Limit::Memory, 512 << 20),
        (Limit::Processes, 64),
        (Limit::Disk, 64 << 20),
    ] {
        confinement.limits.set(limit, Some(value));
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the clock of the host stays, too"
    )]
    let (clock, began) = (SystemTime::now(), Instant::now());
    let before = host(outside.path(), &other);
    let (mut calls, mut runs) = (0, 0);
    while calls < most {
        assert!(runs < MAX_RUNS, "{calls} calls in {runs} runs");
        let seed = first.wrapping_add(runs * OF_ONE_RUN);
        let of_run = (most - calls).min(OF_ONE_RUN);
        let outsiders = [std::process::id(), other.id(), 1];
        let numbers = outsiders.map(|pid| pid.to_string()).join(" ");
        let script = format!(
            "#!/bin/sh\nexec {} {seed} {of_run} {numbers}",
            program.display()
        );
        let script = serde_json::json!({ "script": script, "args": [] }).to_string();
        calls += made(&run_in(confinement.clone(), "exec", &script, "").await);
        runs += 1;
    }
    eprintln!("{calls} calls in {runs} runs");
    assert_eq!(host(outside.path(), &other), before);
    let clocks = [clock.elapsed().unwrap_or_default(), began.elapsed()];
    assert!(clocks[0].abs_diff(clocks[1]) < CLOCK, "{clocks:?}");
    assert!(other.try_wait().unwrap().is_none());
    other.kill().unwrap();
    other.wait().unwrap();
    assert_eq!(output(&python_in(Profile::Strict, "result = 1").await), "1");
}

#[test]
fn random_system_calls_change_nothing_outside() {
    if !LAUNCHED {
        return;
    }
    // The names and mounts of a host where other tests run change by themselves.
    let own = ["unshare", "-mui"];
    let around = if is_root() { &own[..] } else { &[] };
    run_again("confined::calls::random_calls", around, None, "");
}
