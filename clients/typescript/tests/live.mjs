// Tests of the installed client against a running server. Arguments: the server's address, a free address, and a key.

import assert from "node:assert/strict";
import net from "node:net";

import { FlowFailed, JobFailed, Meshwork } from "meshwork-client";

const [server, address, key] = process.argv.slice(2);
const place = (text) => ({ host: text.split(":")[0], port: Number(text.split(":")[1]) });

/** Forwards connections to the server, cuts them, and loses answers. */
const proxy = { losing: 0, lost: 0, open: new Set() };
proxy.cut = () => proxy.open.forEach((socket) => socket.destroy());
const listener = net.createServer((client) => {
  const upstream = net.connect(place(server));
  const pair = [client, upstream];
  client.on("data", (data) => upstream.write(data));
  upstream.on("data", (data) => {
    if (proxy.losing === 0) return client.write(data);
    proxy.losing -= 1;
    proxy.lost += 1;
    client.destroy();
  });
  for (const socket of pair) {
    proxy.open.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => pair.forEach((one) => one.destroy() && proxy.open.delete(one)));
  }
});
await new Promise((resolve) => listener.listen(place(address), resolve));

const mesh = new Meshwork(`http://${address}`, { key });
const refused = (code) => (error) => error.code === code;

async function all(iterator) {
  const items = [];
  for await (const item of iterator) items.push(item);
  return items;
}

async function pagesCancelsAndRetries() {
  const ids = Array.from({ length: 7 }, (_, n) => `p-${n}`);
  for (const id of ids) await mesh.job.create({ type: "paged", script: "1", id });
  const queued = async (queue) => (await all(mesh.job.iter({ state: "queued", queue, limit: 2 }))).map((job) => job.id);
  assert.deepEqual(await queued("paged"), ids);
  assert.equal((await mesh.job.cancel({ id: "p-3" })).result, "cancelled");
  assert.equal((await queued("paged")).length, 6);
  assert.equal((await mesh.job.retry({ id: "p-3" })).result, "queued");
  assert.deepEqual(await queued("paged"), [...ids.slice(0, 3), ...ids.slice(4), "p-3"]);
  proxy.losing = 2;
  const made = await mesh.job.create({ type: "once", script: "1" });
  assert.equal(proxy.losing, 0);
  assert.deepEqual(await queued("once"), [made.id]);
  // A call that changes something again is not repeated.
  proxy.losing = 1;
  await assert.rejects(mesh.job.cancel({ id: "p-4" }), TypeError);
}

async function runs() {
  assert.equal((await mesh.run({ type: "osis", script: "6 * 7" })).output, 42);
  await assert.rejects(
    mesh.run({ type: "osis", script: 'throw "boom"' }),
    (error) => error instanceof JobFailed && error.message.includes("boom") && error.job.status === "error",
  );
  await assert.rejects(mesh.run({ type: "other", script: "1" }, 0.2), refused("timeout"));
  await assert.rejects(mesh.job.get({ id: "a/b c?" }), refused("not_found"));
  await assert.rejects(mesh.job.create({ type: "o s", script: "1" }), refused("invalid_params"));
  assert.equal((await mesh.job.why({ id: "p-0" })).waits[0].reason, "no_worker");
  const many = Array.from({ length: 10 }, (_, n) => mesh.run({ type: "osis", script: `${n} * 2` }));
  assert.deepEqual((await Promise.all(many)).map((job) => job.output), Array.from({ length: 10 }, (_, n) => n * 2));
}

async function waitsForFlows() {
  const submit = async (job) => (await mesh.flow.submit({ flow: `{flow: f, jobs: {a: ${job}}}` })).id;
  const flow = await mesh.waitFlow(await submit("{type: osis, script: '6 * 7'}"));
  assert.deepEqual([flow.status, flow.jobs[0].status], ["finished", "finished"]);
  const failing = await submit("{type: osis, script: 'throw 1'}");
  await assert.rejects(mesh.waitFlow(failing), (error) => error instanceof FlowFailed && error.flow.id === failing);
  const asking = await submit("{approve: 'Go on?'}");
  await assert.rejects(mesh.waitFlow(asking, { within: 0.2 }), refused("timeout"));
}

async function follows() {
  const lines = Array.from({ length: 50 }, (_, n) => `line ${n}\u2028`);
  const script = lines.map((line) => `print("${line}");`).join("");
  const { id } = await mesh.job.create({ type: "osis", script });
  const seen = [];
  for await (const line of mesh.logs(id)) {
    seen.push(line);
    if ([1, 20].includes(seen.length)) proxy.cut();
  }
  assert.deepEqual(seen.map((line) => line.data.line), lines);
  const rest = await all(mesh.logs(id, { after: seen.at(-2).id }));
  assert.deepEqual(rest.map((line) => line.data.line), lines.slice(-1));
  const ids = [];
  for await (const event of mesh.events({ job: id, after: "0" })) {
    ids.push(event.id);
    proxy.cut();
    if (event.data.event === "finished") break;
  }
  assert.ok(ids.length >= 3 && new Set(ids).size === ids.length, `${ids}`);
  await assert.rejects(all(mesh.events({ after: "x" })), refused("invalid_params"));
  const end = new AbortController();
  const waiting = all(mesh.events({ job: id, signal: end.signal }));
  end.abort();
  assert.deepEqual(await waiting, []);
}

await pagesCancelsAndRetries();
await runs();
await waitsForFlows();
await follows();
const stranger = new Meshwork(`http://${address}`, { key: "mwk_no.body", retries: 0 });
await assert.rejects(stranger.job.get({ id: "p-0" }), refused("invalid_credentials"));
assert.equal(proxy.lost, 3);
console.log("all parts hold");
process.exit(0);
