// Runs a tool of the build: an installed one, or else one that npm fetches.
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const VERSIONS = { "openapi-typescript": "7.13", typescript: "5.9" };

export function run(tool, program, ...args) {
  const folders = createRequire(import.meta.url).resolve.paths(tool);
  const installed = folders.map((it) => join(it, tool, program)).find(existsSync);
  if (installed) {
    execFileSync(process.execPath, [installed, ...args], { stdio: ["ignore", "ignore", "inherit"] });
    return;
  }
  const name = tool === "typescript" ? "tsc" : tool;
  const npm = ["exec", "--yes", `--package=${tool}@${VERSIONS[tool]}`, "--", name, ...args];
  // On Windows, npm is a script.
  execFileSync("npm", npm, { stdio: "inherit", shell: process.platform === "win32" });
}
