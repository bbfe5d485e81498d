//! Python scripts of a real worker: nothing of a run outlives its worker or its end, wherever it hides.

use std::fs;
use std::os::fd::OwnedFd;
use std::time::Duration;

use crate::common::{Ground, Running, eventually, json};
use meshwork_test_servers::servers::{Tool, need};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

/// Longest time until a process is gone. It takes milliseconds; a machine that builds at the same time takes longer.
const GONE: Duration = Duration::from_secs(5);

/// The interpreter itself, in C, with its lock held: minutes.
const BUSY: &str = "sum(range(6*10**9))";

/// Tells the test a number.
const TELL: &str = "
import os, signal, subprocess, sys, time
def tell(name, number):
    with open(FOLDER + name + '.part', 'w') as file:
        file.write(str(number))
    os.rename(FOLDER + name + '.part', FOLDER + name)
";

/// Starts a process that leaves its group, its session and its parent, and waits until it is there.
const ESCAPE: &str = "
ready, go = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        tell('escaped', os.getpid())
        os.write(go, b'x')
        signal.pause()
    os._exit(0)
os.wait()
os.read(ready, 1)
";

/// A process whose pid a script has written. A descriptor keeps the pid from being reused.
struct Process {
    pid: Pid,
    handle: OwnedFd,
}

impl Process {
    /// Waits until the script has written its pid.
    fn read(ground: &Ground, name: &str) -> Self {
        let number = eventually(&format!("the script tells of `{name}`"), || {
            fs::read_to_string(ground.path(name)).ok()
        });
        let pid = Pid::from_raw(number.parse().unwrap()).unwrap();
        let handle = pidfd_open(pid, PidfdFlags::empty()).unwrap();
        Self { pid, handle }
    }

    fn is_gone(&self, within: Duration) -> bool {
        let bound = Timespec::try_from(within).unwrap();
        let mut ended = [PollFd::new(&self.handle, PollFlags::IN)];
        poll(&mut ended, Some(&bound)).unwrap() == 1
    }

    #[track_caller]
    fn assert_gone(&self) {
        let gone = self.is_gone(GONE);
        // Nothing of a failed test goes on.
        kill_process(self.pid, Signal::KILL).ok();
        assert!(gone, "{:?} outlived its worker or its run", self.pid);
    }
}

/// A worker with a job of this script; none without Python.
fn worker_with(script: &str, options: &[&str]) -> Option<(Ground, Running, String)> {
    need(Tool::Python)?;
    let ground = Ground::embedded()?;
    let folder = format!("FOLDER = {:?} + '/'", ground.path(".").to_str().unwrap());
    ground.file("job.py", format!("{folder}{TELL}{script}"));
    let worker = ground.worker(&["--type", "python", "--cancel-grace", "0"]);
    let submit = [&["job", "submit", "job.py", "--retries", "0"], options].concat();
    let id = ground.run(&submit).ok().stdout.trim().to_owned();
    Some((ground, worker, id))
}

fn ended(ground: &Ground, id: &str) -> serde_json::Value {
    eventually("the job ends", || {
        let job = ground.run(&["job", "status", id, "--json"]).ok().json();
        matches!(job["status"].as_str(), Some("finished" | "error")).then_some(job)
    })
}

#[test]
fn a_script_that_keeps_the_interpreter_busy_ends_with_its_killed_worker() {
    let script = format!("tell('script', os.getpid())\n{BUSY}");
    let Some((ground, worker, _)) = worker_with(&script, &[]) else {
        return;
    };
    let script = Process::read(&ground, "script");
    assert!(!script.is_gone(Duration::ZERO));
    worker.kill();
    script.assert_gone();
}

#[test]
fn what_a_script_became_and_started_ends_with_its_killed_worker() {
    let script = format!(
        "tell('child', subprocess.Popen(['sleep', '1000']).pid)
tell('script', os.getpid())
os.execv(sys.executable, [sys.executable, '-c', '{BUSY}'])"
    );
    let Some((ground, worker, _)) = worker_with(&script, &[]) else {
        return;
    };
    let processes = ["child", "script"].map(|name| Process::read(&ground, name));
    worker.kill();
    processes.iter().for_each(Process::assert_gone);
}

#[test]
fn who_left_the_group_ends_with_the_run() {
    let Some((ground, worker, id)) = worker_with(&format!("{ESCAPE}result = 'done'"), &[]) else {
        return;
    };
    let escaped = fs::read_to_string(ground.path("escaped"));
    let job = ended(&ground, &id);
    assert_eq!(job["output"], "done", "{job}");
    let pid = escaped.or_else(|_| fs::read_to_string(ground.path("escaped")));
    let pid = Pid::from_raw(pid.unwrap().parse().unwrap()).unwrap();
    // The run was reported after its end: whoever has this number now is no process of it.
    let cmdline = fs::read_to_string(format!("/proc/{}/cmdline", pid.as_raw_pid()));
    let left = cmdline.is_ok_and(|words| words.contains("python"));
    if left {
        kill_process(pid, Signal::KILL).ok();
    }
    assert!(!left, "{pid:?} outlived its run");
    worker.stop();
}

#[test]
fn who_left_the_group_ends_with_a_killed_worker() {
    let script = format!("{ESCAPE}tell('script', os.getpid())\n{BUSY}");
    let Some((ground, worker, _)) = worker_with(&script, &[]) else {
        return;
    };
    let processes = ["escaped", "script"].map(|name| Process::read(&ground, name));
    worker.kill();
    processes.iter().for_each(Process::assert_gone);
}

#[test]
fn a_script_ends_with_its_killed_launcher() {
    let script = format!(
        "tell('child', subprocess.Popen(['sleep', '1000']).pid)
tell('launcher', os.getppid())
tell('script', os.getpid())
{BUSY}"
    );
    let Some((ground, worker, id)) = worker_with(&script, &[]) else {
        return;
    };
    let [child, script, launcher] =
        ["child", "script", "launcher"].map(|name| Process::read(&ground, name));
    let cmdline = fs::read_to_string(format!("/proc/{}/cmdline", launcher.pid.as_raw_pid()));
    assert!(cmdline.unwrap().contains("__sandbox"));
    kill_process(launcher.pid, Signal::KILL).unwrap();
    script.assert_gone();
    child.assert_gone();
    let job = ended(&ground, &id);
    assert_eq!(job["error"], "killed by signal 9 (SIGKILL)", "{job}");
    worker.stop();
}

#[test]
fn what_left_the_session_ends_when_its_script_kills_the_launcher() {
    let script = format!("{ESCAPE}\nos.kill(os.getppid(), signal.SIGKILL)\nsignal.pause()");
    let Some((ground, worker, id)) = worker_with(&script, &[]) else {
        return;
    };
    // Another run of the worker goes on.
    ground.file(
        "other.py",
        "import time\nprint('begun', flush=True)\ntime.sleep(1)\nresult = 7",
    );
    Process::read(&ground, "escaped").assert_gone();
    let job = ended(&ground, &id);
    assert_eq!(job["error"], "killed by signal 9 (SIGKILL)", "{job}");
    assert_eq!(ground.run(&["run", "other.py"]).ok().stdout, "7\n");
    let zombies = fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        stat.contains(&format!(") Z {} ", worker.pid()))
    });
    assert_eq!(zombies.count(), 0);
    worker.stop();
}

#[test]
fn no_script_escapes_its_deadline_by_a_stopped_launcher() {
    let script = format!(
        "{ESCAPE}tell('script', os.getpid())
os.kill(os.getppid(), signal.SIGSTOP)
{BUSY}"
    );
    let Some((ground, worker, id)) = worker_with(&script, &["--timeout", "3"]) else {
        return;
    };
    let processes = ["escaped", "script"].map(|name| Process::read(&ground, name));
    let job = ended(&ground, &id);
    assert_eq!(job["error"], "timeout", "{job}");
    processes.iter().for_each(Process::assert_gone);
    worker.stop();
}

#[test]
fn a_script_finds_no_descriptor_that_its_worker_was_started_with() {
    if need(Tool::Python).is_none() {
        return;
    }
    let ground = Ground::embedded().unwrap();
    // The file for the outcome is the run's own.
    let text = "import os
paths = {int(n): '/proc/self/fd/' + n for n in os.listdir('/proc/self/fd')}
open = sorted(n for n in paths if os.path.lexists(paths[n]))
result = [n for n in open if not os.readlink(paths[n]).endswith('/outcome')]";
    ground.file("job.py", text);
    let worker = ground.command(&["worker", "--json", "--type", "python"]);
    let mut shell = std::process::Command::new("sh");
    shell.current_dir(ground.path(".")).env_clear();
    shell.envs(
        worker
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    shell.args(["-c", "exec 3<job.py 9<job.py \"$@\"", "sh"]);
    shell.arg(worker.get_program()).args(worker.get_args());
    let mut worker = Running::start(shell);
    assert_eq!(json(&worker.line())["event"], "listening");
    let id = ground.run(&["job", "submit", "job.py"]).ok().stdout;
    assert_eq!(ended(&ground, id.trim())["output"], json("[0,1,2]"));
    worker.stop();
}

#[test]
fn a_second_run_does_not_overlap_the_first() {
    let script = format!(
        "try:
    first = int(open(FOLDER + 'first').read())
except OSError:
    tell('first', os.getpid())
    {BUSY}
try:
    os.kill(first, 0)
    result = 'the first still runs'
except ProcessLookupError:
    result = 'alone'"
    );
    let Some((ground, worker, id)) = worker_with(&script, &[]) else {
        return;
    };
    let first = Process::read(&ground, "first");
    worker.kill();
    let second = ground.worker(&["--type", "python"]);
    let job = ended(&ground, &id);
    first.assert_gone();
    assert_eq!(
        (&job["output"], &job["lost"]),
        (&json("\"alone\""), &json("1")),
        "{job}"
    );
    second.stop();
}
