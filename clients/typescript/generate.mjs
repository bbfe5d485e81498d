// Writes src/schema.ts and src/methods.ts from the document of the API. build.mjs runs it.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { run } from "./tool.mjs";

const path = (name) => fileURLToPath(new URL(name, import.meta.url));
// In a package, the document is beside this file.
const DOCUMENTS = [path("openapi.json"), path("../../docs/openapi.json")];
const HEADER = "// Made from the document of the API by generate.mjs. Do not edit.\n";

const START = `
import type { components } from "./schema.js";

/** Schemas of parameters and results. */
export type Schemas = components["schemas"];

/** Options of a call that creates a job. */
export interface Keyed {
  /** The same key with the same parameters creates one job. Default: a new key for each call. */
  idempotencyKey?: string;
}

/** Request of a method. */
export interface Route {
  verb: string;
  path: string;
  inPath?: string[];
  keyed?: boolean;
  waits?: boolean;
  items?: string;
}

/** Calls methods by name. */
export interface Caller {
  call<R>(name: string, params: object, options?: Keyed): Promise<R>;
  iterate<R>(name: string, params: object): AsyncGenerator<R>;
}

/** Requests of all methods. */
export const ROUTES: Record<string, Route> = {
`;

const nameOf = (schema) => schema?.$ref?.replace("#/components/schemas/", "");
const camel = (name) => name.replace(/_(.)/g, (_, letter) => letter.toUpperCase());
const capital = (name) => name[0].toUpperCase() + name.slice(1);

// A method, as the document describes it.
function methodOf(document, path, verb, operation) {
  const { schemas } = document.components;
  const [object, name] = operation.operationId.split(".");
  const params = nameOf(operation["x-params"]);
  const fields = schemas[params]?.properties ?? {};
  const [, success] = Object.entries(operation.responses).find(([status]) => status !== "default");
  const result = nameOf(success.content["application/json"].schema);
  const placed = (place) => operation.parameters.filter((it) => it.in === place).map((it) => it.name);
  const page = "cursor" in fields ? schemas[result].properties : {};
  const lists = Object.entries(page).map(([field, it]) => [field, nameOf(it.items)]);
  const [items, item] = lists.sort().find(([, item]) => item) ?? [];
  return {
    id: operation.operationId,
    object,
    name: camel(name),
    summary: operation.summary,
    verb: verb.toUpperCase(),
    path,
    params: params === "NoParams" ? undefined : params,
    requires: (schemas[params]?.required ?? []).length > 0,
    result,
    inPath: placed("path"),
    keyed: placed("header").includes("Idempotency-Key"),
    waits: "wait" in fields,
    items,
    item,
  };
}

function routeOf(method) {
  const parts = [`verb: "${method.verb}"`, `path: "${method.path}"`];
  const inPath = method.inPath.map((it) => `"${it}"`).join(", ");
  if (inPath) parts.push(`inPath: [${inPath}]`);
  for (const flag of ["keyed", "waits"]) if (method[flag]) parts.push(`${flag}: true`);
  if (method.items) parts.push(`items: "${method.items}"`);
  return `  "${method.id}": { ${parts.join(", ")} },\n`;
}

function stubOf(method) {
  const fallback = method.requires ? "" : " = {}";
  const params = method.params ? `params: Schemas["${method.params}"]${fallback}` : "";
  const given = method.params ? "params" : "{}";
  const [key, keyGiven] = method.keyed ? [", options: Keyed = {}", ", options"] : ["", ""];
  const stub = `
  /** ${method.summary}. */
  ${method.name}(${params}${key}): Promise<Schemas["${method.result}"]> {
    return this.caller.call("${method.id}", ${given}${keyGiven});
  }
`;
  if (!method.items) return stub;
  // A list has the short name.
  const name = method.name === "list" ? "iter" : `iter${capital(method.name)}`;
  return `${stub}
  /** Iterates over the items of all pages of \`${method.name}\`. */
  ${name}(${params}): AsyncGenerator<Schemas["${method.item}"]> {
    return this.caller.iterate("${method.id}", ${given});
  }
`;
}

function methodsText(document) {
  const methods = Object.entries(document.paths)
    .flatMap(([path, verbs]) => Object.entries(verbs).map(([verb, it]) => [path, verb, it]))
    // Streams are no methods.
    .filter(([, , operation]) => !operation["x-stream"])
    .map((it) => methodOf(document, ...it))
    .sort((one, other) => (one.id < other.id ? -1 : 1));
  const objects = [...new Set(methods.map((it) => it.object))];
  let text = `${HEADER}${START}${methods.map(routeOf).join("")}};\n`;
  for (const object of objects) {
    text += `\n/** Methods of the object \`${object}\`. */\nexport class ${capital(object)}Methods {\n`;
    text += "  constructor(private readonly caller: Caller) {}\n";
    text += `${methods.filter((it) => it.object === object).map(stubOf).join("")}}\n`;
  }
  text += "\n/** All methods, by object. */\nexport class Methods {\n";
  text += objects.map((it) => `  readonly ${it}: ${capital(it)}Methods;\n`).join("");
  text += "\n  constructor(caller: Caller) {\n";
  text += objects.map((it) => `    this.${it} = new ${capital(it)}Methods(caller);\n`).join("");
  return `${text}  }\n}\n`;
}

export function generate() {
  const source = DOCUMENTS.find(existsSync);
  writeFileSync(path("src/methods.ts"), methodsText(JSON.parse(readFileSync(source, "utf8"))));
  // A parameter with a default may be left out.
  run("openapi-typescript", "bin/cli.js", "--default-non-nullable=false", source, "--output", "src/schema.ts");
}
