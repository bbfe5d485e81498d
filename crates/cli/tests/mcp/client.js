// The client of the SDK at `meshwork mcp`: the command and its words are the arguments.

const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");

async function main() {
  const [command, ...args] = process.argv.slice(2);
  const transport = new StdioClientTransport({ command, args, env: process.env });
  const client = new Client({ name: "test", version: "1" });
  await client.connect(transport);
  const { tools } = await client.listTools();
  const call = async (name, input) => {
    const result = await client.callTool({ name, arguments: input });
    const text = result.content[0].text;
    const data = text.split("\n").slice(2, -1).join("\n");
    return { error: result.isError === true, data: JSON.parse(data) };
  };
  const created = await call("create_job", { type: "osis", script: "1", id: "sdk-1" });
  const found = await call("search_jobs", { type: "osis" });
  const why = await call("explain_job", { id: "sdk-1" });
  const missing = await call("get_job", { id: "none" });
  const cancelled = await call("cancel_job", { id: "sdk-1" });
  let refused = null;
  await client.callTool({ name: "delete_all", arguments: {} }).catch((error) => (refused = error.code));
  console.log(JSON.stringify({
    server: client.getServerVersion().name,
    tools: tools.map((tool) => [tool.name, tool.annotations.readOnlyHint, tool.annotations.destructiveHint]),
    created, found, why, missing, cancelled, refused,
  }));
  await client.close();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
