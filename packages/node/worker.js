// A process of a worker: loads a module with apps and runs their tasks. Its stdin is a socket; each line on it is a message, an
// object of JSON: see docs/adding-a-language.md.

"use strict";

const { AsyncLocalStorage } = require("node:async_hooks");
const { Socket } = require("node:net");
const { resolve } = require("node:path");
const { createInterface } = require("node:readline");
const { pathToFileURL } = require("node:url");
const { Worker } = require("node:worker_threads");

const { Permanent, Verdict } = require("./errors.js");
const { apps } = require("./index.js");

const PROTOCOL = 1;
/** Time between two looks for the parent, in milliseconds. */
const LOOKS = 250;

const current = new AsyncLocalStorage();
const socket = new Socket({ fd: 0, readable: true, writable: true });
const runs = new Map();

function send(message) {
  socket.write(`${JSON.stringify(message)}\n`);
}

/** The run of a task. */
class Context {
  #run;
  #controller = new AbortController();
  #calls = 0;
  children = new Map();

  constructor(run) {
    this.#run = run;
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
    send({ log: { run: this.#run.run, text: `${text}\n` } });
  }

  progress(fraction, message) {
    send({ progress: { run: this.#run.run, fraction, message } });
  }

  resultOf(name) {
    const entry = this.#run.inputs?.[name];
    if (!entry) throw new Error(`there is no input "${name}": this job has ${Object.keys(this.#run.inputs ?? {}).join(", ") || "none"}`);
    if (entry.error) throw new Error(entry.error);
    return entry.result;
  }

  addChild(task, args = {}) {
    const call = ++this.#calls;
    send({ add_child: { run: this.#run.run, call, ...task.child(args) } });
    return new Promise((done, failed) => this.children.set(call, { done, failed }));
  }

  write(text, stderr) {
    send({ log: { run: this.#run.run, text, stderr } });
  }

  cancel(reason) {
    this.cancelReason = reason;
    this.#controller.abort(new Permanent("the run was cancelled"));
  }
}

/** Ends this process with its parent, also while a task blocks the event loop. */
function watchParent() {
  const source = `
    const parent = process.ppid;
    setInterval(() => process.ppid === parent || process.kill(process.pid, "SIGKILL"), ${LOOKS});`;
  new Worker(source, { eval: true }).unref();
}

/** What a task prints goes to its log, and the rest to the worker's stderr. */
function redirect(stream, isStderr) {
  const outside = stream.write.bind(stream);
  stream.write = (chunk, encoding, done) => {
    const context = current.getStore();
    if (!context) return outside(chunk, encoding, done);
    context.write(typeof chunk === "string" ? chunk : Buffer.from(chunk).toString(), isStderr);
    (typeof encoding === "function" ? encoding : done)?.();
    return true;
  };
}

function taskOf(name) {
  for (const app of apps) {
    const task = app.tasks.get(name);
    if (task) return task;
  }
  throw new Permanent(`there is no task "${name}" in this app`);
}

async function begin(run) {
  const context = new Context(run);
  runs.set(run.run, context);
  try {
    const result = await current.run(context, async () => {
      const task = taskOf(run.type);
      const ended = task.app.middlewares.reduceRight(
        (goOn, around) => () => around(context, goOn),
        () => task.run(run.payload, context),
      );
      const cancelled = new Promise((_, failed) => context.signal.addEventListener("abort", () => failed(context.signal.reason)));
      return Promise.race([ended(), cancelled]);
    });
    send({ done: { run: run.run, result: result ?? null } });
  } catch (error) {
    send({ failed: { run: run.run, ...failure(error) } });
  } finally {
    runs.delete(run.run);
  }
}

function failure(error) {
  if (error instanceof Verdict) return { error: error.message, verdict: error.verdict, after: error.after };
  if (!(error instanceof Error)) return { error: String(error) };
  const own = (line) => !line.includes(__filename);
  return { error: `${error.name}: ${error.message}`, traceback: error.stack?.split("\n").filter(own).join("\n") };
}

async function stop() {
  for (const app of apps) for (const end of app.stops) await end();
  process.exit(0);
}

const messages = {
  run: begin,
  cancel: ({ run, reason }) => runs.get(run)?.cancel(reason),
  child({ run, call, id, error }) {
    const child = runs.get(run)?.children.get(call);
    error === undefined ? child?.done(id) : child?.failed(new Error(error));
  },
  stop,
};

/** Loads the module, and runs tasks until the worker ends this process. */
async function serve(module) {
  for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => {});
  watchParent();
  redirect(process.stdout, false);
  redirect(process.stderr, true);
  await import(pathToFileURL(resolve(module)));
  for (const app of apps) for (const start of app.starts) await start();
  const lines = createInterface({ input: socket });
  lines.on("line", (line) => {
    const [[kind, message]] = Object.entries(JSON.parse(line));
    messages[kind]?.(message);
  });
  lines.on("close", () => process.exit(1));
  socket.on("error", () => process.exit(1));
  const all = [...apps];
  const tasks = all.flatMap((app) => [...app.tasks.keys()]).map((name) => ({ name }));
  send({ ready: { protocol: PROTOCOL, tasks, schedules: all.flatMap((app) => app.schedules) } });
}

module.exports = { serve };
