export { App, Discard, JobCancelled, JobFailed, MeshworkError, Permanent, ResultTimeout, Retry, Snooze } from "./index.js";
