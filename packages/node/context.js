// The run of a task: what the function gets, and how it is called.

"use strict";

const { AsyncLocalStorage } = require("node:async_hooks");

const { Permanent } = require("./errors.js");

/** The run of the code that asks. */
const current = new AsyncLocalStorage();

/** The run of a task. Its messages go to `send`. */
class Context {
  #run;
  #send;
  #controller = new AbortController();
  #calls = 0;
  children = new Map();

  constructor(run, send) {
    this.#run = run;
    this.#send = send;
    this.id = run.id;
    this.task = run.type;
    this.attempt = run.attempt;
    this.timeout = run.timeout;
    this.caller = run.caller ?? "";
    this.input = run.input;
    this.env = run.env ?? {};
    this.traceparent = run.traceparent;
    this.cancelReason = undefined;
    this.signal = this.#controller.signal;
  }

  log(text) {
    this.write(`${text}\n`);
  }

  progress(fraction, message) {
    this.#send({ progress: { run: this.#run.run, fraction, message } });
  }

  resultOf(name) {
    const entry = this.#run.inputs?.[name];
    if (!entry) throw new Error(`there is no input "${name}": this job has ${Object.keys(this.#run.inputs ?? {}).join(", ") || "none"}`);
    if (entry.error) throw new Error(entry.error);
    return entry.result;
  }

  addChild(task, args = {}) {
    const call = ++this.#calls;
    this.#send({ add_child: { run: this.#run.run, call, ...task.child(args) } });
    return new Promise((done, failed) => this.children.set(call, { done, failed }));
  }

  /** Answers a call of `addChild`. */
  answer({ call, id, error }) {
    const child = this.children.get(call);
    this.children.delete(call);
    error === undefined ? child?.done(id) : child?.failed(new Error(error));
  }

  write(text, stderr) {
    this.#send({ log: { run: this.#run.run, text, stderr } });
  }

  cancel(reason) {
    this.cancelReason = reason;
    this.#controller.abort(new Permanent("the run was cancelled"));
  }
}

/** Calls a task within its middlewares. */
function call(task, payload, context) {
  return current.run(context, async () => {
    const ended = task.app.middlewares.reduceRight(
      (goOn, around) => () => around(context, goOn),
      () => task.run(payload, context),
    );
    const cancelled = new Promise((_, failed) => context.signal.addEventListener("abort", () => failed(context.signal.reason)));
    return Promise.race([ended(), cancelled]);
  });
}

module.exports = { Context, call, current };
