// A process of a worker: loads a module with apps and runs their tasks. Its stdin is a socket; each line on it is a message, an
// object of JSON: see docs/adding-a-language.md.

"use strict";

const { Socket } = require("node:net");
const { resolve } = require("node:path");
const { createInterface } = require("node:readline");
const { pathToFileURL } = require("node:url");
const { Worker } = require("node:worker_threads");

const { Context, call, current } = require("./context.js");
const { Permanent, Verdict } = require("./errors.js");
const { apps } = require("./index.js");

const PROTOCOL = 1;
/** Time between two looks for the parent, in milliseconds. */
const LOOKS = 250;

const socket = new Socket({ fd: 0, readable: true, writable: true });
const runs = new Map();

function send(message) {
  socket.write(`${JSON.stringify(message)}\n`);
}

/** Ends this process with its parent, also while a task blocks the event loop. */
function watchParent() {
  // The thread may begin when the parent is gone already.
  const source = `
    setInterval(() => process.ppid === ${process.ppid} || process.kill(process.pid, "SIGKILL"), ${LOOKS});`;
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
  const context = new Context(run, send);
  runs.set(run.run, context);
  try {
    const result = await call(taskOf(run.type), run.payload, context);
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
  const own = (line) => !line.includes(__dirname);
  return { error: `${error.name}: ${error.message}`, traceback: error.stack?.split("\n").filter(own).join("\n") };
}

async function stop() {
  for (const app of apps) for (const end of app.stops) await end();
  process.exit(0);
}

const messages = {
  run: begin,
  cancel: ({ run, reason }) => runs.get(run)?.cancel(reason),
  child: (answer) => runs.get(answer.run)?.answer(answer),
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
