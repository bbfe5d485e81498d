// Tasks: functions that are enqueued as jobs, and run by workers that have loaded them.

"use strict";

const { connect } = require("./engine.js");
const errors = require("./errors.js");

const { JobCancelled, JobFailed, MeshworkError, ResultTimeout } = errors;

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
const apps = new Set();

/** Tasks, and the store that has their jobs. */
class App {
  tasks = new Map();
  schedules = [];
  starts = [];
  stops = [];
  middlewares = [];
  #options;
  #engine;

  constructor(options = {}) {
    this.#options = options;
    apps.add(this);
  }

  /** The store, or the API of a supervisor. */
  get engine() {
    return (this.#engine ??= connect(this.#options));
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

  /** Lets another engine take the calls, as in tests. Returns the one before. */
  swapEngine(engine) {
    const before = this.#engine;
    this.#engine = engine;
    return before;
  }

  /** Closes the connections. A later call opens them again. */
  close() {
    this.#engine?.close();
  }
}

/** A function that runs as a job. */
class Task {
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
    return new Handle(this.app, await this.app.engine.enqueue(this.job(args), false));
  }

  /** Enqueues a job for each of these arguments, and returns their handles. */
  async enqueueMany(list) {
    const ids = await this.app.engine.enqueueMany(list.map((args) => this.job(args)));
    return ids.map((id) => new Handle(this.app, id));
  }

  /** Enqueues a job and waits for its result. */
  async call(args = {}) {
    return new Handle(this.app, await this.app.engine.enqueue(this.job(args), true)).result();
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
class Handle {
  #app;

  constructor(app, id) {
    this.#app = app;
    this.id = id;
  }

  /** Returns the job as `meshwork job show --json` does. */
  job() {
    return this.#app.engine.job(this.id);
  }

  /** Waits for the result, at most this number of seconds. */
  async result({ timeout } = {}) {
    const job = await this.#app.engine.wait(this.id, timeout);
    if (!job) throw new ResultTimeout(`job ${this.id} has not ended after ${timeout} s`);
    if (job.state === "finished") return job.output;
    throw job.state === "cancelled" ? new JobCancelled(job) : new JobFailed(job);
  }

  async state() {
    return (await this.job()).state;
  }

  async progress() {
    return (await this.job()).progress_value;
  }

  /** Returns the lines of the log. */
  logs() {
    return this.#app.engine.logs(this.id);
  }

  /** Cancels the job, and returns what became of it. */
  cancel() {
    return this.#app.engine.cancel(this.id);
  }
}

const { Discard, Permanent, Retry, Snooze } = errors;

module.exports = {
  App,
  Discard,
  Handle,
  JobCancelled,
  JobFailed,
  MeshworkError,
  Permanent,
  ResultTimeout,
  Retry,
  Snooze,
  Task,
  apps,
};
