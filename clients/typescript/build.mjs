// Compiles the client twice: as an ES module, and for `require`. npm runs it when it packs or installs this folder. The compiler
// is an installed TypeScript, or else one that npm fetches.
import { execFileSync } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const FETCHED = "typescript@5.9";

function compile(...args) {
  let installed;
  try {
    installed = createRequire(import.meta.url).resolve("typescript/bin/tsc");
  } catch {
    const npm = ["exec", "--yes", `--package=${FETCHED}`, "--", "tsc", ...args];
    // On Windows, npm is a script.
    execFileSync("npm", npm, { stdio: "inherit", shell: process.platform === "win32" });
    return;
  }
  execFileSync(process.execPath, [installed, ...args], { stdio: "inherit" });
}

process.chdir(fileURLToPath(new URL(".", import.meta.url)));
rmSync("dist", { recursive: true, force: true });
compile("--outDir", "dist/esm");
// The first compilation has checked the types.
compile("--outDir", "dist/cjs", "--module", "CommonJS", "--moduleResolution", "node10", "--noCheck");
// Node and TypeScript read the kind of a module from the nearest package.json.
writeFileSync("dist/cjs/package.json", '{"type": "commonjs"}\n');
