// Makes the types and methods, and compiles the client twice: as an ES module, and for `require`. npm runs it when it packs or
// installs this folder.
import { rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { generate } from "./generate.mjs";
import { run } from "./tool.mjs";

const compile = (...args) => run("typescript", "bin/tsc", ...args);

process.chdir(fileURLToPath(new URL(".", import.meta.url)));
generate();
rmSync("dist", { recursive: true, force: true });
compile("--outDir", "dist/esm");
// The first compilation has checked the types.
compile("--outDir", "dist/cjs", "--module", "CommonJS", "--moduleResolution", "node10", "--noCheck");
// Node and TypeScript read the kind of a module from the nearest package.json.
writeFileSync("dist/cjs/package.json", '{"type": "commonjs"}\n');
