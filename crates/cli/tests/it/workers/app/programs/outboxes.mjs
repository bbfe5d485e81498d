// Rows of an outbox in transactions of pg and Drizzle, and the call of Prisma.
import assert from "node:assert";
import { writeFileSync } from "node:fs";

import { drizzle } from "drizzle-orm/node-postgres";
import { App, MeshworkError } from "meshwork";
import * as outbox from "meshwork/outbox";
import pg from "pg";

const pay = new App().task("pay", { retries: 2, timeout: "90s" }, ({ order }) => `paid ${order}`);
const schema = "tasks_in_node";
const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL });
const committed = [];

for (const commit of [true, false]) {
  const client = await pool.connect();
  await client.query("BEGIN");
  const id = await outbox.enqueue(client, pay, { order: 1 }, { schema });
  await client.query(commit ? "COMMIT" : "ROLLBACK");
  client.release();
  if (commit) committed.push(id);

  const written = drizzle(pool).transaction(async (transaction) => {
    const id = await outbox.enqueue(transaction, pay, { order: 2 }, { schema });
    if (!commit) throw new Error("rolled back");
    return id;
  });
  if (commit) committed.push(await written);
  else await assert.rejects(written, /rolled back/);
}
for (let call = 0; call < 2; call++) await outbox.enqueue(pool, pay.options({ id: "same" }), { order: 3 }, { schema });
committed.push("same");
const rows = await pool.query(`SELECT id FROM ${schema}.meshwork_outbox`);
assert.deepEqual(rows.rows.map(({ id }) => id).sort(), [...committed].sort());

// Prisma needs a generated client; this is what it is called with.
const calls = [];
const prisma = { $executeRawUnsafe: async (...call) => calls.push(call) };
const id = await outbox.enqueue(prisma, pay, { order: 4 });
const [sql, ...values] = calls[0];
assert.match(sql, /^WITH new AS \(INSERT INTO meshwork_outbox \(id, job\) VALUES \(\$1, \$2\) .*pg_notify\(\$3, ''\)/);
assert.deepEqual(values, [id, JSON.stringify({ spec: { type: "pay", payload: { order: 4 }, retries: 2, timeout: "90s" } }), "meshwork_outbox"]);
await assert.rejects(outbox.enqueue({}, pay, { order: 5 }), MeshworkError);
writeFileSync("rows.txt", committed.sort().join("\n"));
await pool.end();
console.log("done");
