// Jobs of a real BullMQ move to an app, with kills of the script that moves them.
import assert from "node:assert";
import { spawn } from "node:child_process";

import { FlowProducer, Queue } from "bullmq";
import { Redis } from "ioredis";

import { app } from "./bullmq_tasks.mjs";

const url = process.env.BULLMQ_URL;
const connection = { host: "127.0.0.1", port: Number(new URL(url).port), db: Number(new URL(url).pathname.slice(1)) };
const redis = new Redis(url);
const queue = new Queue("mail", { connection });

function move(...options) {
  const program = "node_modules/meshwork/migrate-bullmq.js";
  const args = [program, "--from", url, "--queue", "mail", "--app", "./bullmq_tasks.mjs", ...options];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
  let [output, errors] = ["", ""];
  child.stdout.on("data", (text) => (output += text));
  child.stderr.on("data", (text) => (errors += text));
  child.ended = new Promise((ended) => child.on("close", (code) => ended({ code, lines: output.trim().split("\n"), errors })));
  return child;
}

async function printed(...options) {
  const { code, lines, errors } = await move(...options).ended;
  assert.equal(code, 0, errors);
  return lines;
}

async function contents() {
  const keys = (await redis.keys("bull:*")).sort();
  return Promise.all(keys.map(async (key) => [key, (await redis.dumpBuffer(key)).toString("hex")]));
}

const first = await queue.add("send", { to: "ada" });
const later = await queue.add("send", { to: "bob" }, { delay: 3_600_000, attempts: 3, backoff: { type: "exponential", delay: 2000 } });
const low = await queue.add("mail.send", { to: "eve" }, { priority: 5, jobId: "my-1" });
await queue.add("unknown", { to: "eve" });
await queue.add("send", "a text");
await queue.upsertJobScheduler("daily", { every: 86_400_000 }, { name: "send", data: { to: "daily" } });
const flows = new FlowProducer({ connection });
await flows.add({ name: "send", queueName: "mail", data: {}, children: [{ name: "send", queueName: "mail", data: {} }] });
const left = [
  "left 1: it belongs to a job scheduler: use app.schedule",
  "left 1: it has a parent",
  "left 1: it waits for children",
  "left 1: its data is no object",
  "left 1: there is no task unknown or mail.unknown",
];
const before = await contents();
assert.deepEqual(await printed("--dry-run"), ["would move 3 of mail.send", ...left]);
assert.deepEqual(await contents(), before);
assert.deepEqual(await printed(), ["moved 3 of mail.send", ...left]);
assert.deepEqual(await printed(), left);
for (const job of [first, later, low]) assert.equal(await redis.exists(`bull:mail:${job.id}`), 0);

const moved = (job) => app.job(`bullmq-mail-${job.id}`);
assert.equal(await moved(first).result({ timeout: 30 }), "sent to ada, attempt 1");
assert.equal(await moved(later).state(), "delayed");
assert.equal((await moved(later).job()).retries, 2);
assert.equal(await moved(low).result({ timeout: 30 }), "sent to eve, attempt 1");
assert.equal((await moved(low).job()).priority, "low");

// Kills of the script lose nothing and double nothing, while jobs are added.
const jobs = await queue.addBulk(Array.from({ length: 400 }, (_, n) => ({ name: "send", data: { to: `user ${n}` } })));
for (let kill = 0; kill < 5; kill++) {
  const child = move();
  const length = await redis.llen("bull:mail:wait");
  const target = length - 5 - Math.floor(Math.random() * 40);
  while ((await redis.llen("bull:mail:wait")) > target && child.exitCode === null);
  child.kill("SIGKILL");
  await child.ended;
}
jobs.push(await queue.add("send", { to: "user 400" }));
await printed();
assert.equal(await redis.exists("bull:mail:meshwork-moving"), 0);
for (const [n, job] of jobs.entries()) {
  assert.equal(await moved(job).result({ timeout: 60 }), `sent to user ${n}, attempt 1`);
}
await queue.close();
await flows.close();
redis.disconnect();
console.log("done");
