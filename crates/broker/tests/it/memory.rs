//! A server whose memory has run out: what is new is refused and writes nothing; what runs can be
//! claimed, kept, reported, released, stopped and forgotten; schedules can be paused and removed.

use std::time::Duration;

use meshwork_broker::conn::{Target, TlsFiles};
use meshwork_broker::{
    Broker, Cancelled, Claim, Claimed, Clock, Completed, Deleted, Failed, Listener, PrefetchLists,
    Released, Renewal,
};
use meshwork_conformance::snapshot::snapshot;
use meshwork_model::job::NewJob;
use meshwork_model::keys::hero::JobKeys;
use meshwork_model::outcome::{Failure, FailureKind};
use meshwork_model::route::Route;
use meshwork_model::schedule::Schedule;
use meshwork_model::schedule::timing::Timing;
use meshwork_test_servers::servers::{RealServer, ServerOptions};

const WORKER: &str = "w1-a";
const LEASE: Duration = Duration::from_secs(10);

fn job(id: &str) -> NewJob {
    let mut job = NewJob::new(id.parse().unwrap(), Route::to("osis".parse().unwrap()), "1");
    job.reply = true;
    job
}

async fn raw(broker: &Broker, words: &[&str]) {
    let mut cmd = redis::Cmd::new();
    cmd.arg(words);
    let conn = &mut broker.conn().clone();
    cmd.query_async::<redis::Value>(conn).await.unwrap();
}

async fn claim(broker: &Broker, queues: &[String], want: usize) -> Vec<Claimed> {
    let claim = Claim {
        queues,
        old: &[],
        reverse: false,
        prefetch: PrefetchLists::All,
        want,
        ahead: 0,
        lease: LEASE,
        worker: WORKER,
        token: "t1",
    };
    broker.claim(claim).await.unwrap().jobs
}

async fn put_pulse(broker: &Broker) -> Schedule {
    let timing = Timing::new("@hourly".parse().unwrap());
    let pulse = Schedule::new("pulse".parse().unwrap(), timing, job("any"));
    broker.put_schedule(&pulse, false).await.unwrap();
    pulse
}

async fn new_jobs_are_refused(broker: &Broker, queue: &str) {
    let before = snapshot(broker.conn(), "hero").await.unwrap();
    let refused = broker.enqueue(&[job("j8")]).await.unwrap_err();
    assert!(refused.is_temporary(), "{refused}");
    let blocking = broker.blocking_conn().await.unwrap();
    let refused = broker.wait_for_job(&blocking, WORKER, queue, LEASE).await;
    let refused = refused.unwrap_err();
    assert!(refused.is_temporary(), "{refused}");
    assert_eq!(snapshot(broker.conn(), "hero").await.unwrap(), before);
}

async fn runs_on(options: ServerOptions) {
    let Some(server) = options.start() else {
        return;
    };
    let target = Target::parse(&server.url(), TlsFiles::default()).unwrap();
    let (clock, hand) = Clock::manual(1_700_000_000_000);
    let broker = Broker::connect(&target, JobKeys::default()).await.unwrap();
    let broker = broker.with_clock(clock);
    let queues = [format!("{}osis", broker.keys().work_prefix())];
    let names = ["j1", "j2", "j3", "j4", "j5", "j6", "j7"];
    let jobs: Vec<_> = names.map(job).into();
    broker.enqueue(&jobs).await.unwrap();
    let pulse = put_pulse(&broker).await;

    raw(&broker, &["CONFIG", "SET", "maxmemory", "1"]).await;
    new_jobs_are_refused(&broker, &queues[0]).await;

    let held = claim(&broker, &queues, 6).await;
    assert_eq!(held.len(), 6);
    let listener = Listener {
        worker: WORKER,
        queues: &queues,
    };
    let renewal = Renewal {
        held: &held,
        lease: LEASE,
        listener,
        alive: LEASE,
    };
    assert!(broker.renew(renewal).await.unwrap().gone.is_empty());
    let finished = broker.complete(&held[0], b"42", b"out", b"").await.unwrap();
    assert_eq!(finished, Completed::Finished);
    let failure = Failure::new(FailureKind::Script, "boom");
    let failed = broker
        .fail(&held[1], &failure, b"", b"", Duration::ZERO)
        .await
        .unwrap();
    assert_eq!(failed, Failed::Failed);
    let cancelled = broker.cancel(&held[2].job, "stopped", true).await.unwrap();
    assert_eq!(cancelled, Cancelled::Cancelled);
    let deleted = broker.delete(&held[2].job).await.unwrap();
    assert_eq!(deleted, Deleted::Deleted);
    let before = snapshot(broker.conn(), "hero").await.unwrap();
    let refused = broker.retry(&held[1].job).await.unwrap_err();
    assert!(refused.is_temporary(), "{refused}");
    assert_eq!(snapshot(broker.conn(), "hero").await.unwrap(), before);
    let released = broker.release(&held[3]).await.unwrap();
    assert_eq!(released, Released::Released);
    assert!(broker.pause_schedule(&pulse.name).await.unwrap());
    assert!(broker.remove_schedule(&pulse.name).await.unwrap());

    hand.fetch_add(10_000, std::sync::atomic::Ordering::SeqCst);
    let back = broker.reclaim().await.unwrap();
    assert_eq!(back.requeued, ["j5", "j6"]);

    // What came to the worker before memory ran out goes back as well.
    raw(&broker, &["CONFIG", "SET", "maxmemory", "0"]).await;
    let feed = broker.keys().feed(WORKER, &queues[0]);
    raw(&broker, &["LMOVE", &queues[0], &feed, "RIGHT", "LEFT"]).await;
    raw(&broker, &["LMOVE", &queues[0], &feed, "RIGHT", "LEFT"]).await;
    raw(&broker, &["CONFIG", "SET", "maxmemory", "1"]).await;
    assert!(claim(&broker, &queues, 0).await.is_empty());
    raw(&broker, &["CONFIG", "SET", "maxmemory", "0"]).await;
    raw(&broker, &["LMOVE", &queues[0], &feed, "RIGHT", "LEFT"]).await;
    raw(&broker, &["CONFIG", "SET", "maxmemory", "1"]).await;
    assert_eq!(broker.deregister_prefetch(listener).await.unwrap(), 1);
    assert_eq!(claim(&broker, &queues, 9).await.len(), 4);
}

#[tokio::test]
async fn redis_without_memory() {
    runs_on(RealServer::redis()).await;
}

#[tokio::test]
async fn valkey_without_memory() {
    runs_on(RealServer::valkey()).await;
}
