// Tests of tasks, with any test runner: run one without a store, or see what was enqueued and run it, by a clock that the test
// advances. The store is a list in this process with the rules of delays and retries; queues and limits are not in it.

"use strict";

const assert = require("node:assert");

const { Context, call } = require("./context.js");
const { MeshworkError, Permanent, Verdict } = require("./errors.js");

/** First pause before a retry, and the longest one, in seconds. */
const BACKOFF = [1, 600];

/** Runs a task here as a worker does, and returns its result, log, progress and children. An error of the task is thrown. */
async function perform(task, args = {}, { attempt = 1, id = "test", inputs = {}, env = {}, onChild = () => {} } = {}) {
  const performed = { result: undefined, log: "", progress: undefined, children: [] };
  const named = Object.entries(inputs).map(([name, result]) => [name, { result }]);
  const run = { run: 0, id, type: task.name, attempt, timeout: 60, env, inputs: Object.fromEntries(named) };
  const context = new Context(run, (message) => {
    if (message.log) performed.log += message.log.text;
    if (message.progress) performed.progress = { fraction: message.progress.fraction, message: message.progress.message };
    if (message.add_child) {
      const { call, payload, options } = message.add_child;
      const child = { id: `${id}.${call}`, task: options.type, args: payload, options };
      performed.children.push(child);
      onChild(child);
      queueMicrotask(() => context.answer({ call, id: child.id }));
    }
  });
  const result = await call(task, plain(args), context);
  return { ...performed, result: plain(result ?? null) };
}

/** Returns a value as its JSON has it. */
function plain(value) {
  return JSON.parse(JSON.stringify(value));
}

function seconds(duration) {
  if (typeof duration === "number") return duration;
  const units = { ms: 0.001, s: 1, m: 60, h: 3600, d: 86400 };
  return [...duration.matchAll(/([\d.]+)(ms|s|m|h|d)?/g)].reduce((sum, [, number, unit = "s"]) => sum + number * units[unit], 0);
}

/** Jobs of an app in this process. While it is open, the app enqueues here. */
class TestStore {
  #app;
  #before;
  #jobs = new Map();
  #now = 0;

  constructor(app) {
    this.#app = app;
    this.#before = app.swapEngine(this.#engine());
  }

  /** Gives the app its own store back. */
  close() {
    this.#app.swapEngine(this.#before);
  }

  /** Advances the clock: what is delayed until then is due. */
  advance(seconds) {
    this.#now += seconds;
  }

  /** Returns the arguments of the jobs of a task that have not ended. */
  enqueued(task) {
    const open = [...this.#jobs.values()].filter((job) => job.type === task.name && job.state === "queued");
    return open.map((job) => job.payload);
  }

  /** Asserts that a job with these arguments has not ended; without arguments, any. */
  assertEnqueued(task, args) {
    const open = this.enqueued(task);
    assert.ok(this.#has(open, args), `no open job of ${task.name} has the arguments ${JSON.stringify(args)}; open jobs: ${JSON.stringify(open)}`);
  }

  /** Asserts the opposite. */
  refuteEnqueued(task, args) {
    assert.ok(!this.#has(this.enqueued(task), args), `an open job of ${task.name} has the arguments ${JSON.stringify(args)}`);
  }

  #has(open, args) {
    if (args === undefined) return open.length > 0;
    const isSame = (job) => {
      try {
        assert.deepStrictEqual(job, plain(args));
        return true;
      } catch {
        return false;
      }
    };
    return open.some(isSame);
  }

  /** Runs all due jobs, and those that they enqueue. Returns the numbers of finished, failed and delayed jobs. */
  async drain() {
    for (let job; (job = this.#due()); ) await this.#run(job);
    const count = (state) => [...this.#jobs.values()].filter((job) => job.state === state).length;
    return { finished: count("finished"), failed: count("failed"), delayed: count("queued") };
  }

  #due() {
    return [...this.#jobs.values()].find((job) => job.state === "queued" && job.due <= this.#now);
  }

  async #run(job) {
    job.attempts += 1;
    try {
      const task = this.#app.tasks.get(job.type);
      if (!task) throw new Permanent(`there is no task "${job.type}" in this app`);
      const onChild = ({ id, args, options }) => this.#add({ ...options, id, payload: args });
      const { result, log } = await perform(task, job.payload, { attempt: job.attempts, id: job.id, onChild });
      Object.assign(job, { state: "finished", output: result, log: log.split("\n").slice(0, -1) });
    } catch (error) {
      this.#failed(job, error);
    }
  }

  #failed(job, error) {
    const verdict = error instanceof Verdict ? error.verdict : "retry";
    job.error = error instanceof Verdict ? error.message : `${error.name}: ${error.message}`;
    const [first, longest] = BACKOFF;
    const pause = Math.min(seconds(job.backoff ?? first) * 2 ** (job.attempts - 1), longest);
    if (verdict === "snooze") job.attempts -= 1;
    else if (verdict !== "retry" || job.attempts > (job.retries ?? 0)) return void (job.state = "failed");
    job.due = this.#now + (error.after ?? pause);
  }

  #add(spec) {
    const id = spec.id ?? `job-${this.#jobs.size + 1}`;
    if (!this.#jobs.has(id)) {
      const due = this.#now + seconds(spec.delay ?? 0);
      this.#jobs.set(id, { ...spec, payload: plain(spec.payload), id, state: "queued", attempts: 0, due, log: [] });
    }
    return { id };
  }

  #job(id) {
    const job = this.#jobs.get(id);
    if (!job) throw new MeshworkError(`job ${id} does not exist`);
    return job;
  }

  /** Stands for the store. A call that waits for a result runs what is due. */
  #engine() {
    return {
      enqueue: async (job) => this.#add(plain(job)).id,
      enqueueMany: async (jobs) => jobs.map((job) => this.#add(plain(job)).id),
      job: async (id) => this.#job(id),
      wait: async (id) => {
        const job = this.#job(id);
        await this.drain();
        return job.state === "queued" ? undefined : job;
      },
      cancel: async (id) => {
        const job = this.#job(id);
        if (job.state !== "queued") return "ended";
        job.state = "cancelled";
        return job.state;
      },
      logs: async (id) => this.#job(id).log,
      close() {},
    };
  }
}

module.exports = { TestStore, perform };
