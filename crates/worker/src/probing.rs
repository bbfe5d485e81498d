//! Checks of runtimes: whether runs can start here, at the start of a worker and after each pause of a runtime.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use meshwork_model::outcome::{Failure, FailureKind};
use tokio::sync::oneshot;

use super::engine::Engine;
use super::protocol::Protocol;
use meshwork_runtime::Runtime;

/// Longest check of a runtime. Interpreters answer within 20 s.
const PROBE: Duration = Duration::from_secs(60);

/// Checks all runtimes at the start of a worker, and each after its pauses, until the worker claims no more jobs.
/// `checked` resolves when the checks at the start have ended.
pub(super) async fn watch<P: Protocol>(engine: Arc<Engine<P>>, checked: oneshot::Sender<()>) {
    let readiness = &engine.readiness;
    let mut faults = readiness.changes();
    let runtimes: BTreeMap<String, Arc<dyn Runtime>> =
        engine.protocol.runtimes().into_iter().collect();
    let first = async {
        let all = runtimes.iter().map(async |(name, runtime)| {
            if let Err(failure) = probe(Some(runtime)).await {
                readiness.failed(name, &failure.message);
            }
        });
        join_all(all).await;
    };
    tokio::select! {
        _ = first => {}
        () = engine.stop.cancelled() => return,
    }
    // The worker may have waited long enough.
    let _ = checked.send(());
    loop {
        faults.mark_unchanged();
        engine.protocol.note_faults(&readiness.faults());
        let next = readiness.next();
        let ended = async {
            match next {
                Some((name, until)) => {
                    tokio::time::sleep_until(until).await;
                    readiness.checked(&name, probe(runtimes.get(&name)).await);
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = ended => {}
            // The sender is in the engine.
            _ = faults.changed() => {}
            () = engine.stop.cancelled() => return,
        }
    }
}

/// Checks a runtime. One without a known runtime is tried by its next claim.
async fn probe(runtime: Option<&Arc<dyn Runtime>>) -> Result<(), Failure> {
    let Some(runtime) = runtime else {
        return Ok(());
    };
    let found = tokio::time::timeout(PROBE, runtime.probe()).await;
    found.unwrap_or_else(|_| {
        let message = "the check of the runtime does not end";
        Err(Failure::new(FailureKind::NotStarted, message))
    })
}
