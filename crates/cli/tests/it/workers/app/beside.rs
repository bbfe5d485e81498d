//! Programs in the folder `programs` beside real programs of others: pytest and vitest, PostgreSQL with its drivers, Celery, BullMQ.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use meshwork_test_servers::servers::{RealPostgres, RealServer, Tool, need};

use super::node::installed;
use super::programs::{copied, python_beside};
use super::{listening, with_package};
use crate::api::Server;
use crate::common::{Ground, Running};

/// Node in the test's folder, with the package and packages of others.
fn node_beside(ground: &Ground, args: &[&str]) -> Option<Command> {
    let others = need(Tool::TasksNode)?.ancestors().nth(2)?.to_owned();
    installed(ground);
    for package in std::fs::read_dir(others).ok()?.map(Result::unwrap) {
        let link = ground.path("node_modules").join(package.file_name());
        if !link.exists() {
            symlink(package.path(), link).unwrap();
        }
    }
    let mut command = Command::new("node");
    command.args(args).current_dir(ground.path(""));
    Some(command)
}

fn is_done(command: Command) {
    let done = Running::start(command).ended();
    assert_eq!(done.stdout.trim(), "done", "{done:?}");
}

#[test]
fn tasks_are_tested_with_pytest() {
    let ground = Ground::embedded().unwrap();
    for file in ["shop.py", "test_shop.py", "pytest.ini"] {
        copied(&ground, file);
    }
    let plugins = ["-p", "meshwork._pytest", "-p", "no:cacheprovider"];
    let args = [&["-m", "pytest", "-q"][..], &plugins].concat();
    let Some(command) = python_beside(&ground, &args) else {
        return;
    };
    let done = Running::start(command).ended();
    assert!(done.stdout.contains("6 passed"), "{done:?}");
}

#[test]
fn tasks_are_tested_with_node_and_vitest() {
    let ground = Ground::embedded().unwrap();
    for file in [
        "shop.mjs",
        "tests_of_shop.mjs",
        "shop.test.mjs",
        "shop.spec.mjs",
    ] {
        copied(&ground, file);
    }
    let vitest = "node_modules/vitest/vitest.mjs";
    for (args, passed) in [
        (&["--test", "shop.test.mjs"][..], "# pass 3"),
        (&[vitest, "run", "shop.spec.mjs"], "3 passed"),
    ] {
        let Some(mut command) = node_beside(&ground, args) else {
            return;
        };
        command.env("NO_COLOR", "1");
        let done = Running::start(command).ended();
        assert!(done.stdout.contains(passed), "{done:?}");
    }
}

/// Runs a program that writes rows of an outbox, and then a relay. Each row becomes a job.
fn rows_become_jobs(schema: &'static str, program: impl FnOnce(&Ground) -> Option<Command>) {
    let Some(database) = RealPostgres::shared_for(schema) else {
        return;
    };
    let Some(ground) = Ground::redis() else {
        return;
    };
    let outbox = |words: &[&str]| {
        let mut command = ground.command(&[&["outbox"], words, &["--schema", schema]].concat());
        command.env("DATABASE_URL", database.url());
        command
    };
    Running::start(outbox(&["migrate"])).ended().ok();
    let Some(mut command) = program(&ground) else {
        return;
    };
    let done = Running::start({
        command.env("DATABASE_URL", database.url());
        command
    })
    .ended();
    assert_eq!(done.code, Some(0), "{done:?}");
    let relay = Running::start(outbox(&["relay"]));
    let rows = std::fs::read_to_string(ground.path("rows.txt")).unwrap();
    for id in rows.lines() {
        let job = crate::common::eventually("the relay moves the row", || {
            let shown = ground.run(&["job", "show", id, "--json"]);
            (shown.code == Some(0)).then(|| shown.json())
        });
        assert_eq!(
            (&job["type"], &job["retries"], &job["timeout"]),
            (&"pay".into(), &2.into(), &90.into()),
            "{job}"
        );
    }
    assert_eq!(ground.jobs().len(), rows.lines().count());
    relay.stop();
}

#[test]
fn rows_of_python_in_transactions_become_jobs() {
    rows_become_jobs("tasks_in_python", |ground| {
        copied(ground, "outboxes.py");
        python_beside(ground, &["outboxes.py"])
    });
}

#[test]
fn rows_of_node_in_transactions_become_jobs() {
    rows_become_jobs("tasks_in_node", |ground| {
        copied(ground, "outboxes.mjs");
        node_beside(ground, &["outboxes.mjs"])
    });
}

/// Writes the programs of docs/frameworks.md in a language. The first line of each is a comment with its name.
fn write_programs(ground: &Ground, language: &str, comment: &str) {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/frameworks.md");
    let page = std::fs::read_to_string(page).unwrap();
    for rest in page.split(&format!("```{language}\n{comment} ")).skip(1) {
        let (name, code) = rest.split_once('\n').unwrap();
        ground.file(name, code.split("```").next().unwrap());
    }
}

#[test]
fn programs_of_frameworks_in_python_enqueue_tasks() {
    let ground = Ground::embedded().unwrap();
    write_programs(&ground, "python", "#");
    copied(&ground, "frameworks.py");
    if let Some(program) = python_beside(&ground, &["frameworks.py"]) {
        is_done(program);
    }
}

#[test]
fn programs_of_frameworks_in_node_enqueue_tasks() {
    let ground = Ground::embedded().unwrap();
    write_programs(&ground, "js", "//");
    copied(&ground, "frameworks.mjs");
    if let Some(program) = node_beside(&ground, &["frameworks.mjs"]) {
        is_done(program);
    }
}

/// A store, and a server with the queue of another system.
fn with_other() -> Option<(Ground, RealServer)> {
    Some((Ground::redis()?, RealServer::redis().start()?))
}

fn worker(ground: &Ground, app: &str) -> Running {
    let args = ["worker", "--json", "--app", app, "--processes", "1"];
    listening(with_package(ground.command(&args)))
}

#[test]
fn tasks_of_celery_move() {
    let Some((ground, celery)) = with_other() else {
        return;
    };
    copied(&ground, "celery_queue.py");
    let worker = worker(&ground, "celery_queue:app");
    if let Some(mut program) = python_beside(&ground, &["celery_queue.py"]) {
        program.env("CELERY_URL", celery.url());
        is_done(program);
    }
    worker.stop();
}

#[test]
fn jobs_of_bullmq_move() {
    let Some((ground, bullmq)) = with_other() else {
        return;
    };
    for file in ["bullmq_tasks.mjs", "bullmq_queue.mjs"] {
        copied(&ground, file);
    }
    let Some(mut program) = node_beside(&ground, &["bullmq_queue.mjs"]) else {
        return;
    };
    let worker = worker(&ground, "./bullmq_tasks.mjs");
    let key = ground
        .run(&["key", "create", "shop", "--scope", "admin"])
        .ok();
    let key: PathBuf = ground.file("shop.key", key.stdout);
    let server = Server::start(&ground, &[]);
    program.env("MESHWORK_API", format!("http://{}", server.address));
    program.env("MESHWORK_API_KEY_FILE", key);
    program.env("BULLMQ_URL", bullmq.url());
    is_done(program);
    server.stop();
    worker.stop();
}
