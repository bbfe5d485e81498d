/** Options of the jobs of a task, as `meshwork job schema` describes them. Durations are seconds, or texts such as "10m". */
export interface TaskOptions<Args> {
  id?: string;
  group?: string;
  route?: string;
  instance?: string;
  priority?: "high" | "normal" | "low";
  timeout?: Duration;
  retries?: number;
  backoff?: Duration;
  start_timeout?: Duration;
  tags?: string[];
  depends_on?: (string | Handle<unknown>)[];
  on_failure?: "fail" | "continue";
  prerequisite_timeout?: Duration;
  exclusive?: boolean;
  caller?: string;
  at?: string;
  tz?: string;
  delay?: Duration;
  key?: string | ((args: Args) => string);
  unique?: string | ((args: Args) => string);
  unique_for?: Duration;
  unique_until?: "done" | "started";
  on_duplicate?: "keep" | "refuse" | "replace";
  debounce?: string;
  throttle?: string;
  batch?: string;
  env?: Record<string, string>;
  input?: unknown;
}

export type Duration = number | string;

/** The run of a task. */
export interface Context {
  /** Id of the job, the same in each attempt. */
  readonly id: string;
  readonly task: string;
  /** Number of the attempt, from 1. */
  readonly attempt: number;
  /** Seconds that the run had at its start. */
  readonly timeout: number;
  readonly caller: string;
  readonly input?: string;
  readonly env: Record<string, string>;
  readonly traceparent?: string;
  /** Aborted when the run has to end. */
  readonly signal: AbortSignal;
  readonly cancelReason?: "timeout" | "cancelled" | "lost";
  /** Adds a line to the job's log. `console.log` does so too. */
  log(text: string): void;
  /** Reports progress: a fraction from 0 to 1, and a text. */
  progress(fraction: number, message?: string): void;
  /** Returns the result of a prerequisite, by its name or id. */
  resultOf(name: string): unknown;
  /** Adds a child of the job, and returns its id. */
  addChild<Args extends object>(task: Task<Args, unknown>, ...args: Given<Args>): Promise<string>;
}

export type Run<Args extends object, Result> = (args: Args, context: Context) => Result | Promise<Result>;

/** Arguments of a call: they may be left out if none of them is needed. */
export type Given<Args extends object> = {} extends Args ? [args?: Args] : [args: Args];

export interface AppOptions {
  /**
   * Where the jobs are: `redis://…` and the other URLs of a server, `dir:FOLDER` for a data directory, `memory:` for this process
   * alone, or `http://…` for the API of a supervisor. Default: MESHWORK_API, else REDIS_URL, else the data directory.
   */
  url?: string;
  /** Key of the API. Default: the content of the file that MESHWORK_API_KEY_FILE names. */
  key?: string;
  /** Namespace of the jobs in the store. */
  namespace?: string;
}

/** Tasks, and the store that has their jobs. */
export class App {
  constructor(options?: AppOptions);
  /** Makes a function a task. Its name is the type of its jobs. */
  task<Args extends object, Result>(name: string, run: Run<Args, Result>): Task<Args, Result>;
  task<Args extends object, Result>(name: string, options: TaskOptions<Args>, run: Run<Args, Result>): Task<Args, Result>;
  /** Runs a task repeatedly. Workers of the app store the schedule when they start. */
  schedule<Args extends object>(cron: string, task: Task<Args, unknown>, args?: Args, options?: { name?: string; zone?: string }): void;
  /** Runs a function in each process of a worker, before its first task. */
  onStart(run: () => unknown): void;
  /** Runs a function at the end of each process of a worker. */
  onStop(run: () => unknown): void;
  /** Runs a function around each task. */
  middleware(run: (context: Context, goOn: () => Promise<unknown>) => unknown): void;
  /** Returns the handle of a job. */
  job(id: string): Handle<unknown>;
  /** Closes the connections. A later call opens them again. */
  close(): void;
}

/** A function that runs as a job. */
export interface Task<Args extends object, Result> {
  readonly name: string;
  /** The function itself. */
  readonly run: Run<Args, Result>;
  /** Returns the task with other options for its jobs. */
  options(options: TaskOptions<Args>): Task<Args, Result>;
  /** Enqueues a job with these arguments. */
  enqueue(...args: Given<Args>): Promise<Handle<Awaited<Result>>>;
  /** Enqueues a job for each of these arguments; none if one is wrong. Over the API, those before the wrong one are enqueued. */
  enqueueMany(list: Args[]): Promise<Handle<Awaited<Result>>[]>;
  /** Enqueues a job and waits for its result. */
  call(...args: Given<Args>): Promise<Awaited<Result>>;
}

/** A job that was enqueued. */
export interface Handle<Result> {
  readonly id: string;
  /** Waits for the result, at most this number of seconds. */
  result(options?: { timeout?: number }): Promise<Result>;
  job(): Promise<Record<string, unknown>>;
  state(): Promise<State>;
  progress(): Promise<{ fraction: number; message: string | null } | null>;
  /** Cancels the job: `cancelled`, `cancelling` or `ended`. */
  cancel(): Promise<"cancelled" | "cancelling" | "ended">;
  /** Returns the lines of the log. */
  logs(): Promise<string[]>;
}

export type State = "queued" | "delayed" | "waiting" | "running" | "cancelling" | "finished" | "failed" | "cancelled" | "stale";

export class MeshworkError extends Error {}
/** The job has ended without a result. */
export class JobFailed extends MeshworkError {
  readonly job: Record<string, unknown>;
}
export class JobCancelled extends JobFailed {}
/** The job has not ended within the time given. */
export class ResultTimeout extends MeshworkError {}
/** Run the job again, after `after` seconds or else after its backoff, if a retry is left. */
export class Retry extends Error {
  constructor(message?: string, options?: { after?: number });
}
/** No retry would help: the job becomes a dead letter. */
export class Permanent extends Error {}
/** Run the job again after this number of seconds, without counting an attempt. */
export class Snooze extends Error {
  constructor(after: number);
}
/** End the job in error, without a dead letter. */
export class Discard extends Error {}
