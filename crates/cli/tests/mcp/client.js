// The TypeScript SDK at a server for agents. The argument is JSON: `command` with its words, or `url` with `key`; `go_on` is a file
// that ends a job.

const fs = require("fs");
const Ajv2020 = require("ajv/dist/2020");
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");
const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");

const given = JSON.parse(process.argv[2]);

function transport() {
  if (given.url) {
    const headers = { authorization: `Bearer ${given.key}` };
    return new StreamableHTTPClientTransport(new URL(given.url), { requestInit: { headers } });
  }
  const [command, ...args] = given.command;
  return new StdioClientTransport({ command, args, env: process.env });
}

// What the validator refuses or warns of.
function faults(tools) {
  const found = [];
  const log = { log() {}, warn: (text) => found.push(text), error: (text) => found.push(text) };
  for (const { name, inputSchema } of tools) {
    try {
      new Ajv2020({ logger: log }).compile(inputSchema);
    } catch (error) {
      found.push(`${name}: ${error.message}`);
    }
  }
  return found;
}

async function main() {
  const client = new Client({ name: "test", version: "1" });
  await client.connect(transport());
  const { tools } = await client.listTools();
  const call = async (name, input, options) => {
    const result = await client.callTool({ name, arguments: input }, undefined, options);
    const data = JSON.parse(result.content[0].text.split("\n")[2]);
    return { error: result.isError === true, data };
  };
  const created = await call("create_job", { type: "osis", script: "1", id: "sdk-1" });
  const found = await call("search_jobs", { type: "osis" });
  const why = await call("explain_job", { id: "sdk-1" });
  const missing = await call("get_job", { id: "none" });
  const cancelled = await call("cancel_job", { id: "sdk-1" });
  let refused = null;
  await client.callTool({ name: "delete_all", arguments: {} }).catch((error) => (refused = error.code));
  const progress = [];
  const onprogress = (step) => {
    progress.push([step.progress, step.message]);
    if (step.message.includes("half")) fs.writeFileSync(given.go_on, "");
  };
  const long = { type: "python", script: given.script, id: "sdk-2", wait: 60 };
  const ended = await call("create_job", long, { onprogress });
  const abort = new AbortController();
  const waits = call("create_job", { type: "osis", script: "1", id: "sdk-3", wait: 300 }, { signal: abort.signal });
  const aborted = waits.then(() => false, () => true);
  while ((await call("get_job", { id: "sdk-3" })).error);
  abort.abort();
  const many = await Promise.all([...Array(200)].map(() => call("get_job", { id: "sdk-3" })));
  console.log(JSON.stringify({
    server: client.getServerVersion().name,
    tools: tools.map((tool) => tool.name),
    faults: faults(tools),
    created, found, why, missing, cancelled, refused, progress, ended,
    aborted: await aborted,
    many: many.filter((it) => !it.error && it.data.id === "sdk-3").length,
  }));
  await client.close();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
