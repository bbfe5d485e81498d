//! Heartbeat: a task with its own thread, runtime and connection, so that no busy handler can starve it. It renews all
//! leases and the registration, reclaims the jobs of dead workers, and runs the maintenance of its protocol.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use meshwork_broker::{Backoff, Error};
use meshwork_model::worker_request::WorkerRequest;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::dedicated_thread::{Host, Never, Thread, best_effort, within};
use super::engine::{Engine, Registered};
use super::protocol::{Intake, Protocol, Renewed};

/// Starts the heartbeat on the thread of `host`.
pub(super) fn start<P: Protocol>(
    host: Arc<Host>,
    engine: &Arc<Engine<P>>,
    intake: Arc<dyn Intake<P::Job>>,
) -> Thread {
    let (beats, departs) = (Arc::clone(engine), Arc::clone(engine));
    let beat = async move { beat(&beats, &*intake).await };
    let depart = async move { departs.protocol.depart().await };
    host.run(beat, depart)
}

/// Renews until the task is dropped. Connects again after each failure.
async fn beat<P: Protocol>(engine: &Engine<P>, intake: &dyn Intake<P::Job>) {
    let mut backoff = Backoff::new();
    let protocol = &engine.protocol;
    loop {
        match protocol.connect().await {
            Ok(conn) => {
                let error = tokio::select! {
                    failed = beat_over(&conn, engine, intake, &mut backoff) => match failed {
                        Ok(never) => match never {},
                        Err(error) => error,
                    },
                    failed = protocol.maintain(&conn, &engine.config, &engine.in_flight) => match failed {
                        Ok(never) => match never {},
                        Err(error) => error,
                    },
                };
                engine.failed(("renew", "renew"), &error);
            }
            Err(error) => engine.failed(("connect", "renew"), &error),
        }
        backoff.wait().await;
    }
}

async fn beat_over<P: Protocol>(
    conn: &P::Conn,
    engine: &Engine<P>,
    intake: &dyn Intake<P::Job>,
    backoff: &mut Backoff,
) -> Result<Never, Error> {
    let (protocol, every) = (&engine.protocol, engine.config.heartbeat_interval());
    let outages = protocol.outages();
    let (mut loaded, mut checked) = (false, None);
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let is_old = checked.is_none_or(|at: Instant| at.elapsed() >= protocol.rights_for());
        if engine.take_rights_due() || is_old {
            let lacks = best_effort(outages, "rights", every, protocol.lacks(conn)).await?;
            engine.note_rights(lacks.flatten());
            checked = Some(Instant::now());
        }
        renew(conn, engine).await?;
        *backoff = Backoff::new();
        engine.meter.heard();
        outages.succeeded("renew");
        if !loaded {
            // Once per connection: a restarted server has lost the scripts.
            let load = best_effort(outages, "load", every, protocol.load(conn)).await?;
            loaded = load.is_some();
        }
        obey_requests(conn, engine).await?;
        let reclaim = protocol.reclaim(conn, engine.config.lease, intake);
        best_effort(outages, "reclaim", every, reclaim).await?;
    }
}

/// Cancels a token when it is dropped, if that was requested.
struct StopAtEnd<'a> {
    token: &'a CancellationToken,
    requested: AtomicBool,
}

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        if self.requested.load(Ordering::Relaxed) {
            self.token.cancel();
        }
    }
}

/// Obeys requests to this worker. A request may arrive more than once.
async fn obey_requests<P: Protocol>(conn: &P::Conn, engine: &Engine<P>) -> Result<(), Error> {
    // The token is cancelled when the call ends, also after an error: the process may exit before it could confirm a stop.
    let stop = StopAtEnd {
        token: &engine.stop_requested,
        requested: AtomicBool::new(false),
    };
    let obey = |request| {
        tracing::info!(%request, "request to this worker received");
        engine.stop.cancel();
        if request == WorkerRequest::Stop {
            stop.requested.store(true, Ordering::Relaxed);
        }
    };
    let (protocol, most) = (&engine.protocol, engine.config.heartbeat_interval());
    let requests = protocol.requests(conn, &obey);
    best_effort(protocol.outages(), "requests", most, requests).await?;
    Ok(())
}

async fn renew<P: Protocol>(conn: &P::Conn, engine: &Engine<P>) -> Result<(), Error> {
    let (protocol, config) = (&engine.protocol, &engine.config);
    let snapshot = engine.in_flight.snapshot();
    let until = engine.config.clock.now() + config.lease;
    // Locked until the answer arrives: a renewal after the deregistration would register the worker again.
    let listening = engine.listening.lock().await;
    let queues = Arc::clone(&protocol.queues().borrow());
    let names = listening.then_some(&*queues);
    let renewal = protocol.renew(conn, config.lease, &snapshot.jobs, names);
    let renewed = within("renew", config.heartbeat_interval(), renewal).await?;
    drop(listening);
    let Renewed {
        gone,
        cancel,
        refused,
    } = renewed;
    let is_refused = |job: &P::Job| refused.iter().any(|queue| queue == P::queue(job));
    let unrenewed = snapshot.jobs.iter().enumerate();
    let unrenewed = unrenewed.filter(|(at, job)| gone.contains(at) || is_refused(job));
    let unrenewed: HashSet<_> = unrenewed.map(|(at, _)| at).collect();
    engine.in_flight.renewed(&snapshot, &unrenewed, until);
    let id = |job: &P::Job| P::id(job).into_owned();
    engine
        .meter
        .lost(engine.in_flight.lose(&snapshot, &gone, id));
    engine.in_flight.cancel_all(&snapshot, &cancel);
    let registered = Registered {
        until,
        queues,
        refused: refused.into(),
    };
    engine.registered.send_replace(Some(registered));
    Ok(())
}
