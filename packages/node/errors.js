// Errors by which a task decides about its job, and those of the client.

export class MeshworkError extends Error {
  name = "MeshworkError";
}

/** The job has ended without a result; `job` is its record. */
export class JobFailed extends MeshworkError {
  name = "JobFailed";

  constructor(job) {
    super(job.error ?? `job ${job.id} is ${job.state}`);
    this.job = job;
  }
}

/** The job was cancelled. */
export class JobCancelled extends JobFailed {
  name = "JobCancelled";
}

/** The job has not ended within the time given. */
export class ResultTimeout extends MeshworkError {
  name = "ResultTimeout";
}

export class Verdict extends Error {
  verdict = "retry";
  after = undefined;
}

/** Run the job again, after `after` seconds or else after its backoff, if a retry is left. */
export class Retry extends Verdict {
  name = "Retry";

  constructor(message = "a retry is needed", { after } = {}) {
    super(message);
    this.after = after;
  }
}

/** No retry would help: the job becomes a dead letter. */
export class Permanent extends Verdict {
  name = "Permanent";
  verdict = "permanent";
}

/** Run the job again after this number of seconds, without counting an attempt. */
export class Snooze extends Verdict {
  name = "Snooze";
  verdict = "snooze";

  constructor(after) {
    super(`snoozed for ${after} s`);
    this.after = after;
  }
}

/** End the job in error, without a dead letter. */
export class Discard extends Verdict {
  name = "Discard";
  verdict = "discard";
}
