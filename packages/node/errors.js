// Errors by which a task decides about its job, and those of the client.

class MeshworkError extends Error {
  name = "MeshworkError";
}

/** The job has ended without a result; `job` is its record. */
class JobFailed extends MeshworkError {
  name = "JobFailed";

  constructor(job) {
    super(job.error ?? `job ${job.id} is ${job.state}`);
    this.job = job;
  }
}

/** The job was cancelled. */
class JobCancelled extends JobFailed {
  name = "JobCancelled";
}

/** The job has not ended within the time given. */
class ResultTimeout extends MeshworkError {
  name = "ResultTimeout";
}

class Verdict extends Error {
  verdict = "retry";
  after = undefined;
}

/** Run the job again, after `after` seconds or else after its backoff, if a retry is left. */
class Retry extends Verdict {
  name = "Retry";

  constructor(message = "a retry is needed", { after } = {}) {
    super(message);
    this.after = after;
  }
}

/** No retry would help: the job becomes a dead letter. */
class Permanent extends Verdict {
  name = "Permanent";
  verdict = "permanent";
}

/** Run the job again after this number of seconds, without counting an attempt. */
class Snooze extends Verdict {
  name = "Snooze";
  verdict = "snooze";

  constructor(after) {
    super(`snoozed for ${after} s`);
    this.after = after;
  }
}

/** End the job in error, without a dead letter. */
class Discard extends Verdict {
  name = "Discard";
  verdict = "discard";
}

module.exports = { Discard, JobCancelled, JobFailed, MeshworkError, Permanent, ResultTimeout, Retry, Snooze, Verdict };
