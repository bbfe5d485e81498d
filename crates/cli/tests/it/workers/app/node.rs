//! Tasks in Node.js: the package as it is installed, enqueued over the API of a supervisor.

use std::fs;
use std::path::Path;
use std::process::Command;

use meshwork_test_servers::servers::{Tool, need};
use serde_json::json;

use super::{ended, enqueue, is_alive, listening};
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
assert.deepEqual([await job.state(), (await job.job()).tags], ["finished", ["sums"]]);
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

/// Installs the package.
pub(super) fn installed(ground: &Ground) {
    let installed = ground.path("node_modules/meshwork");
    fs::create_dir_all(&installed).unwrap();
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packages/node");
    for file in fs::read_dir(package).unwrap().map(Result::unwrap) {
        fs::copy(file.path(), installed.join(file.file_name())).unwrap();
    }
}

/// Installs the package, and starts a worker.
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
    fn tasks_of_node_run_and_are_enqueued_over_the_api(ground: &Ground) {
        if need(Tool::Ioredis).is_none() {
            return;
        }
        let worker = worker(ground, &["--cancel-grace", "0.3"]);
        let key = ground.run(&["key", "create", "shop", "--scope", "admin"]).ok().stdout;
        ground.file("shop.key", key);
        let server = Server::start(ground, &[]);
        ground.file("client.mjs", CLIENT);
        let mut client = Command::new("node");
        client.arg("client.mjs").current_dir(ground.path(""));
        client.env("MESHWORK_API", format!("http://{}", server.address));
        client.env("MESHWORK_API_KEY_FILE", ground.path("shop.key"));
        let done = Running::start(client).ended();
        assert_eq!(done.stdout.trim(), "done", "{done:?}");
        eventually("its schedule runs", || ground.path("ticked").exists().then_some(()));
        server.stop();
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
