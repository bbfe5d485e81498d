export { FlowFailed, JobFailed, Meshwork, MeshworkError } from "./client.js";
export type { Options, StreamEvent, Topic } from "./client.js";
export type { Keyed, Schemas } from "./methods.js";
