//! Batch: the results that share a call, and the metrics of claimed jobs.

use std::collections::VecDeque;

use crate::engine::Engine;
use crate::fetched::Fetched;
use crate::protocol::Protocol;
use crate::task::Completion;

/// Greatest number of bytes of results in a call, since other calls wait while the server reads it.
const MOST_BYTES: usize = 4 * 1024 * 1024;

/// Takes the first results that share a call: up to `most`.
pub(super) fn batch<P: Protocol>(
    ready: &mut VecDeque<Completion<P::Job>>,
    most: usize,
) -> Vec<Completion<P::Job>> {
    let mut bytes = 0;
    let fits = |ran: &&Completion<P::Job>| {
        let first = bytes == 0;
        bytes += (ran.bytes() + P::record_bytes(&ran.task.job)).max(1);
        !ran.alone && (first || bytes <= MOST_BYTES)
    };
    let together = ready.iter().take(most).take_while(fits).count();
    ready.drain(..together).collect()
}

/// Counts claimed jobs and their waiting times, and logs dropped ids.
pub(super) fn count<P: Protocol>(engine: &Engine<P>, fetched: &Fetched<P::Job>) {
    let (meter, protocol) = (&engine.meter, &engine.protocol);
    meter.took(fetched.jobs.len());
    if fetched.dropped > 0 {
        let ids = fetched.dropped;
        tracing::debug!(ids, "ids dropped: their jobs cannot run");
    }
    for job in &fetched.jobs {
        if let Some(ready) = P::ready_ms(job) {
            let ms = fetched.at_ms.saturating_sub(ready);
            let place = |queue: &str| protocol.place(queue);
            meter.waited(P::queue(job), ms as f64 / 1000.0, place);
        }
    }
}
