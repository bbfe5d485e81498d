// Calls the programs of docs/frameworks.md in JavaScript.
import assert from "node:assert";
import { once } from "node:events";

import { NestFactory } from "@nestjs/core";
import { TestStore } from "meshwork/testing";

import { web } from "./express.mjs";
import { Root } from "./nest.mjs";
import { POST } from "./route.mjs";
import { app, sendMail } from "./tasks.mjs";

const store = new TestStore(app);

const server = web.listen(0, "127.0.0.1");
await once(server, "listening");
const express = `http://127.0.0.1:${server.address().port}`;
const answer = await fetch(`${express}/mails/ada`, { method: "POST" });
assert.equal(answer.status, 202);
store.assertEnqueued(sendMail, { to: "ada" });
const { job } = await answer.json();
await store.drain();
assert.deepEqual(await (await fetch(`${express}/mails/${job}`)).json(), { state: "finished" });
server.close();

const nest = await NestFactory.create(Root, { logger: ["error"] });
await nest.listen(0, "127.0.0.1");
assert.equal((await fetch(`${await nest.getUrl()}/mails/bob`, { method: "POST" })).status, 202);
store.assertEnqueued(sendMail, { to: "bob" });
await nest.close();

const handled = await POST(new Request("http://localhost/mails", { method: "POST", body: JSON.stringify({ to: "eve" }) }));
assert.equal(handled.status, 202);
store.assertEnqueued(sendMail, { to: "eve" });
store.close();
console.log("done");
