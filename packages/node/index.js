// Tasks: functions that are enqueued as jobs, over the HTTP API of a supervisor, and run by workers that have loaded them.

import { readFileSync } from "node:fs";

import { JobCancelled, JobFailed, MeshworkError, ResultTimeout } from "./errors.js";

export { Discard, JobCancelled, JobFailed, MeshworkError, Permanent, ResultTimeout, Retry, Snooze } from "./errors.js";

/** Longest wait of one call of the API, in seconds. */
const ONE_WAIT = 60;

/** Options of a task that are fields of its jobs, as `meshwork job schema` describes them. */
const JOB_OPTIONS = new Set(
  ("id group route instance priority timeout retries backoff start_timeout tags depends_on on_failure prerequisite_timeout " +
    "exclusive caller at tz delay key unique unique_for unique_until on_duplicate debounce throttle batch env input").split(" "),
);
/** Options that may be functions of the arguments. */
const COMPUTED = ["key", "unique"];
/** Options of a child. */
const OF_CHILDREN = ["priority", "delay", "retries", "timeout", "key", "group", "env"];

/** All apps of this process, for its worker. */
export const apps = new Set();

/** Tasks, and the API that enqueues their jobs. */
export class App {
  tasks = new Map();
  schedules = [];
  starts = [];
  stops = [];
  middlewares = [];
  #url;
  #key;

  constructor({ url, key } = {}) {
    this.#url = url;
    this.#key = key;
    apps.add(this);
  }

  /** Makes a function a task. Its name is the type of its jobs. */
  task(name, options, run) {
    if (typeof options === "function") [options, run] = [{}, options];
    if (this.tasks.has(name)) throw new MeshworkError(`two tasks have the name "${name}"`);
    const task = new Task(this, name, options, run);
    this.tasks.set(name, task);
    return task;
  }

  /** Runs a task repeatedly. Workers of the app store the schedule when they start. */
  schedule(cron, task, args = {}, { name = task.name, zone } = {}) {
    this.schedules.push({ name, cron, zone, job: task.job(args) });
  }

  onStart(run) {
    this.starts.push(run);
  }

  onStop(run) {
    this.stops.push(run);
  }

  /** Runs a function around each task: it gets the context and a function that goes on. */
  middleware(run) {
    this.middlewares.push(run);
  }

  /** Returns the handle of a job. */
  job(id) {
    return new Handle(this, id);
  }

  async call(method, path, body) {
    const url = this.#url ?? process.env.MESHWORK_API;
    if (!url) throw new MeshworkError("there is no API: give `url` to the App, or set MESHWORK_API");
    this.#key ??= keyOf(process.env.MESHWORK_API_KEY_FILE);
    const headers = { "content-type": "application/json" };
    if (this.#key) headers.authorization = `Bearer ${this.#key}`;
    const answer = await fetch(new URL(path, url), { method, headers, body: body && JSON.stringify(body) });
    const json = await answer.json();
    if (!answer.ok) throw Object.assign(new MeshworkError(json.detail ?? answer.statusText), { status: answer.status });
    return json;
  }
}

function keyOf(file) {
  return file && readFileSync(file, "utf8").trim();
}

/** A function that runs as a job. */
export class Task {
  #options;

  constructor(app, name, options, run) {
    for (const option of Object.keys(options)) {
      if (!JOB_OPTIONS.has(option)) {
        throw new MeshworkError(`task ${name}: there is no option "${option}"; options: ${[...JOB_OPTIONS].sort().join(", ")}`);
      }
    }
    this.app = app;
    this.name = name;
    this.run = run;
    this.#options = options;
  }

  /** Returns the task with other options for its jobs, such as `{ delay: "10m" }`. */
  options(options) {
    return new Task(this.app, this.name, { ...this.#options, ...options }, this.run);
  }

  /** Enqueues a job with these arguments, and returns its handle. */
  async enqueue(args = {}) {
    const job = await this.app.call("POST", "/v1/jobs", this.job(args));
    return new Handle(this.app, job.id);
  }

  /** Enqueues a job and waits for its result. */
  async call(args = {}) {
    return (await this.enqueue(args)).result();
  }

  /** Returns a job in JSON. */
  job(args) {
    const { depends_on: before, ...options } = this.computed(args);
    const depends = before && { depends_on: before.map((one) => one.id ?? one) };
    return { type: this.name, payload: args, ...options, ...depends };
  }

  child(args) {
    const options = Object.entries(this.computed(args)).filter(([name]) => OF_CHILDREN.includes(name));
    return { payload: args, options: { type: this.name, ...Object.fromEntries(options) } };
  }

  computed(args) {
    const options = { ...this.#options };
    for (const name of COMPUTED) {
      if (typeof options[name] === "function") options[name] = String(options[name](args));
    }
    return options;
  }
}

/** A job that was enqueued. */
export class Handle {
  #app;

  constructor(app, id) {
    this.#app = app;
    this.id = id;
  }

  #path(rest = "") {
    return `/v1/jobs/${encodeURIComponent(this.id)}${rest}`;
  }

  /** Returns the job as the API has it. */
  job() {
    return this.#app.call("GET", this.#path());
  }

  /** Waits for the result, at most this number of seconds. */
  async result({ timeout = Infinity } = {}) {
    const until = Date.now() + timeout * 1000;
    for (;;) {
      const left = Math.max(0, (until - Date.now()) / 1000);
      try {
        await this.#app.call("GET", this.#path(`/result?wait=${Math.min(ONE_WAIT, left)}`));
      } catch (error) {
        // The wait is over, or the job has no result.
        if (!(error.status === 408 || error.status === 409 || error.status === 422)) throw error;
      }
      const job = await this.job();
      if (job.state === "finished") return job.output;
      if (job.state === "cancelled") throw new JobCancelled(job);
      if (job.state === "failed") throw new JobFailed(job);
      if (Date.now() >= until) throw new ResultTimeout(`job ${this.id} has not ended after ${timeout} s: it is ${job.state}`);
    }
  }

  async state() {
    return (await this.job()).state;
  }

  async progress() {
    return (await this.job()).progress_value;
  }

  /** Cancels the job, and returns what became of it. */
  async cancel() {
    return (await this.#app.call("POST", this.#path("/cancel"), {})).result;
  }
}
