//! The client of the Python package: what it enqueues and reads, also in processes that were forked.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{ended, native_module, with_store, worker, worker_of};
use crate::common::{Ground, Running, on_all_data};

/// A program with the Python package as it is installed: with the native module of this build.
fn python(ground: &Ground, program: &str) -> Running {
    ground.file("program.py", program);
    Running::start(python_with(ground, &["program.py"]))
}

/// The interpreter with these arguments, and with the package as it is installed.
pub(super) fn python_with(ground: &Ground, args: &[&str]) -> Command {
    let site = ground.path("site/meshwork");
    if !site.exists() {
        fs::create_dir_all(&site).unwrap();
        let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packages/python/meshwork");
        for file in fs::read_dir(package).unwrap().map(Result::unwrap) {
            if file.path().is_file() {
                fs::copy(file.path(), site.join(file.file_name())).unwrap();
            }
        }
        fs::copy(native_module("python"), site.join("_native.abi3.so")).unwrap();
    }
    let mut command = Command::new("python3");
    command
        .args(args)
        .current_dir(ground.path(""))
        .env("PYTHONPATH", ground.path("site"))
        .env("PYTHONDONTWRITEBYTECODE", "1");
    with_store(ground, command)
}

/// The beginning of a program that enqueues.
const CLIENT: &str = r#"
import asyncio, os, sys
from meshwork import JobCancelled, JobFailed, MeshworkError, ResultTimeout
import shop
shop.app._url = os.environ.get("REDIS_URL") or "dir:" + os.environ["MESHWORK_DATA"]
"#;

on_all_data! {
    fn python_enqueues_tasks_and_reads_their_results(ground: &Ground) {
        let worker = worker(ground, &["--processes", "1"]);
        let program = format!("{CLIENT}{}", r#"
job = shop.add.options(tags=["sums"]).enqueue(2, b=3)
assert job.result(30) == 5, job.job()
assert (job.state(), job.logs(), job.job()["tags"]) == ("finished", ["adds 2 3"], ["sums"])
assert (shop.add.call(1), shop.digits.call()) == (2, "5")
assert [it.result(30) for it in shop.add.enqueue_many([(1,), {"a": 1, "b": 5}, 7])] == [2, 6, 8]
assert asyncio.run(shop.add.acall(4)) == 5
for wrong in [lambda: shop.add.enqueue("x"), lambda: shop.add.enqueue(), lambda: shop.add.enqueue(1, c=2)]:
    try:
        wrong()
        sys.exit("it was not refused")
    except TypeError as error:
        assert "add" in str(error) or "argument" in str(error), error
try:
    shop.fails.call("permanent")
    sys.exit("it did not fail")
except JobFailed as error:
    assert str(error) == "no account" and error.job["attempts"] == 1
waits = shop.waits.enqueue("runs", until="never")
try:
    waits.result(0.2)
    sys.exit("it has ended")
except ResultTimeout:
    pass
while not os.path.exists("runs"): pass
assert waits.cancel() == "cancelling"
try:
    waits.result(30)
    sys.exit("it was not cancelled")
except JobCancelled:
    pass
same = [shop.pid.options(unique="one", delay=60).enqueue().id for _ in range(2)]
assert same[0] == same[1], same
try:
    shop.add.options(retries=1000).enqueue(1)
    sys.exit("it was not refused")
except MeshworkError as error:
    assert "retries" in str(error), error
print("done")
"#);
        let done = python(ground, &program).ended();
        assert_eq!(done.stdout.trim(), "done", "{done:?}");
        worker.stop();
    }

    fn a_client_works_after_a_fork(ground: &Ground) {
        let worker = worker(ground, &["--processes", "1"]);
        let program = format!("{CLIENT}{}", r#"
import multiprocessing
assert shop.add.call(1) == 2
pid = os.fork()
if pid == 0:
    os._exit(0 if shop.add.call(2) == 3 else 1)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
for method in ["fork", "forkserver", "spawn"]:
    if __name__ == "__main__":
        with multiprocessing.get_context(method).Pool(2) as pool:
            assert pool.map(shop.add.call, [1, 2, 3]) == [2, 3, 4]
if __name__ == "__main__":
    assert shop.add.call(5) == 6
    print("done")
"#);
        let done = python(ground, &program).ended();
        assert_eq!(done.stdout.trim(), "done", "{done:?}");
        worker.stop();
    }
}

#[test]
fn the_first_task_of_the_documentation_runs() {
    let ground = Ground::embedded().unwrap();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tasks.md");
    let page = fs::read_to_string(page).unwrap();
    let blocks: Vec<_> = page
        .split("```python\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap())
        .collect();
    let url = format!("App(\"dir:{}\")", ground.path("data").display());
    let worker = worker_of(
        &ground,
        &blocks[0].replace("App()", &url),
        &["--processes", "1"],
    );
    let done = python(&ground, blocks[1]).ended();
    let printed = blocks[1].split("# prints: ").nth(1).unwrap();
    assert_eq!(done.stdout, printed, "{done:?}");
    let command = page
        .lines()
        .find(|line| line.starts_with("meshwork job enqueue"))
        .unwrap();
    let args = shlex(command);
    let args: Vec<_> = args.iter().skip(1).map(String::as_str).collect();
    let id = ground.run(&args).ok().stdout;
    assert_eq!(
        ended(&ground, id.trim())["output"],
        "sent Hello to ada@example.org"
    );
    worker.stop();
}

/// Returns the words of a command, of which some are in single quotes.
fn shlex(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (at, piece) in command.split('\'').enumerate() {
        match at % 2 {
            0 => words.extend(piece.split_whitespace().map(str::to_owned)),
            _ => words.push(piece.to_owned()),
        }
    }
    words
}
