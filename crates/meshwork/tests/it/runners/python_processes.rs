//! Python scripts as processes: nothing of a run outlives it, whatever it has started and however it ends.
//!
//! A script opens a named pipe, and so does everything that it forks: the end of the pipe is the end of them
//! all.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use meshwork::runtime::{StopReason, StopSignal, builtin};
use meshwork_model::job::Job;
use meshwork_model::outcome::{Failure, Report};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::python::need_python;
use super::support::{
    ENDLESS, PATIENCE, enough_for_a_short_script, failure, job, output, run, run_of, run_with,
    script, within,
};
use meshwork_test_servers::servers::{Tool, need};

/// Opens the pipe and tells of itself.
const OPEN: &str = "import os, sys, signal
pipe = open(os.environ['PIPE'], 'w', buffering=1)
";

/// A child that would wait for ever.
const FORK: &str = "if os.fork() == 0:
    print('child', file=pipe)
    signal.pause()
";

/// A named pipe, and what comes through it: lines, then the end.
struct Watch {
    _folder: TempDir,
    path: PathBuf,
    lines: mpsc::UnboundedReceiver<String>,
}

impl Watch {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let (sender, lines) = mpsc::unbounded_channel();
        let from = path.clone();
        // Opening waits for a writer, and reading for the last of them to go.
        std::thread::spawn(move || read_lines(&from, &sender));
        Self {
            _folder: folder,
            path,
            lines,
        }
    }

    fn job(&self, text: &str) -> Job {
        let env = serde_json::json!({ "PIPE": self.path }).to_string();
        let text = format!("{OPEN}{text}");
        job(&[("script", text.as_bytes()), ("env_vars", env.as_bytes())])
    }

    async fn line(&mut self) -> String {
        within(self.lines.recv())
            .await
            .expect("nobody is left to write")
    }

    /// Waits until every process that holds the pipe is gone.
    async fn all_gone(mut self) {
        within(async { while self.lines.recv().await.is_some() {} }).await;
    }
}

fn read_lines(path: &Path, sender: &mpsc::UnboundedSender<String>) {
    let Ok(mut file) = File::open(path) else {
        return;
    };
    let (mut chunk, mut line) = ([0; 4096], Vec::new());
    while let Ok(length @ 1..) = file.read(&mut chunk) {
        for byte in &chunk[..length] {
            match byte {
                b'\n' => {
                    let text = String::from_utf8_lossy(&std::mem::take(&mut line)).into_owned();
                    let _ = sender.send(text);
                }
                other => line.push(*other),
            }
        }
    }
}

fn started(job: Job, limit: Duration) -> (JoinHandle<Report>, StopSignal) {
    let (run, stop) = run_of(job, limit);
    let runner = builtin("python").unwrap();
    (tokio::spawn(async move { runner.run(run).await }), stop)
}

/// True if this process is a zombie or alive.
fn is_zombie_or_alive(pid: i32) -> bool {
    let how = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    waitid(WaitId::Pid(Pid::from_raw(pid).unwrap()), how).is_ok()
}

#[tokio::test]
async fn at_its_deadline_a_script_goes_with_all_its_children() {
    need_python!();
    let limit = enough_for_a_short_script().await;
    let watch = Watch::new();
    let text =
        format!("print(os.getpid())\n{FORK}signal.signal(15, signal.SIG_IGN)\nsignal.pause()");
    let runner = builtin("python").unwrap();
    let report = run_with(&*runner, watch.job(&text), limit).await;
    assert_eq!(failure(&report), &Failure::timeout());
    let pid = String::from_utf8(report.stdout)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    watch.all_gone().await;
    assert!(!is_zombie_or_alive(pid));
}

#[tokio::test]
async fn a_script_that_is_stopped_goes_with_all_its_children() {
    need_python!();
    let mut watch = Watch::new();
    let (task, stop) = started(watch.job(&format!("{FORK}signal.pause()")), ENDLESS);
    assert_eq!(watch.line().await, "child");
    stop.stop(StopReason::Lost);
    assert!(within(task).await.unwrap().result.is_err());
    watch.all_gone().await;
}

/// Continues after signals, which may come before a wait or during a `print`, and takes time to clean up.
const TIDY: &str = "def tidy(*_):
    os.write(pipe.fileno(), b'tidying\\n')
    os.write(1, b'in order\\n')
    os._exit(0)
signal.signal(15, tidy)
print('ready', file=pipe)
while True:
    pass";

#[tokio::test]
async fn a_script_that_is_asked_to_stop_may_put_things_in_order() {
    need_python!();
    let mut watch = Watch::new();
    let (mut run, stop) = run_of(watch.job(TIDY), ENDLESS);
    run.grace = ENDLESS;
    let runner = builtin("python").unwrap();
    let task = tokio::spawn(async move { runner.run(run).await });
    assert_eq!(watch.line().await, "ready");
    stop.stop(StopReason::Requested);
    assert_eq!(watch.line().await, "tidying");
    let report = within(task).await.unwrap();
    assert_eq!(failure(&report), &Failure::stopped());
    assert_eq!(report.stdout, b"in order\n");
    watch.all_gone().await;
}

#[tokio::test]
async fn who_does_not_heed_the_request_is_killed_after_the_grace() {
    need_python!();
    let mut watch = Watch::new();
    let text = format!("signal.signal(15, signal.SIG_IGN)\n{FORK}signal.pause()");
    let (task, stop) = started(watch.job(&text), ENDLESS);
    assert_eq!(watch.line().await, "child");
    stop.stop(StopReason::Requested);
    assert_eq!(failure(&within(task).await.unwrap()), &Failure::stopped());
    watch.all_gone().await;
}

#[tokio::test]
async fn a_lost_job_is_killed_at_once_also_in_its_grace() {
    need_python!();
    for asked_before in [false, true] {
        let mut watch = Watch::new();
        let text = "signal.signal(15, lambda *_: os.write(pipe.fileno(), b'got it\\n'))
print('ready', file=pipe)
while True:
    pass";
        let (mut run, stop) = run_of(watch.job(text), ENDLESS);
        run.grace = ENDLESS;
        let runner = builtin("python").unwrap();
        let task = tokio::spawn(async move { runner.run(run).await });
        assert_eq!(watch.line().await, "ready");
        if asked_before {
            stop.stop(StopReason::Requested);
            assert_eq!(watch.line().await, "got it");
        }
        stop.stop(StopReason::Lost);
        within(task).await.unwrap();
        watch.all_gone().await;
    }
}

#[tokio::test]
async fn at_its_deadline_a_script_may_put_things_in_order() {
    need_python!();
    let limit = enough_for_a_short_script().await;
    let mut watch = Watch::new();
    let (mut run, _stop) = run_of(watch.job(TIDY), limit);
    run.grace = ENDLESS;
    let runner = builtin("python").unwrap();
    let task = tokio::spawn(async move { runner.run(run).await });
    assert_eq!(watch.line().await, "ready");
    assert_eq!(watch.line().await, "tidying");
    assert_eq!(failure(&within(task).await.unwrap()), &Failure::timeout());
}

#[tokio::test]
async fn a_run_that_is_dropped_takes_its_script_along() {
    need_python!();
    let mut watch = Watch::new();
    let (task, _stop) = started(watch.job(&format!("{FORK}signal.pause()")), ENDLESS);
    assert_eq!(watch.line().await, "child");
    task.abort();
    watch.all_gone().await;
}

#[test]
fn a_runtime_that_is_shut_down_takes_its_scripts_along() {
    need_python!();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut watch = Watch::new();
    runtime.block_on(async {
        let (task, _stop) = started(watch.job(&format!("{FORK}signal.pause()")), ENDLESS);
        assert_eq!(watch.line().await, "child");
        drop(task);
    });
    drop(runtime);
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap()
        .block_on(watch.all_gone());
}

#[tokio::test]
async fn what_a_script_leaves_running_goes_with_it() {
    need_python!();
    let mut watch = Watch::new();
    let text = format!(
        "ready, go = os.pipe()\n{}os.read(ready, 1)\nresult = 'done'",
        FORK.replace("signal.pause()", "os.write(go, b'x'); signal.pause()")
    );
    let (task, _stop) = started(watch.job(&text), ENDLESS);
    assert_eq!(output(&within(task).await.unwrap()), "done");
    assert_eq!(watch.line().await, "child");
    watch.all_gone().await;
}

#[tokio::test]
async fn who_leaves_the_group_with_the_output_in_hand_holds_nothing_up() {
    need_python!();
    let mut watch = Watch::new();
    let text = "ready, go = os.pipe()
if os.fork() == 0:
    os.setsid()
    print(os.getpid(), file=pipe)
    os.write(go, b'x')
    signal.pause()
os.read(ready, 1)
print('said')";
    let (task, _stop) = started(watch.job(text), ENDLESS);
    let pid = watch.line().await.parse().unwrap();
    let report = within(task).await.unwrap();
    assert_eq!(output(&report), "said\n");
    if !super::LAUNCHED {
        // Out of the runner's reach: it has to be a process of its own for this.
        kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    }
    watch.all_gone().await;
}

#[tokio::test]
async fn a_signal_to_the_own_group_is_the_scripts_alone() {
    need_python!();
    for signal in ["SIGTERM", "SIGHUP", "SIGINT", "SIGUSR1", "SIGALRM"] {
        let text = format!(
            "import os, signal, time
seen = []
signal.signal(signal.{signal}, lambda *_: seen.append('seen'))
os.kill(0, signal.{signal})
result = seen[0]"
        );
        assert_eq!(output(&run("python", script(&text)).await), "seen");
    }
}

#[tokio::test]
async fn a_script_takes_its_whole_group_along_by_its_own_hand() {
    need_python!();
    let watch = Watch::new();
    let text = format!("{FORK}os.kill(0, signal.SIGKILL)");
    let (task, _stop) = started(watch.job(&text), ENDLESS);
    let report = within(task).await.unwrap();
    assert_eq!(failure(&report).message, "killed by signal 9 (SIGKILL)");
    watch.all_gone().await;
}

#[tokio::test]
async fn a_fork_that_runs_on_to_the_end_leaves_no_outcome() {
    need_python!();
    for end in [
        "result = 'child'",
        "raise ValueError('child')",
        "result = object()",
    ] {
        let text = format!(
            "import os\nif os.fork() == 0:\n    {end}\nelse:\n    os.wait()\n    result = 'parent'"
        );
        assert_eq!(
            output(&run("python", script(&text)).await),
            "parent",
            "{end}"
        );
    }
}

#[tokio::test]
async fn a_pipe_in_place_of_the_outcome_blocks_nothing() {
    need_python!();
    let text = "import os
outcome = os.path.dirname(os.getcwd()) + '/outcome'
os.unlink(outcome)
os.mkfifo(outcome)
print('said', flush=True)
os._exit(0)";
    let report = run("python", script(text)).await;
    assert_eq!(output(&report), "said\n");
}

#[tokio::test]
async fn a_folder_that_a_link_replaces_is_removed_and_the_link_is_not_followed() {
    need_python!();
    let other = tempfile::tempdir().unwrap();
    std::fs::write(other.path().join("kept"), "").unwrap();
    let text = format!(
        "import os
root = os.path.dirname(os.getcwd())
os.rename(root, root + '-moved')
os.symlink({:?}, root)
print(root)",
        other.path().to_str().unwrap()
    );
    let report = run("python", script(&text)).await;
    let root = output(&report).trim_end().to_owned();
    let there = |path: &str| std::fs::symlink_metadata(path).is_ok();
    assert!(!there(&root) && !there(&format!("{root}-moved")), "{root}");
    assert!(other.path().join("kept").exists());
}

/// Not a test: a worker in a process and an environment of its own. Runs the script that it is given, and
/// prints what came of it.
#[test]
#[ignore = "started by the tests below it"]
fn worker() {
    let Some(text) = std::env::var_os("WORKER_SCRIPT") else {
        return;
    };
    let env = std::env::var("WORKER_ENV").unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let job = job(&[
        ("script", text.as_encoded_bytes()),
        ("env_vars", env.as_bytes()),
    ]);
    println!("{:?}", runtime.block_on(run("python", job)).result);
}

/// Has a [`worker`] run this script.
fn worker_with(text: &str, env: &serde_json::Value) -> Command {
    let mut worker = Command::new(std::env::current_exe().unwrap());
    // The harness knows its tests without the name of the program.
    let (_, module) = module_path!().split_once("::").unwrap();
    worker.args([
        "--exact",
        &format!("{module}::worker"),
        "--ignored",
        "--nocapture",
    ]);
    worker
        .env("WORKER_SCRIPT", text)
        .env("WORKER_ENV", env.to_string());
    worker
}

#[test]
fn without_python_a_job_fails_permanently_and_says_what_to_do() {
    for (name, value) in [("MESHWORK_PYTHON", "/nowhere/python"), ("PATH", "/nowhere")] {
        let mut worker = worker_with("result = 1", &serde_json::json!({}));
        let output = worker
            .env_remove("MESHWORK_PYTHON")
            .env(name, value)
            .output()
            .unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(
            said.contains("kind: Permanent") && said.contains("no Python: "),
            "{said}"
        );
        assert!(
            said.contains("name it: `worker --python PATH`, or MESHWORK_PYTHON"),
            "{said}"
        );
    }
}

#[test]
fn the_workers_secrets_stay_with_it() {
    need_python!();
    let text = "import os\nresult = ' '.join(sorted(os.environ))";
    let mut worker = worker_with(text, &serde_json::json!({ "MINE": "1" }));
    let output = worker
        .env("REDIS_URL", "redis://:secret@host")
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let names =
        "CALLER_ID CONTEXT_ID HOME JOB_ID LANG MESHWORK_CALLS MESHWORK_JOB MINE PATH TMPDIR";
    assert!(said.contains(&format!("{:?}", names.as_bytes())), "{said}");
}

#[tokio::test]
async fn scripts_go_with_a_worker_that_is_killed() {
    need_python!();
    let mut watch = Watch::new();
    let folder = tempfile::tempdir().unwrap();
    let text =
        format!("{OPEN}open('file', 'w').close()\nos.symlink('/', 'link')\n{FORK}signal.pause()");
    let env = serde_json::json!({ "PIPE": watch.path });
    let mut worker = worker_with(&text, &env);
    worker
        .env("TMPDIR", folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut worker = worker.spawn().unwrap();
    assert_eq!(watch.line().await, "child");
    let files = || std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(files(), 1);
    worker.kill().unwrap();
    worker.wait().unwrap();
    watch.all_gone().await;
    // A launcher removes the folder after it has ended them.
    let removed = async || (files() == 0).then_some(());
    meshwork_test_servers::eventually("its folder is removed", PATIENCE, removed).await;
}
