/** The client: connection, retries, iterators over lists, events and logs with resume, and `run`. */

import { type Keyed, Methods, ROUTES, type Route, type Schemas } from "./methods.js";

/** Pauses before repeated requests in ms: the first, and the longest. Each is twice as long as the one before. */
const [FIRST_PAUSE, LONGEST_PAUSE] = [200, 10_000];
/** The server waits at most 300 s for a job. */
const LONGEST_WAIT = 300_000;
/** Wait of one request of `run` in seconds: proxies end connections without data after a minute. */
const RUN_WAIT = 45;
/** A stream without a comment for so long is lost: the server sends one every 15 s. */
const STREAM_IDLE = 45_000;
/** Longest line of a stream. The server's are shorter. */
const MAX_LINE = 4 * 1024 * 1024;
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

/** A flow ended in error. */
export class FlowFailed extends MeshworkError {
  constructor(readonly flow: Schemas["FlowView"]) {
    super(200, "execution_error", `flow ${flow.id} failed: ${flow.error}`);
  }
}

/** Item of a stream. `kind` is `event`, `line`, or `gap` if items may be missing before the next one. */
export interface StreamEvent {
  id: string;
  kind: string;
  // The form of an item follows from its kind.
  data: any;
}

/** Events to follow: those of one of these, or of all. */
export interface Topic {
  job?: string;
  queue?: string;
  flow?: number;
  /** Id of the last event that was seen. `"0"`: the oldest that is stored. Default: new events. */
  after?: string;
  /** Ends the stream. */
  signal?: AbortSignal;
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
  async run(job: Schemas["JobSpecWithWait"], within?: number): Promise<Schemas["JobView"]> {
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

  /** Returns a flow at its end. Throws `FlowFailed` if it fails; after `within` seconds as `run`. */
  async waitFlow(id: number, options: { context?: number; within?: number } = {}): Promise<Schemas["FlowView"]> {
    const [deadline, context] = [new Deadline(options.within), options.context ?? null];
    for (;;) {
      const flow = await this.flow.get({ id, context, wait: deadline.wait() });
      if (flow.status === "finished") return flow;
      if (flow.status === "error") throw new FlowFailed(flow);
      deadline.check(new MeshworkError(408, "timeout", `flow ${id} has not ended`));
    }
  }

  /**
   * Follows the events of a job, a queue or a flow, or of all, without end. A stream that breaks off is opened again
   * where it was.
   */
  events(topic: Topic = {}): AsyncGenerator<StreamEvent> {
    const { after, signal, ...of } = topic;
    return this.#follow("/v1/events", of, new Position(after), signal);
  }

  /** Follows the log of a job to its end. A stream that breaks off is opened again where it was. */
  logs(id: string, options: { after?: string; signal?: AbortSignal } = {}): AsyncGenerator<StreamEvent> {
    const path = `/v1/jobs/${encodeURIComponent(id)}/logs`;
    return this.#follow(path, { follow: true }, new Position(options.after ?? "0"), options.signal);
  }

  async *#follow(path: string, params: object, at: Position, signal?: AbortSignal): AsyncGenerator<StreamEvent> {
    const retry = new Retry(this.#retries, true);
    for (;;) {
      let response: Response | undefined;
      const watch = new Watch(this.#timeout, signal);
      try {
        const headers: Record<string, string> = { ...this.#headers, accept: "text/event-stream" };
        if (at.after !== undefined) headers["last-event-id"] = at.after;
        response = await this.#fetch(this.#url + path + query(params), { headers, signal: watch.signal });
        if (!response.ok || response.body === null) throw await problem(response);
        for await (const line of lines(response.body, watch)) {
          // The server is there.
          retry.failures = 0;
          const item = at.line(line);
          if (item?.kind === "end") return;
          if (item !== undefined) yield item;
        }
        throw new TypeError("the stream broke off");
      } catch (error) {
        if (signal?.aborted) return;
        const before = retry.pause(error, response);
        if (at.after === undefined) yield { id: "", kind: "gap", data: {} };
        await pause(before);
      } finally {
        watch.close();
      }
    }
  }
}

/** End of a wait; none without a number of seconds. */
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

/** Position in a stream, and the item that is being read. */
class Position {
  #fields: Record<string, string> = {};

  constructor(public after: string | undefined) {}

  /** Takes a line, and returns the item that it completes. */
  line(line: string): StreamEvent | undefined {
    if (line !== "") {
      const colon = line.indexOf(":");
      if (colon > 0) this.#fields[line.slice(0, colon)] = line.slice(colon + 1).replace(/^ /, "");
      return undefined;
    }
    const { id = "", event = "", data } = this.#fields;
    this.#fields = {};
    if (data === undefined) return undefined;
    const item = { id, kind: event, data: JSON.parse(data) };
    // `closed`: the server ends, or this client was too slow.
    this.after = (event === "closed" ? item.data.last : id) || this.after;
    return event === "closed" ? undefined : item;
  }
}

/** Ends a stream on which nothing comes, or that the caller ends. */
class Watch {
  readonly #controller = new AbortController();
  readonly #outer: AbortSignal | undefined;
  readonly #abort = () => this.#controller.abort();
  #timer: ReturnType<typeof setTimeout>;

  constructor(timeout: number, outer?: AbortSignal) {
    this.#timer = setTimeout(this.#abort, timeout);
    this.#outer = outer;
    if (outer?.aborted) this.#abort();
    outer?.addEventListener("abort", this.#abort);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Something came. */
  touch(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#abort, STREAM_IDLE);
  }

  /** Ends the connection too. */
  close(): void {
    clearTimeout(this.#timer);
    this.#outer?.removeEventListener("abort", this.#abort);
    this.#abort();
  }
}

async function* lines(body: ReadableStream<Uint8Array>, watch: Watch): AsyncGenerator<string> {
  const [reader, decoder] = [body.getReader(), new TextDecoder()];
  let rest = "";
  for (;;) {
    watch.touch();
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (rest + decoder.decode(value, { stream: true })).split("\n");
    rest = parts.pop() ?? "";
    if (rest.length > MAX_LINE) {
      throw new MeshworkError(200, "internal", `a line of the stream exceeds ${MAX_LINE} bytes`);
    }
    yield* parts;
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
