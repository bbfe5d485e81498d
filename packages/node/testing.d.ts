import type { App, Task } from "./index.js";

export interface Performed<Result> {
  readonly result: Result;
  readonly log: string;
  readonly progress?: { fraction: number; message?: string };
  readonly children: { id: string; task: string; args: unknown }[];
}

/** Runs a task here as a worker does. An error of the task is thrown. */
export function perform<Args extends object, Result>(
  task: Task<Args, Result>,
  args?: Args,
  options?: { attempt?: number; id?: string; inputs?: Record<string, unknown>; env?: Record<string, string> },
): Promise<Performed<Awaited<Result>>>;

/** Jobs of an app in this process, by a clock that the test advances. While it is open, the app enqueues here. */
export class TestStore {
  constructor(app: App);
  /** Gives the app its own store back. */
  close(): void;
  advance(seconds: number): void;
  /** Returns the arguments of the jobs of a task that have not ended. */
  enqueued<Args extends object>(task: Task<Args, any>): Args[];
  /** Asserts that a job with these arguments has not ended; without arguments, any. */
  assertEnqueued<Args extends object>(task: Task<Args, any>, args?: Args): void;
  refuteEnqueued<Args extends object>(task: Task<Args, any>, args?: Args): void;
  /** Runs all due jobs, and those that they enqueue. */
  drain(): Promise<{ finished: number; failed: number; delayed: number }>;
}
