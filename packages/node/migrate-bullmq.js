#!/usr/bin/env node
// Moves waiting and delayed jobs of a BullMQ queue to the tasks of an app.
//
//   npx meshwork-migrate-bullmq --from redis://127.0.0.1 --queue mail --app ./tasks.js --dry-run
//
// Jobs keep their data, delay, attempts and backoff. The task has the name of the job, or QUEUE.NAME. What has no counterpart stays
// in the queue, and is listed. Each job has an id that follows from BullMQ's, and leaves BullMQ's queue before it is enqueued: after
// a crash, a second call goes on. BullMQ's workers may run meanwhile.

"use strict";

const { createRequire } = require("node:module");
const { resolve } = require("node:path");
const { pathToFileURL } = require("node:url");
const { parseArgs } = require("node:util");

const { apps } = require("./index.js");

/** A delayed job has the score of its time, in milliseconds, times this. */
const SCORE = 4096;

/** Moves a job to the list of those under way. KEYS: its list or set, that list, the job. ARGV: its id. Returns 1, or 0 if it is gone. */
const TAKE = `
local kind, taken = redis.call("TYPE", KEYS[1]).ok, 0
if kind == "list" then taken = redis.call("LREM", KEYS[1], -1, ARGV[1]) end
if kind == "zset" then taken = redis.call("ZREM", KEYS[1], ARGV[1]) end
if taken == 1 then redis.call("RPUSH", KEYS[2], ARGV[1]) end
return taken`;

/** Deletes a job that was enqueued. KEYS: the list of those under way, the job, its log. ARGV: its id. */
const DELETE = `
redis.call("DEL", KEYS[2], KEYS[3])
return redis.call("LREM", KEYS[1], 0, ARGV[1])`;

/** A job stays in its queue; the message is the reason. */
class Left extends Error {}

/** A queue of BullMQ, and the apps that get its jobs. */
class Migration {
  moved = new Map();
  left = new Map();
  #redis;
  #queue;
  #tasks;
  #prefix;
  #isDry;

  constructor(redis, queue, apps, { prefix = "bull", dryRun = false } = {}) {
    this.#redis = redis;
    this.#queue = queue;
    this.#tasks = new Map([...apps].flatMap((app) => [...app.tasks]));
    this.#prefix = `${prefix}:${queue}`;
    this.#isDry = dryRun;
  }

  #key(name) {
    return `${this.#prefix}:${name}`;
  }

  /** Moves the jobs that wait now, the oldest first. */
  async run() {
    const moving = this.#key("meshwork-moving");
    if (!this.#isDry) {
      // Those of a call that was killed. One without a record was enqueued.
      for (const id of await this.#redis.lrange(moving, 0, -1)) {
        const record = await this.#redis.hgetall(this.#key(id));
        if (record.name === undefined) await this.#redis.lrem(moving, 0, id);
        else await this.#orLeft(async () => this.#enqueue(id, await this.#call(id, record)));
      }
    }
    for (const list of ["wait", "paused", "prioritized", "delayed"]) {
      for (const id of await this.#ids(list)) {
        await this.#orLeft(async () => {
          const call = await this.#call(id, await this.#redis.hgetall(this.#key(id)));
          if (this.#isDry) count(this.moved, call.task.name);
          else if (await this.#redis.eval(TAKE, 2, this.#key(list), moving, id)) await this.#enqueue(id, call);
        });
      }
    }
    const children = await this.#redis.zcard(this.#key("waiting-children"));
    if (children) count(this.left, "it waits for children", children);
  }

  async #orLeft(move) {
    try {
      await move();
    } catch (error) {
      if (!(error instanceof Left)) throw error;
      count(this.left, error.message);
    }
  }

  async #ids(list) {
    const key = this.#key(list);
    const kind = await this.#redis.type(key);
    // Workers take the last one of a list. `0:…` are marks of older versions.
    const ids = kind === "list" ? (await this.#redis.lrange(key, 0, -1)).reverse() : kind === "zset" ? await this.#redis.zrange(key, 0, -1) : [];
    return ids.filter((id) => !id.startsWith("0:"));
  }

  /** Returns the task that a job calls, and its arguments. */
  async #call(id, { name, data, opts = "{}", timestamp, delay, priority, atm, attemptsMade, parentKey, rjk }) {
    if (name === undefined) throw new Left("it has no record");
    const task = this.#tasks.get(name) ?? this.#tasks.get(`${this.#queue}.${name}`);
    if (!task) throw new Left(`there is no task ${name} or ${this.#queue}.${name}`);
    if (parentKey !== undefined) throw new Left("it has a parent");
    if (rjk !== undefined || id.startsWith("repeat:")) throw new Left("it belongs to a job scheduler: use app.schedule");
    const [args, options] = [parsed(data), parsed(opts)];
    if (args === null || typeof args !== "object" || Array.isArray(args)) throw new Left("its data is no object");
    const chosen = { id: `bullmq-${this.#queue}-${id}`.replace(/[^A-Za-z0-9_.-]/g, "_") };
    const made = Number(atm ?? attemptsMade ?? 0);
    if (options.attempts) chosen.retries = Math.min(Math.max(options.attempts - made - 1, 0), 100);
    const pause = typeof options.backoff === "object" ? options.backoff?.delay : options.backoff;
    if (pause) chosen.backoff = Math.min(pause / 1000, 3600);
    if (Number(priority)) chosen.priority = "low";
    const due = Number(timestamp) + Number(delay ?? 0);
    if (Number(delay)) {
      const score = await this.#redis.zscore(this.#key("delayed"), id);
      chosen.at = new Date(score ? Math.floor(Number(score) / SCORE) : due).toISOString();
    }
    return { task: task.options(chosen), args };
  }

  async #enqueue(id, { task, args }) {
    await task.enqueue(args);
    await this.#redis.eval(DELETE, 3, this.#key("meshwork-moving"), this.#key(id), this.#key(`${id}:logs`), id);
    count(this.moved, task.name);
  }
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    throw new Left("its data is no JSON");
  }
}

function count(counts, name, by = 1) {
  counts.set(name, (counts.get(name) ?? 0) + by);
}

const OPTIONS = {
  from: { type: "string" },
  queue: { type: "string" },
  app: { type: "string" },
  prefix: { type: "string", default: "bull" },
  "dry-run": { type: "boolean", default: false },
};

async function main() {
  const { values } = parseArgs({ options: OPTIONS });
  for (const name of ["from", "queue", "app"]) {
    if (!values[name]) throw new Error(`give --${name}: --from REDIS_URL --queue NAME --app ./tasks.js [--prefix bull] [--dry-run]`);
  }
  // The client and the package of the app.
  const within = createRequire(resolve(values.app));
  const { Redis } = within("ioredis");
  await import(pathToFileURL(resolve(values.app)).href);
  const redis = new Redis(values.from, { maxRetriesPerRequest: 3 });
  const dryRun = values["dry-run"];
  const migration = new Migration(redis, values.queue, apps, { prefix: values.prefix, dryRun });
  try {
    await migration.run();
  } finally {
    for (const [name, number] of [...migration.moved].sort()) console.log(`${dryRun ? "would move" : "moved"} ${number} of ${name}`);
    for (const [why, number] of [...migration.left].sort()) console.log(`left ${number}: ${why}`);
    redis.disconnect();
  }
}

main().catch((error) => {
  console.error(`${error.message}: nothing is lost; call this again`);
  process.exitCode = 1;
});
