//! Tasks in Node.js: the packages as they are installed, enqueued by the native module and over the API of a supervisor.

use std::fs;
use std::path::Path;
use std::process::Command;

use meshwork_test_servers::servers::{Tool, need};
use serde_json::json;

use super::{ended, enqueue, is_alive, listening, native_module, with_store};
use crate::api::Server;
use crate::common::{Ground, Running, eventually, on_all_data};

const TASKS: &str = r#"
import { App, Permanent, Retry } from "meshwork";
import { existsSync, writeFileSync } from "node:fs";

export const app = new App();
let started = 0;
app.onStart(() => { started += 1; });
app.middleware(async (ctx, goOn) => (ctx.task === "noted" ? ["around", await goOn()] : goOn()));

export const add = app.task("math.add", async ({ a, b = 1 }, ctx) => {
  console.log("adds", a, b);
  return a + b;
});
export const fails = app.task("fails", { retries: 1, backoff: 0 }, ({ how }, ctx) => {
  if (how === "permanent") throw new Permanent("no account");
  if (how === "retry" && ctx.attempt === 1) throw new Retry("busy", { after: 0.01 });
  if (how === "error") throw new TypeError("bad");
  if (how === "exit") process.exit(3);
  if (how === "loop") { writeFileSync("loops", String(process.pid)); for (;;) {} }
  return ctx.attempt;
});
export const noted = app.task("noted", () => started);
export const parent = app.task("parent", (_, ctx) => ctx.addChild(add, { a: 1 }));
export const waits = app.task("waits", (_, ctx) => new Promise(() => writeFileSync("waits", "")));
app.schedule("@every 1s", app.task("tick", ({ text }) => writeFileSync(text, "")), { text: "ticked" });
"#;

const CLIENT: &str = r#"
import assert from "node:assert";
import { JobCancelled, JobFailed, MeshworkError, ResultTimeout } from "meshwork";
import { add, fails, noted, parent, waits } from "./tasks.mjs";

assert.equal(await add.call({ a: 2, b: 3 }), 5);
const job = await add.options({ tags: ["sums"] }).enqueue({ a: 5 });
assert.equal(await job.result({ timeout: 30 }), 6);
assert.deepEqual([await job.state(), (await job.job()).tags, await job.logs()], ["finished", ["sums"], ["adds 5 1"]]);
const jobs = await add.enqueueMany([{ a: 1 }, { a: 2 }]);
assert.deepEqual(await Promise.all(jobs.map((one) => one.result())), [2, 3]);
assert.deepEqual(await noted.call(), ["around", 1]);
assert.equal(await fails.call({ how: "retry" }), 2);
const failed = async (how) => { try { await fails.call({ how }); } catch (error) { return error; } };
for (const [how, message, attempts] of [
  ["permanent", "no account", 1],
  ["error", "TypeError: bad", 2],
  ["exit", "the process of the task ended: exit status 3", 2],
]) {
  const error = await failed(how);
  assert(error instanceof JobFailed, String(error));
  assert.deepEqual([error.message, error.job.attempts], [message, attempts]);
}
assert.match(await parent.call(), /\.1$/);
const waiting = await waits.enqueue();
await assert.rejects(waiting.result({ timeout: 0.2 }), ResultTimeout);
await waiting.cancel();
await assert.rejects(waiting.result(), JobCancelled);
await assert.rejects(add.options({ retries: 1000 }).enqueue({ a: 1 }), MeshworkError);
assert.throws(() => add.options({ retry: 1 }), /retries/);
console.log("done");
"#;

/// A program in processes and threads of all kinds: the client was used before each of them began.
const FORKS: &str = r#"
import assert from "node:assert";
import { fork } from "node:child_process";
import cluster from "node:cluster";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { Worker, isMainThread, workerData } from "node:worker_threads";
import { add, waits } from "./tasks.mjs";

const file = fileURLToPath(import.meta.url);
assert.equal(await add.call({ a: 1 }), 2);
if (!isMainThread && workerData === "leaves") {
  const never = (await waits.enqueue()).result();
  setImmediate(() => process.exit(0));
  await never;
} else if (process.argv[2] === "child" || cluster.isWorker) {
  process.exit(0);
} else if (isMainThread) {
  const children = [
    fork(file, ["child"]),
    cluster.fork(),
    new Worker(file, { workerData: "ends" }),
    new Worker(file, { workerData: "leaves" }),
  ];
  const codes = await Promise.all(children.map(async (child) => (await once(child, "exit"))[0]));
  assert.deepEqual(codes, [0, 0, 0, 0]);
  assert.equal(await add.call({ a: 5 }), 6);
  console.log("done");
}
"#;

/// A program in CommonJS without a server.
const ALONE: &str = r#"
const assert = require("node:assert");
const { App, MeshworkError, ResultTimeout } = require("meshwork");

async function main() {
  const app = new App({ url: "memory:" });
  const add = app.task("math.add", ({ a, b }) => a + b);
  const job = await add.options({ key: ({ a }) => a }).enqueue({ a: 1, b: 2 });
  assert.deepEqual([await job.state(), (await job.job()).key], ["queued", "1"]);
  await assert.rejects(job.result({ timeout: 0 }), ResultTimeout);
  assert.equal(await job.cancel(), "cancelled");
  const wrong = [{ a: 1 }, { a: 2, id: "x y" }];
  const many = app.task("many", { key: ({ id }) => id ?? "a".repeat(2000) }, () => null);
  await assert.rejects(many.enqueueMany(wrong), MeshworkError);
  await assert.rejects(app.job("none").job(), MeshworkError);
  await assert.rejects(new App({ url: "http://127.0.0.1:1" }).job("none").job(), MeshworkError);
  console.log("done");
}
main();
"#;

/// Installs the packages.
pub(super) fn installed(ground: &Ground) {
    let installed = ground.path("node_modules/meshwork");
    fs::create_dir_all(&installed).unwrap();
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packages/node");
    let files = fs::read_dir(package)
        .unwrap()
        .map(|file| file.unwrap().path());
    for file in files.filter(|file| file.is_file()) {
        fs::copy(&file, installed.join(file.file_name().unwrap())).unwrap();
    }
    let processor = match std::env::consts::ARCH {
        "x86_64" => "x64",
        _ => "arm64",
    };
    let platform = ground.path(&format!("node_modules/meshwork-linux-{processor}-gnu"));
    fs::create_dir_all(&platform).unwrap();
    fs::copy(native_module("node"), platform.join("meshwork.node")).unwrap();
}

/// Starts a program of Node.js beside the packages.
fn node(ground: &Ground, file: &str, program: &str, environment: &[(&str, &str)]) -> Running {
    ground.file(file, program);
    let mut node = Command::new("node");
    node.arg(file).current_dir(ground.path(""));
    let mut node = with_store(ground, node);
    node.envs(environment.iter().copied());
    Running::start(node)
}

/// Installs the packages, and starts a worker.
fn worker(ground: &Ground, args: &[&str]) -> Running {
    installed(ground);
    ground.file("tasks.mjs", TASKS);
    let args = [
        &[
            "worker",
            "--json",
            "--app",
            "./tasks.mjs",
            "--processes",
            "1",
        ],
        args,
    ]
    .concat();
    listening(ground.command(&args))
}

on_all_data! {
    fn tasks_of_node_run_and_are_enqueued_by_both_clients(ground: &Ground) {
        if need(Tool::Ioredis).is_none() {
            return;
        }
        let worker = worker(ground, &["--cancel-grace", "0.3"]);
        let key = ground.run(&["key", "create", "shop", "--scope", "admin"]).ok().stdout;
        ground.file("shop.key", key);
        let server = Server::start(ground, &[]);
        let api = format!("http://{}", server.address);
        let key = ground.path("shop.key");
        let of_api = [("MESHWORK_API", api.as_str()), ("MESHWORK_API_KEY_FILE", key.to_str().unwrap())];
        for environment in [&of_api[..], &[]] {
            let done = node(ground, "client.mjs", CLIENT, environment).ended();
            assert_eq!(done.stdout.trim(), "done", "{environment:?}: {done:?}");
        }
        eventually("its schedule runs", || ground.path("ticked").exists().then_some(()));
        server.stop();
        worker.stop();
    }

    fn a_client_of_node_works_in_processes_and_threads(ground: &Ground) {
        if need(Tool::Ioredis).is_none() {
            return;
        }
        let worker = worker(ground, &["--concurrency", "8"]);
        let done = node(ground, "forks.mjs", FORKS, &[]).ended();
        assert_eq!(done.stdout.trim(), "done", "{done:?}");
        worker.stop();
    }

    fn a_blocked_event_loop_ends_by_the_timeout_and_with_its_worker(ground: &Ground) {
        if need(Tool::Ioredis).is_none() {
            return;
        }
        let worker = worker(ground, &["--cancel-grace", "0.3", "--lease", "1"]);
        let blocks = |timeout| enqueue(ground, "fails", &json!({"how": "loop"}), &["--timeout", timeout]);
        let job = ended(ground, &blocks("1"));
        assert_eq!((&job["error"], &job["attempts"]), (&json!("timeout"), &json!(1)), "{job}");
        fs::remove_file(ground.path("loops")).unwrap();
        let id = blocks("600");
        let pid = eventually("it blocks", || fs::read_to_string(ground.path("loops")).ok()?.parse().ok());
        worker.kill();
        eventually("it ends with its worker", || (!is_alive(pid)).then_some(()));
        ground.run(&["job", "cancel", &id, "--force"]).ok();
    }
}

#[test]
fn a_program_in_commonjs_enqueues_without_a_server() {
    if need(Tool::Ioredis).is_none() {
        return;
    }
    let ground = Ground::embedded().unwrap();
    installed(&ground);
    let done = node(&ground, "alone.cjs", ALONE, &[]).ended();
    assert_eq!(done.stdout.trim(), "done", "{done:?}");
}
