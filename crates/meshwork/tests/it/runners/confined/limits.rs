//! Limits of runs, and the resources that they have used.

use std::sync::Arc;
use std::time::Duration;

use meshwork::runtime::{Confinement, builtin, sandbox_host};
use meshwork_model::outcome::FailureKind;
use meshwork_model::sandbox::Usage;
use meshwork_model::sandbox::{Limit, Profile};

use super::super::LAUNCHED;
use super::super::support::{PATIENCE, failure, output, run_of, script, within};
use super::{NOBODY, is_root, need_python, need_sandbox, python_in, run_again};

/// Writes until no room is left, and goes on.
const FILLS: &str = "import time
with open('file', 'wb') as file:
    while True:
        try:
            file.write(b'x' * (1 << 20))
            file.flush()
        except OSError:
            pass
        time.sleep(0.001)";

fn limited(profile: Profile, limit: Limit, value: u64) -> Confinement {
    let mut confinement = Confinement::of(profile);
    confinement.limits.set(limit, Some(value));
    confinement
}

async fn message(confinement: Confinement, text: &str) -> String {
    let runtime = builtin("python").unwrap();
    let (mut run, _stop) = run_of(script(text), PATIENCE);
    run.confinement = confinement;
    let report = within(runtime.run(run)).await;
    let failure = failure(&report);
    assert_eq!(failure.kind, FailureKind::Limit);
    failure.message.clone()
}

#[tokio::test]
async fn a_run_that_exceeds_a_limit_ends_by_its_name() {
    need_sandbox!();
    for (limit, value, text, expected) in [
        (
            Limit::Memory,
            256 << 20,
            "all = []\nwhile True:\n    all.append(b'x' * (16 << 20))",
            "memory limit 256 MiB exceeded",
        ),
        (
            Limit::Memory,
            64 << 20,
            "bytes(bytearray(10 << 30))",
            "memory limit 64 MiB exceeded",
        ),
        (
            Limit::Cpu,
            500,
            "while True:\n    pass",
            "cpu limit 500 ms exceeded",
        ),
        (
            Limit::Processes,
            8,
            "import os, time\nwhile os.fork():\n    time.sleep(0.005)\ntime.sleep(1000)",
            "processes limit 8 exceeded",
        ),
        (Limit::Disk, 8 << 20, FILLS, "disk limit 8 MiB exceeded"),
        (
            Limit::Output,
            1 << 20,
            "while True:\n    print('x' * 1000)",
            "output limit 1 MiB exceeded",
        ),
    ] {
        for profile in Profile::ALL {
            let said = message(limited(profile, limit, value), text).await;
            assert_eq!(said, expected, "{profile}");
        }
    }
}

/// Number of runs beside each one that exceeds a limit.
const NEIGHBOURS: usize = 10;

/// Most memory of a worker beside such runs, in KiB.
const WORKER: u64 = 200 * 1024;

/// Returns the greatest memory of this process so far, in KiB.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let size = line.unwrap().trim().strip_suffix(" kB").unwrap();
    size.trim().parse().unwrap()
}

/// Runs that take all of a resource, and the error of each.
const GREEDY: [(Limit, u64, &str, &str); 5] = [
    (
        Limit::Processes,
        64,
        "import os
while True:
    try:
        os.fork()
    except OSError:
        pass",
        "processes limit 64 exceeded",
    ),
    (
        Limit::Memory,
        256 << 20,
        "bytes(bytearray(10 << 30))",
        "memory limit 256 MiB exceeded",
    ),
    (Limit::Disk, 8 << 20, FILLS, "disk limit 8 MiB exceeded"),
    (
        Limit::Output,
        1 << 20,
        "while True:\n    print('x' * 1000)",
        "output limit 1 MiB exceeded",
    ),
    (
        Limit::Cpu,
        500,
        "import os, time
if os.fork():
    while True:
        pass
os.setsid()
if os.fork() == 0:
    time.sleep(1000)",
        "cpu limit 500 ms exceeded",
    ),
];

/// Runs in processes that the test below starts.
#[tokio::test]
#[ignore = "started by another test"]
async fn greedy_runs() {
    let is_safe = sandbox_host().await.unwrap().bounds_processes;
    for (limit, value, text, expected) in GREEDY {
        if limit == Limit::Processes && !is_safe {
            eprintln!("skipped: the kernel does not bound processes");
            continue;
        }
        let neighbours: Vec<_> = (0..NEIGHBOURS)
            .map(|_| tokio::spawn(python_in(Profile::Standard, "result = 'done'")))
            .collect();
        let said = message(limited(Profile::Standard, limit, value), text).await;
        assert_eq!(said, expected);
        for neighbour in neighbours {
            assert_eq!(output(&neighbour.await.unwrap()), "done", "{limit}");
        }
    }
    let peak = peak_memory();
    assert!(peak < WORKER, "{peak} KiB");
}

#[test]
fn a_run_that_takes_all_of_a_resource_ends_alone() {
    again_as_all_users("confined::limits::greedy_runs");
}

/// The launcher counts 20 times per second, which is too slow for a fork bomb.
#[tokio::test]
async fn the_kernel_bounds_the_processes_of_a_run() {
    need_sandbox!();
    let host = sandbox_host().await.unwrap();
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let numbers: Vec<u32> = release.split(['.', '-']).flat_map(str::parse).collect();
    if !host.bounds_processes || host.groups.is_ok() && numbers < vec![6, 14] {
        eprintln!("skipped: nothing bounds processes, or a control group that runs do not see");
        return;
    }
    let text = "import resource
result = [open('/proc/sys/kernel/pid_max').read().strip(), resource.getrlimit(resource.RLIMIT_NPROC)[1]]";
    for profile in [Profile::Standard, Profile::Strict] {
        let runtime = builtin("python").unwrap();
        let (mut run, _stop) = run_of(script(text), PATIENCE);
        run.confinement = limited(profile, Limit::Processes, 100);
        let report = within(runtime.run(run)).await;
        let (of_namespace, of_user): (String, i64) = serde_json::from_str(output(&report)).unwrap();
        let of_namespace: u64 = of_namespace.parse().unwrap();
        let is_bound = of_namespace < 1000 || (0..1000).contains(&of_user);
        assert!(is_bound, "{profile}: {of_namespace} {of_user}");
    }
}

/// Ways to use 400 MiB that no process maps, and the error where nothing counts them.
const UNMAPPED: [(&str, &str, Option<&str>); 4] = [
    (
        "an anonymous file",
        "import os
file = os.memfd_create('x')
for _ in range(400):
    os.write(file, b'x' * (1 << 20))",
        Some("Function not implemented"),
    ),
    (
        "detached memory",
        "import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
def made(answer):
    if answer in (-1, 2**64 - 1):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return answer
for _ in range(40):
    segment = made(libc.shmget(0, 10 << 20, 0o1600))
    at = made(libc.shmat(segment, None, 0))
    ctypes.memset(at, 1, 10 << 20)
    libc.shmdt(ctypes.c_void_p(at))",
        Some("Operation not permitted"),
    ),
    (
        "buffers of sockets",
        "import socket
pairs = []
for _ in range(480):
    pairs.append(socket.socketpair())
    for end in pairs[-1]:
        end.setblocking(False)
        try:
            while True:
                end.send(b'x' * (1 << 16))
        except BlockingIOError:
            pass
result = 'kept'",
        None,
    ),
    (
        "files in memory",
        "with open('file', 'wb') as file:
    for _ in range(400):
        file.write(b'x' * (1 << 20))",
        Some("memory limit 128 MiB exceeded"),
    ),
];

/// Runs in processes that the test below starts.
#[tokio::test]
#[ignore = "started by another test"]
async fn unmapped_memory() {
    let is_counted = sandbox_host().await.unwrap().groups.is_ok();
    for (kind, text, refusal) in UNMAPPED {
        for profile in [Profile::Standard, Profile::Strict] {
            let runtime = builtin("python").unwrap();
            let (mut run, _stop) = run_of(script(text), PATIENCE);
            run.confinement = limited(profile, Limit::Memory, 128 << 20);
            run.confinement.limits.set(Limit::Disk, Some(1 << 30));
            let usage = Arc::clone(&run.usage);
            let report = within(runtime.run(run)).await;
            match (is_counted, refusal) {
                (true, _) => {
                    let message = &failure(&report).message;
                    assert_eq!(
                        message, "memory limit 128 MiB exceeded",
                        "{kind}, {profile}"
                    );
                    let peak = usage.get().unwrap().peak_memory;
                    assert!(peak > 64 << 20, "{kind}, {profile}: {peak}");
                }
                (false, Some(refusal)) => {
                    let message = &failure(&report).message;
                    assert!(message.contains(refusal), "{kind}, {profile}: {message}");
                }
                // A gap of this host.
                (false, None) => assert_eq!(output(&report), "kept", "{kind}, {profile}"),
            }
        }
    }
}

#[test]
fn memory_that_no_process_maps_is_counted_or_refused() {
    again_as_all_users("confined::limits::unmapped_memory");
}

/// Runs children that nobody waits for, one after another: 1 s of processor time. The second ends with the run. Without
/// groups, the time of each after its last sample is lost: so each stays for some samples, which come late on a busy host.
const UNREAPED: &str = "import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for _ in range(2):
    if os.fork() == 0:
        while time.process_time() < 0.5:
            pass
        # Six times as long as between two samples: the host is busy.
        time.sleep(3)
        os._exit(0)
    try:
        os.wait()
    except ChildProcessError:
        pass";

/// Runs in processes that the test below starts.
#[tokio::test]
#[ignore = "started by another test"]
async fn unreaped_children() {
    for profile in Profile::ALL {
        let said = message(limited(profile, Limit::Cpu, 500), UNREAPED).await;
        assert_eq!(said, "cpu limit 500 ms exceeded", "{profile}");
        let runtime = builtin("python").unwrap();
        let (mut run, _stop) = run_of(script(UNREAPED), PATIENCE);
        run.confinement = limited(profile, Limit::Cpu, 60_000);
        let usage = Arc::clone(&run.usage);
        output(&within(runtime.run(run)).await);
        let usage: Usage = *usage.get().unwrap();
        let cpu = usage.user_ms + usage.system_ms;
        assert!((700..4000).contains(&cpu), "{profile}: {usage:?}");
    }
}

#[test]
fn processor_time_of_children_that_nobody_waits_for_counts() {
    again_as_all_users("confined::limits::unreaped_children");
}

/// Runs an ignored test of this program as this user, and as an ordinary one.
#[track_caller]
fn again_as_all_users(test: &str) {
    if !LAUNCHED || need_python().is_none() {
        return;
    }
    let users = [None, Some(NOBODY)];
    for user in users.into_iter().filter(|user| user.is_none() || is_root()) {
        run_again(test, &[], user, "");
    }
}

#[tokio::test]
async fn open_files_of_a_process_are_limited() {
    need_sandbox!();
    for profile in Profile::ALL {
        let text = "import resource\nresult = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\nopen('/dev/null')";
        let runtime = builtin("python").unwrap();
        let (mut run, _stop) = run_of(script(text), PATIENCE);
        run.confinement = limited(profile, Limit::Files, 64);
        let report = within(runtime.run(run)).await;
        assert_eq!(output(&report), "64", "{profile}");
    }
}

#[tokio::test]
async fn the_usage_of_all_processes_is_told() {
    need_sandbox!();
    for profile in Profile::ALL {
        let text = "import os, time
keep = b'x' * (64 << 20)
pid = os.fork()
if pid == 0:
    until = time.process_time() + 0.3
    while time.process_time() < until:
        pass
    open('file', 'wb').write(b'x' * (3 << 20))
    os._exit(0)
os.waitpid(pid, 0)";
        let runtime = builtin("python").unwrap();
        let (mut run, _stop) = run_of(script(text), PATIENCE);
        run.confinement = Confinement::of(profile);
        let usage = Arc::clone(&run.usage);
        output(&within(runtime.run(run)).await);
        let usage: Usage = *usage.get().unwrap();
        let cpu = Duration::from_millis(usage.user_ms + usage.system_ms);
        assert!(cpu >= Duration::from_millis(300), "{profile}: {usage:?}");
        assert!(usage.peak_memory >= 64 << 20, "{profile}: {usage:?}");
        assert!(usage.peak_memory < 1 << 30, "{profile}: {usage:?}");
        let written = (3 << 20)..(4 << 20);
        assert!(written.contains(&usage.written), "{profile}: {usage:?}");
    }
}
