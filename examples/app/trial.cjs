// As trial.mjs, in CommonJS.

const { spawn } = require("node:child_process");
const { once } = require("node:events");

const { sendMail } = require("./tasks.cjs");

const worker = spawn("node_modules/.bin/meshwork", ["worker", "--app", "./tasks.cjs", "--processes", "1"], { stdio: "ignore" });
sendMail
  .call({ to: "ada@example.org" })
  .then(console.log)
  .finally(() => {
    worker.kill();
    return once(worker, "exit");
  });
