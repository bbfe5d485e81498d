import type { Task } from "./index.js";

/** A client of pg, or a transaction of Prisma or of Drizzle over pg. */
export type Connection =
  | { query(sql: string, values: unknown[]): Promise<unknown> }
  | { $executeRawUnsafe(sql: string, ...values: unknown[]): Promise<unknown> }
  | { execute(sql: any): Promise<unknown> };

/** Writes a job as a row of the outbox, in the transaction of the connection, and returns its id. */
export function enqueue<Args extends object>(
  connection: Connection,
  task: Task<Args, any>,
  args?: Args,
  options?: { schema?: string },
): Promise<string>;
