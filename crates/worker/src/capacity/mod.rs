//! The jobs that a worker can take now: its slots, the jobs beyond them, its blocked queues, and the gate of a job that runs alone.

pub(crate) mod demand;
pub(crate) mod exclusive;
pub(crate) mod prefetch;
pub(crate) mod slots;
