/** The client: connection, retries, iterators over lists, and `run`. */

import { type Keyed, Methods, ROUTES, type Route, type Schemas } from "./methods.js";

/** Pauses before repeated requests in ms: the first, and the longest. Each is twice as long as the one before. */
const [FIRST_PAUSE, LONGEST_PAUSE] = [200, 10_000];
/** The server waits at most 300 s for a job. */
const LONGEST_WAIT = 300_000;
/** Wait of one request of `run` in seconds: proxies end connections without data after a minute. */
const RUN_WAIT = 45;
/** Answers after which a request is repeated if repetition changes nothing more. */
const UNCERTAIN = [502, 503, 504];
/** Codes of Node for connections that were never made: nothing was sent. */
const UNSENT = ["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "UND_ERR_CONNECT_TIMEOUT"];

/** Options of a client. */
export interface Options {
  /** Key of the API: `mwk_…`. */
  key?: string;
  /** Number of repetitions of a request. Default: 5. */
  retries?: number;
  /** Time for a request without a wait in ms. Default: 30 s. The server gives up after 18 s. */
  timeout?: number;
  /** The `fetch` to use. */
  fetch?: typeof fetch;
}

/** The API refused a call. `code` is the kind of the error (docs/api.md). */
export class MeshworkError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly hint?: string,
  ) {
    super(hint === undefined ? message : `${message} (${hint})`);
    this.name = new.target.name;
  }
}

/** A job ended in error. `job` is its record. */
export class JobFailed extends MeshworkError {
  constructor(readonly job: Schemas["JobView"]) {
    super(200, "execution_error", `job ${job.id} failed: ${job.error}`);
  }
}

/** The client. Its methods are grouped by object: `mesh.job.get({ id })`. */
export class Meshwork extends Methods {
  readonly #url: string;
  readonly #headers: Record<string, string>;
  readonly #retries: number;
  readonly #timeout: number;
  readonly #fetch: typeof fetch;

  constructor(url: string, options: Options = {}) {
    const caller = {
      call: <R>(name: string, params: object, keyed?: Keyed) => this.call<R>(name, params, keyed),
      iterate: <R>(name: string, params: object) => this.iterate<R>(name, params),
    };
    super(caller);
    this.#url = url.replace(/\/$/, "");
    this.#headers = options.key === undefined ? {} : { authorization: `Bearer ${options.key}` };
    this.#retries = options.retries ?? 5;
    this.#timeout = options.timeout ?? 30_000;
    this.#fetch = options.fetch ?? fetch;
  }

  /** Calls a method by name, such as `job.get`. */
  async call<R>(name: string, params: object, options: Keyed = {}): Promise<R> {
    const route = ROUTES[name];
    if (route === undefined) throw new TypeError(`there is no method ${name}`);
    const [path, init] = request(name, route, { ...params }, options);
    init.headers = { ...this.#headers, ...init.headers };
    const retry = new Retry(this.#retries, route.keyed === true || ["GET", "PUT"].includes(route.verb));
    const timeout = route.waits === true ? this.#timeout + LONGEST_WAIT : this.#timeout;
    for (;;) {
      let response: Response | undefined;
      try {
        response = await this.#fetch(this.#url + path, { ...init, signal: AbortSignal.timeout(timeout) });
        if (response.ok) return (await response.json()) as R;
        throw await problem(response);
      } catch (error) {
        await pause(retry.pause(error, response));
      }
    }
  }

  /** Iterates over the items of all pages of a list. */
  async *iterate<R>(name: string, params: object): AsyncGenerator<R> {
    const items = ROUTES[name]?.items ?? "";
    let cursor: string | null | undefined;
    do {
      const more = cursor === undefined ? {} : { cursor };
      const page = await this.call<Record<string, any>>(name, { ...params, ...more });
      yield* page[items] as R[];
      cursor = page["next"];
    } while (cursor);
  }

  /**
   * Enqueues a job, and returns it at its end. Throws `JobFailed` if it fails.
   *
   * After `within` seconds it throws a `MeshworkError` with the code `timeout`; the job goes on.
   */
  async run(job: Schemas["NewJobParams"], within?: number): Promise<Schemas["JobView"]> {
    const deadline = new Deadline(within);
    const made = await this.job.create({ ...job, wait: deadline.wait() });
    return made.job ? ended(made.job) : this.wait(made.id, deadline.left());
  }

  /** Returns a job at its end, as `run`. */
  async wait(id: string, within?: number): Promise<Schemas["JobView"]> {
    const deadline = new Deadline(within);
    for (;;) {
      try {
        return ended(await this.job.result({ id, wait: deadline.wait() }));
      } catch (error) {
        deadline.check(error);
      }
    }
  }
}

/** End of a wait for a job; none without a number of seconds. */
class Deadline {
  readonly #at: number | undefined;

  constructor(seconds: number | undefined) {
    this.#at = seconds === undefined ? undefined : performance.now() + seconds * 1000;
  }

  left(): number | undefined {
    return this.#at === undefined ? undefined : Math.max(0, this.#at - performance.now()) / 1000;
  }

  /** Returns the wait of the next request in seconds. */
  wait(): number {
    return Math.min(RUN_WAIT, this.left() ?? RUN_WAIT);
  }

  /** Throws an error, unless it is the end of one request's wait. */
  check(error: unknown): void {
    const isEnd = error instanceof MeshworkError && error.code === "timeout";
    if (!isEnd || this.left() === 0) throw error;
  }
}

/** Decides on the repetition of a request. */
class Retry {
  failures = 0;

  constructor(
    readonly retries: number,
    readonly repeatable: boolean,
  ) {}

  /** Returns the pause before the next attempt in ms, or throws the error. */
  pause(error: unknown, response?: Response): number {
    let again = this.repeatable;
    if (error instanceof MeshworkError) {
      // The caller decides about a queue that is full.
      const isBusy = error.status === 429 && error.code !== "limit_exceeded";
      again = isBusy || (again && UNCERTAIN.includes(error.status));
    } else {
      // `fetch` reports lost connections as these two.
      again &&= error instanceof TypeError || error instanceof DOMException;
      again ||= error instanceof TypeError && UNSENT.includes((error.cause as { code?: string })?.code ?? "");
    }
    if (!again || this.failures >= this.retries) throw error;
    const own = Math.min(FIRST_PAUSE * 2 ** this.failures, LONGEST_PAUSE);
    this.failures += 1;
    const after = Number(response?.headers.get("retry-after") ?? 0) * 1000;
    const all = Math.max(own, Math.min(after || 0, LONGEST_PAUSE));
    // Clients that lost the same server do not come back at the same moment.
    return all * (0.5 + Math.random() / 2);
  }
}

function request(name: string, route: Route, rest: Record<string, any>, options: Keyed): [string, RequestInit] {
  let path = route.path;
  for (const part of route.inPath ?? []) {
    if (rest[part] === undefined) throw new TypeError(`${name}: give ${part}`);
    path = path.replace(`{${part}}`, encodeURIComponent(String(rest[part])));
    delete rest[part];
  }
  const headers: Record<string, string> = {};
  // A repeated request with this key creates nothing again.
  if (route.keyed) headers["idempotency-key"] = options.idempotencyKey ?? crypto.randomUUID();
  if (route.verb !== "POST" && route.verb !== "PUT") return [path + query(rest), { method: route.verb, headers }];
  headers["content-type"] = "application/json";
  return [path, { method: route.verb, headers, body: JSON.stringify(rest) }];
}

function query(params: object): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value === undefined || value === null) continue;
    for (const one of Array.isArray(value) ? value : [value]) search.append(name, String(one));
  }
  const text = search.toString();
  return text === "" ? "" : `?${text}`;
}

async function problem(response: Response): Promise<MeshworkError> {
  const { status, statusText } = response;
  // A proxy may have answered.
  const body = (await response.json().catch(() => undefined)) as Record<string, string> | undefined;
  if (body?.["code"] === undefined || body["detail"] === undefined) {
    return new MeshworkError(status, "internal", `the server answered ${status} ${statusText}`);
  }
  return new MeshworkError(status, body["code"], body["detail"], body["hint"]);
}

function ended(job: Schemas["JobView"]): Schemas["JobView"] {
  if (job.status === "error") throw new JobFailed(job);
  return job;
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
