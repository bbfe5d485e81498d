// Calls of the store by the native module, or of the HTTP API of a supervisor. Both have the same calls.

"use strict";

const { readFileSync } = require("node:fs");

const { MeshworkError } = require("./errors.js");
const { part } = require("./platform.js");

/** Longest wait of one call of the API, in seconds. */
const ONE_WAIT = 60;
/** Greatest number of jobs in one call of the API. */
const MOST_JOBS = 1000;
/** Answers of the API to a wait: it is over, or the job has no result. */
const WAITED = [408, 409, 422];

class Api {
  #url;
  #key;

  constructor(url, key) {
    this.#url = url;
    this.#key = key ?? keyOf(process.env.MESHWORK_API_KEY_FILE);
  }

  async #call(method, path, body) {
    const headers = { "content-type": "application/json" };
    if (this.#key) headers.authorization = `Bearer ${this.#key}`;
    let answer, json;
    try {
      answer = await fetch(new URL(path, this.#url), { method, headers, body: body && JSON.stringify(body) });
      json = await answer.json();
    } catch (error) {
      throw new MeshworkError(`the API at ${this.#url} does not answer: ${error.cause?.message ?? error.message}`);
    }
    if (!answer.ok) throw Object.assign(new MeshworkError(json.detail ?? answer.statusText), { status: answer.status });
    return json;
  }

  async enqueue(job) {
    return (await this.#call("POST", "/v1/jobs", job)).id;
  }

  async enqueueMany(jobs) {
    const ids = [];
    for (let from = 0; from < jobs.length; from += MOST_JOBS) {
      const answer = await this.#call("POST", "/v1/jobs/many", { jobs: jobs.slice(from, from + MOST_JOBS) });
      for (const { id, result, other, error } of answer.jobs) {
        if (error) throw new MeshworkError(error);
        ids.push(result === "kept" ? other : id);
      }
    }
    return ids;
  }

  job(id) {
    return this.#call("GET", pathOf(id));
  }

  async wait(id, seconds = Infinity) {
    const until = Date.now() + seconds * 1000;
    for (;;) {
      const left = Math.max(0, (until - Date.now()) / 1000);
      try {
        return await this.#call("GET", `${pathOf(id)}/result?wait=${Math.min(ONE_WAIT, left)}`);
      } catch (error) {
        if (!WAITED.includes(error.status)) throw error;
      }
      const job = await this.job(id);
      if (["finished", "failed", "cancelled"].includes(job.state)) return job;
      if (Date.now() >= until) return undefined;
    }
  }

  async cancel(id) {
    return (await this.#call("POST", `${pathOf(id)}/cancel`, {})).result;
  }

  async logs(id) {
    const all = [];
    for (let query = ""; ; ) {
      const { lines, last } = await this.#call("GET", `${pathOf(id)}/logs${query}`);
      if (!lines.length) return all;
      all.push(...lines.map((line) => line.line));
      query = `?after=${encodeURIComponent(last)}`;
    }
  }

  close() {}
}

function pathOf(id) {
  return `/v1/jobs/${encodeURIComponent(id)}`;
}

function keyOf(file) {
  return file && readFileSync(file, "utf8").trim();
}

class Store {
  #client;

  constructor(url, namespace) {
    const { Client } = require(part("meshwork.node"));
    this.#client = new Client(url, namespace);
  }

  async #call(name, ...values) {
    try {
      return await this.#client[name](...values);
    } catch (error) {
      throw new MeshworkError(error.message);
    }
  }

  enqueue(job, reply) {
    return this.#call("enqueue", JSON.stringify(job), reply);
  }

  enqueueMany(jobs) {
    return this.#call("enqueueMany", jobs.map((job) => JSON.stringify(job)));
  }

  async job(id) {
    return JSON.parse(await this.#call("job", id));
  }

  async wait(id, seconds) {
    const job = await this.#call("wait", id, seconds);
    return job ? JSON.parse(job) : undefined;
  }

  cancel(id) {
    return this.#call("cancel", id);
  }

  async logs(id) {
    return JSON.parse(await this.#call("logs", id));
  }

  close() {
    this.#client.close();
  }
}

/** Returns the API at an `http` URL, or else the store. */
function connect({ url = process.env.MESHWORK_API, key, namespace }) {
  return /^https?:/.test(url ?? "") ? new Api(url, key) : new Store(url, namespace);
}

module.exports = { connect };
