#!/usr/bin/env node
// The command `meshwork`.

"use strict";

const { spawn } = require("node:child_process");

const { part } = require("./platform.js");

const command = spawn(part("meshwork"), process.argv.slice(2), { stdio: "inherit" });
for (const signal of ["SIGHUP", "SIGINT", "SIGTERM"]) process.on(signal, () => command.kill(signal));
command.on("error", (error) => {
  console.error(`cannot start the command: ${error.message}`);
  process.exitCode = 1;
});
command.on("exit", (code, signal) => {
  if (!signal) return process.exit(code);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
