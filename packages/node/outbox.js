// Jobs in transactions of PostgreSQL: a row that exists when the transaction commits. `meshwork outbox relay` moves rows to the store
// (docs/outbox.md).

"use strict";

const { randomUUID } = require("node:crypto");

const { MeshworkError } = require("./errors.js");

/**
 * Writes a job as a row, in the transaction of the connection, and returns its id. The connection is a client of pg, a
 * transaction of Prisma (`$executeRawUnsafe`), or one of Drizzle over pg (`execute`).
 */
async function enqueue(connection, task, args = {}, { schema } = {}) {
  if (schema !== undefined && !/^[a-z_][a-z0-9_]{0,39}$/.test(schema)) {
    throw new MeshworkError(`schema "${schema}": 1 to 40 of a-z, 0-9 and _, not beginning with a digit`);
  }
  const { id = randomUUID(), ...spec } = task.job(args);
  const table = schema ? `${schema}.meshwork_outbox` : "meshwork_outbox";
  const channel = schema ? `meshwork_outbox_${schema}` : "meshwork_outbox";
  // One statement: the notification wakes relays at the commit.
  const sql = [
    `WITH new AS (INSERT INTO ${table} (id, job) VALUES (`,
    ", ",
    ") ON CONFLICT (id) DO NOTHING RETURNING id) SELECT pg_notify(",
    ", '')::text FROM new",
  ];
  await execute(connection, sql, [id, JSON.stringify({ spec }), channel]);
  return id;
}

async function execute(connection, parts, values) {
  const numbered = parts.reduce((sql, part, at) => `${sql}$${at}${part}`);
  if (typeof connection.$executeRawUnsafe === "function") return connection.$executeRawUnsafe(numbered, ...values);
  if (typeof connection.execute === "function") {
    const { sql } = await import("drizzle-orm");
    return connection.execute(sql(parts, ...values));
  }
  if (typeof connection.query === "function") return connection.query(numbered, values);
  throw new MeshworkError("this is no client of pg, and no transaction of Prisma or Drizzle");
}

module.exports = { enqueue };
