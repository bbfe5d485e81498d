// Starts a worker of tasks.mjs, calls its task, and stops the worker.

import { spawn } from "node:child_process";
import { once } from "node:events";

import { sendMail } from "./tasks.mjs";

const worker = spawn("node_modules/.bin/meshwork", ["worker", "--app", "./tasks.mjs", "--processes", "1"], { stdio: "ignore" });
try {
  console.log(await sendMail.call({ to: "ada@example.org" }));
} finally {
  worker.kill();
  await once(worker, "exit");
}
