//! Tasks of apps in other languages: `meshwork worker --app` and `--app-command`.

mod beside;
mod client;
mod kills;
mod node;
mod programs;
mod reload;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::{Pid, Signal, test_kill_process};
use serde_json::{Value, json};

use crate::common::{Ground, Running, eventually, json as parse, on_all_data};

/// An app with a task for each behaviour.
const APP: &str = r#"
import asyncio, ctypes, os, sys, time
from meshwork import App, Context, Discard, Permanent, Retry, Snooze, current

app = App()
started = []

@app.on_start
def connect():
    started.append(os.getpid())

@app.middleware
def noted(ctx, go_on):
    if ctx.task == "noted":
        return ["around", go_on()]
    return go_on()

@app.task
def add(a: int, b: int = 1) -> int:
    print("adds", a, b)
    return a + b

@app.task
async def add_async(a: int, ctx: Context) -> dict:
    print("attempt", ctx.attempt)
    await asyncio.sleep(0)
    return {"sum": a + 1, "id": ctx.id}

@app.task
def noted() -> str:
    return "noted"

@app.task
def digits() -> str:
    return "5"

@app.task
def pid() -> int:
    assert started == [os.getpid()]
    return os.getpid()

@app.task
def fails(how: str):
    if how == "error":
        raise ValueError("no disk")
    if how == "permanent":
        raise Permanent("no account")
    if how == "discard":
        raise Discard("not wanted")
    if how == "retry" and current().attempt == 1:
        raise Retry("busy", after=0.01)
    if how == "snooze" and not os.path.exists("snoozed"):
        open("snoozed", "w").close()
        raise Snooze(0.01)
    return current().attempt

@app.task
def dies(how: str, mark: str = ""):
    if mark:
        open(mark, "w").close()
    if how == "exit":
        os._exit(3)
    if how == "segfault":
        ctypes.string_at(0)
    if how == "loop":
        while True: pass
    if how == "holds":
        # A call in C that holds the interpreter: no other thread of Python runs.
        ctypes.PyDLL(None).sleep(600)

@app.task
def dies_again(mark: str, until: str):
    open(mark, "w").close()
    while not os.path.exists(until): time.sleep(0.01)
    os.remove(until)
    os._exit(3)

@app.task
async def blocks_loop():
    time.sleep(600)

@app.task
def waits(mark: str, until: str) -> str:
    current().progress(0.5, "half")
    open(mark, "w").close()
    while not os.path.exists(until):
        if current().wait_cancelled(0.01):
            return "cancelled"
    return "waited"

@app.task
def floods():
    for n in range(20000):
        print("line", n)
    return "flooded"

@app.schedule("@every 1s", name="ticks", text="tick")
@app.task
def tick(text: str):
    open(text, "w").close()

@app.task
def parent() -> list:
    return [current().add_child(add, 1, b=2), current().add_child(add, 3)]
"#;

fn worker(ground: &Ground, args: &[&str]) -> Running {
    worker_of(ground, APP, args)
}

/// A worker with this app.
fn worker_of(ground: &Ground, app: &str, args: &[&str]) -> Running {
    ground.file("shop.py", app);
    let args = [&["worker", "--json", "--app", "shop:app"], args].concat();
    listening(with_package(ground.command(&args)))
}

/// A command whose Python has the package.
fn with_package(mut command: Command) -> Command {
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packages/python");
    // A compiled file counts as that of a changed one of the same second and size.
    command
        .env("PYTHONPATH", package)
        .env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// A program beside the commands of this test: it uses the same store.
fn with_store(ground: &Ground, mut command: Command) -> Command {
    for (name, value) in ground.command(&["worker"]).get_envs() {
        let is_passed = ["REDIS_URL", "MESHWORK_DATA", "HOME"]
            .iter()
            .any(|it| name == *it);
        if let Some(value) = value.filter(|_| is_passed) {
            command.env(name, value);
        }
    }
    command
}

/// Returns the file of the native module for a language, which is built with the tests.
fn native_module(language: &str) -> PathBuf {
    let folder = std::env::current_exe().unwrap();
    let files = fs::read_dir(folder.parent().unwrap()).unwrap();
    let prefix = format!("libmeshwork_{language}");
    let is_module = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(&prefix) && name.ends_with(".so")
    };
    let modules = files.map(|file| file.unwrap().path()).filter(is_module);
    modules
        .max_by_key(|path| fs::metadata(path).unwrap().modified().unwrap())
        .unwrap()
}

fn listening(command: Command) -> Running {
    let mut worker = Running::start(command);
    assert_eq!(parse(&worker.line())["event"], "listening");
    worker
}

/// Enqueues a job for a task, and returns its id.
fn enqueue(ground: &Ground, task: &str, arguments: &Value, options: &[&str]) -> String {
    let file = ground.file("arguments.json", arguments.to_string());
    let file = file.to_str().unwrap();
    let args = [&["job", "enqueue", file, "--type", task], options].concat();
    ground.run(&args).ok().stdout.trim().to_owned()
}

/// Waits for the end of a job, and returns it.
fn ended(ground: &Ground, id: &str) -> Value {
    ground.run(&["job", "wait", id]);
    ground.run(&["job", "show", id, "--json"]).ok().json()
}

fn result(ground: &Ground, task: &str, arguments: &Value) -> Value {
    let job = ended(ground, &enqueue(ground, task, arguments, &[]));
    assert_eq!(job["state"], "finished", "{job}");
    job["output"].clone()
}

fn exists(ground: &Ground, mark: &str) {
    eventually(mark, || ground.path(mark).exists().then_some(()));
}

on_all_data! {
    fn tasks_run_in_processes_that_have_loaded_the_app_once(ground: &Ground) {
        let worker = worker(ground, &["--processes", "1"]);
        assert_eq!(result(ground, "add", &json!({"a": 2, "b": 3})), 5);
        let id = enqueue(ground, "add", &json!({"a": 2}), &[]);
        let job = ended(ground, &id);
        assert_eq!(job["output"], 3);
        let log = ground.run(&["job", "logs", &id]).ok().stdout;
        assert!(log.contains("adds 2 1"), "{log}");
        let id = enqueue(ground, "add_async", &json!({"a": 2}), &[]);
        assert_eq!(ended(ground, &id)["output"], json!({"sum": 3, "id": id}));
        assert_eq!(result(ground, "noted", &json!({})), json!(["around", "noted"]));
        let pid = result(ground, "pid", &json!({}));
        assert_eq!(pid, result(ground, "pid", &json!({})));
        let children = result(ground, "parent", &json!({}));
        let sums = children.as_array().unwrap().iter().map(|id| ended(ground, id.as_str().unwrap())["output"].clone());
        assert_eq!(sums.collect::<Vec<_>>(), [3, 4]);
        worker.stop();
    }

    fn errors_of_tasks_decide_about_their_jobs(ground: &Ground) {
        let worker = worker(ground, &["--processes", "1"]);
        let of = |how: &str| ended(ground, &enqueue(ground, "fails", &json!({"how": how}), &["--retries", "1", "--backoff", "0"]));
        let error = of("error");
        assert_eq!((&error["error"], &error["attempts"]), (&json!("ValueError: no disk"), &json!(2)), "{error}");
        let trace = error["traceback"].as_str().unwrap();
        assert!(trace.contains("shop.py") && !trace.contains("_child.py"), "{trace}");
        let permanent = of("permanent");
        assert_eq!((&permanent["error"], &permanent["attempts"]), (&json!("no account"), &json!(1)));
        assert_eq!(of("discard")["error"], "not wanted");
        assert_eq!(of("retry")["output"], 2);
        assert_eq!(of("snooze")["output"], 1);
        let dead = ground.run(&["dead", "list", "--json"]).ok().jsons();
        assert_eq!(dead.len(), 2, "{dead:?}");
        // Arguments that do not fit are no fault that a retry mends.
        for (arguments, why) in [
            (json!({"a": "x"}), "argument"),
            (json!({}), "argument a is missing"),
            (json!({"a": 1, "c": 2}), "no argument c"),
            (json!([1]), "no JSON object"),
        ] {
            let job = ended(ground, &enqueue(ground, "add", &arguments, &["--retries", "3"]));
            let error = job["error"].as_str().unwrap();
            assert!(error.contains("do not fit add()") || error.contains(why), "{error}");
            assert_eq!(job["attempts"], 1);
        }
        worker.stop();
    }

    fn a_process_that_dies_fails_its_job_and_is_replaced(ground: &Ground) {
        let worker = worker(ground, &["--processes", "1"]);
        for (how, why) in [("exit", "exit status 3"), ("segfault", "SIGSEGV")] {
            let job = ended(ground, &enqueue(ground, "dies", &json!({"how": how}), &[]));
            let error = job["error"].as_str().unwrap();
            assert!(error.contains("the process of the task ended") && error.contains(why), "{job}");
            assert_eq!(result(ground, "add", &json!({"a": 1})), 2);
        }
        worker.stop();
    }

    fn a_process_that_dies_costs_its_neighbours_no_attempt(ground: &Ground) {
        let worker = worker(ground, &["--processes", "1", "--concurrency", "3"]);
        let waits: Vec<_> = ["one", "two"].map(|mark| {
            let id = enqueue(ground, "waits", &json!({"mark": mark, "until": "done"}), &[]);
            exists(ground, mark);
            id
        }).into();
        let dies = enqueue(ground, "dies", &json!({"how": "exit", "mark": "dies"}), &[]);
        exists(ground, "dies");
        ground.file("done", "");
        let job = ended(ground, &dies);
        assert_eq!(job["error"], "the process of the task ended: exit status 3", "{job}");
        for id in waits {
            let job = ended(ground, &id);
            assert_eq!((&job["output"], &job["attempts"]), (&json!("waited"), &json!(1)), "{job}");
        }
        worker.stop();
    }

    fn a_long_run_that_is_suspected_holds_up_others_for_seconds(ground: &Ground) {
        let worker = worker(ground, &["--processes", "1", "--concurrency", "3"]);
        let waits = enqueue(ground, "waits", &json!({"mark": "waits", "until": "done"}), &["--retries", "1"]);
        exists(ground, "waits");
        let dies = enqueue(ground, "dies_again", &json!({"mark": "dies", "until": "die"}), &[]);
        exists(ground, "dies");
        let again = || for mark in ["waits", "dies"] {
            fs::remove_file(ground.path(mark)).unwrap();
        };
        again();
        ground.file("die", "");
        // Each of both runs alone for a time, and both end beside another run again.
        exists(ground, "waits");
        exists(ground, "dies");
        assert_eq!(result(ground, "add", &json!({"a": 1})), 2);
        again();
        ground.file("die", "");
        let job = ended(ground, &dies);
        let died = json!("the process of the task ended: exit status 3");
        assert_eq!((&job["error"], &job["attempts"]), (&died, &json!(1)), "{job}");
        exists(ground, "waits");
        ground.file("done", "");
        let job = ended(ground, &waits);
        assert_eq!((&job["output"], &job["attempts"]), (&json!("waited"), &json!(2)), "{job}");
        worker.stop();
    }

    fn a_run_that_does_not_end_in_time_ends_with_its_process(ground: &Ground) {
        let worker = worker(ground, &["--processes", "1", "--concurrency", "2", "--cancel-grace", "0.2", "--lease", "1"]);
        let before = result(ground, "pid", &json!({}));
        for (task, arguments) in [
            ("dies", json!({"how": "holds", "mark": "holds"})),
            ("blocks_loop", json!({})),
        ] {
            let job = ended(ground, &enqueue(ground, task, &arguments, &["--timeout", "1"]));
            assert_eq!((&job["error"], &job["attempts"]), (&json!("timeout"), &json!(1)), "{job}");
        }
        let after = result(ground, "pid", &json!({}));
        assert_ne!(before, after);
        // A loop in Python ends by itself: its thread gets an exception.
        let job = ended(ground, &enqueue(ground, "dies", &json!({"how": "loop"}), &["--timeout", "1"]));
        assert_eq!(job["error"], "timeout");
        assert_eq!(result(ground, "pid", &json!({})), after);
        worker.stop();
    }

    fn schedules_of_an_app_are_stored_and_replaced(ground: &Ground) {
        let first = worker(ground, &["--processes", "1"]);
        exists(ground, "tick");
        first.stop();
        let second = worker_of(ground, &APP.replace("@every 1s", "0 4 * * *"), &["--processes", "1"]);
        let shown = ground.run(&["schedule", "list", "--json"]).ok().jsons();
        assert_eq!(shown.len(), 1, "{shown:?}");
        assert!(shown[0].to_string().contains("0 4 * * *"), "{shown:?}");
        second.stop();
        let wrong = APP.replace("@every 1s", "every day");
        ground.file("shop.py", wrong);
        let command = with_package(ground.command(&["worker", "--app", "shop:app"]));
        let done = Running::start(command).ended();
        assert!(done.stderr.contains("schedule \"ticks\" of the app"), "{done:?}");
    }

    fn a_cancelled_task_ends_in_order(ground: &Ground) {
        let worker = worker(ground, &["--processes", "1"]);
        let id = enqueue(ground, "waits", &json!({"mark": "runs", "until": "never"}), &[]);
        exists(ground, "runs");
        eventually("its progress is stored", || {
            let job = ground.run(&["job", "show", &id, "--json"]).ok().json();
            (job["progress"] == "50% half").then_some(())
        });
        let pid = result(ground, "pid", &json!({}));
        ground.run(&["job", "cancel", &id]).ok();
        assert_eq!(ended(ground, &id)["state"], "cancelled");
        assert_eq!(result(ground, "pid", &json!({})), pid);
        worker.stop();
    }

    fn a_stop_lets_running_tasks_end(ground: &Ground) {
        let worker = worker(ground, &["--processes", "2"]);
        let id = enqueue(ground, "waits", &json!({"mark": "runs", "until": "done"}), &[]);
        exists(ground, "runs");
        worker.signal(Signal::TERM);
        ground.file("done", "");
        let pids = processes(&worker);
        worker.ended().ok();
        assert_eq!(ended(ground, &id)["output"], "waited");
        eventually("its processes are gone", || {
            pids.iter().all(|pid| !is_alive(*pid)).then_some(())
        });
    }

    fn processes_end_with_a_killed_worker(ground: &Ground) {
        let worker = worker(ground, &["--processes", "2", "--lease", "1"]);
        let holds = enqueue(ground, "dies", &json!({"how": "holds", "mark": "holds"}), &[]);
        exists(ground, "holds");
        let pids = processes(&worker);
        assert_eq!(pids.len(), 2);
        worker.kill();
        for pid in pids {
            eventually("a process ends with its worker", || (!is_alive(pid)).then_some(()));
        }
        ground.run(&["job", "cancel", &holds, "--force"]).ok();
    }

    fn a_process_is_replaced_after_its_jobs(ground: &Ground) {
        let worker = worker(ground, &["--processes", "2", "--concurrency", "1", "--max-jobs-per-process", "1"]);
        let ids: Vec<_> = (0..12).map(|_| enqueue(ground, "pid", &json!({}), &[])).collect();
        let pids: std::collections::BTreeSet<_> = ids.iter().map(|id| {
            let job = ended(ground, id);
            assert_eq!(job["attempts"], 1, "{job}");
            job["output"].to_string()
        }).collect();
        assert_eq!(pids.len(), 12);
        worker.stop();
    }

    fn a_flood_of_output_ends_and_others_go_on(ground: &Ground) {
        let worker = worker(ground, &["--processes", "1"]);
        let flood = enqueue(ground, "floods", &json!({}), &[]);
        assert_eq!(result(ground, "add", &json!({"a": 1})), 2);
        let job = ended(ground, &flood);
        assert_eq!(job["output"], "flooded");
        assert!(job["stdout"].as_str().unwrap().ends_with("line 19999\n"));
        worker.stop();
    }

    fn a_program_in_perl_runs_tasks(ground: &Ground) {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/app/worker.pl");
        let command = format!("perl {}", program.display());
        let worker = listening(ground.command(&["worker", "--json", "--app-command", &command, "--concurrency", "1"]));
        assert_eq!(result(ground, "word_count", &json!({"text": "one two three"})), 3);
        let refused = ended(ground, &enqueue(ground, "refuse", &json!({}), &["--retries", "2"]));
        assert_eq!((&refused["error"], &refused["attempts"]), (&json!("no retry would help"), &json!(1)));
        worker.stop();
    }
}

/// Returns the pids of the processes of a worker's app in Python.
fn processes(worker: &Running) -> Vec<u32> {
    processes_of(worker, "_child")
}

/// Returns the pids of the processes of a worker whose command contains this text.
fn processes_of(worker: &Running, command_part: &str) -> Vec<u32> {
    let pid = worker.pid();
    let children = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let of_threads =
        children.filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("children")).ok());
    let pids: String = of_threads.collect();
    let pids = pids.split_whitespace().map(|pid| pid.parse().unwrap());
    let is_app = |pid: &u32| {
        let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&command).contains(command_part)
    };
    pids.filter(is_app).collect()
}

fn is_alive(pid: u32) -> bool {
    let pid = Pid::from_raw(pid.cast_signed()).unwrap();
    test_kill_process(pid).is_ok()
}

#[test]
fn an_app_that_cannot_be_loaded_is_named() {
    let ground = Ground::embedded().unwrap();
    ground.file("broken.py", "import nothing_of_this_name\n");
    ground.file("other.py", "app = 1\n");
    ground.file("empty.py", "from meshwork import App\napp = App()\n");
    for (app, why) in [
        ("broken:app", "nothing_of_this_name"),
        ("other:app", "no meshwork.App"),
        ("empty:app", "no task"),
        ("no_such_module:app", "no_such_module"),
        ("empty:nothing", "nothing"),
    ] {
        let command = with_package(ground.command(&["worker", "--app", app]));
        let done = Running::start(command).ended();
        assert!(done.code.is_some_and(|code| code != 0), "{done:?}");
        assert!(done.stderr.contains(why), "{app}: {done:?}");
    }
    let done = ground.run(&["worker", "--app-command", "no-such-program"]);
    assert!(
        done.stderr.contains("cannot start `no-such-program`"),
        "{done:?}"
    );
}
