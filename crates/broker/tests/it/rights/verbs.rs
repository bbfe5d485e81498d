//! The verbs as calls on a filled store, each with what it needs to have something to do.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use meshwork_broker::{
    Broker, Claim, Claimed, Clock, Controlled, Error, JobChange, Listener, PrefetchLists, Renewal,
    Retention, complete,
};
use meshwork_conformance::snapshot::snapshot;
use meshwork_model::batch::{Membership, NewBatch};
use meshwork_model::job::{Job, NewChild, NewJob, OnDuplicate, Unique, Until, When};
use meshwork_model::keys::hero::JobKeys;
use meshwork_model::name::JobId;
use meshwork_model::outcome::{Failure, FailureKind};
use meshwork_model::queue::QueueSetting;
use meshwork_model::route::Priority;
use meshwork_model::schedule::Schedule;
use meshwork_model::schedule::timing::Timing;

use crate::common::{PATIENCE, WORKER, connect, job, queue};

const START: u64 = 1_700_000_000_000;
/// All verbs that change something.
pub(super) const VERBS: [&str; 44] = [
    "enqueue",
    "enqueue_options",
    "enqueue_after",
    "claim",
    "claim_limited",
    "complete_and_claim",
    "complete",
    "complete_parent",
    "fail",
    "fail_later",
    "fail_for_good",
    "release",
    "reclaim",
    "expire_workers",
    "promote",
    "resolve_dependents",
    "check_orphans",
    "prune",
    "copy_counters",
    "control",
    "renew",
    "deregister",
    "cancel",
    "cancel_running",
    "retry",
    "delete",
    "run_now",
    "set_job",
    "put_schedule",
    "pause_schedule",
    "fire_schedules",
    "configure",
    "log",
    "add_child",
    "isolate",
    "resume_schedule",
    "remove_schedule",
    "run_schedule",
    "set_alert",
    "open_batch",
    "seal_batch",
    "cancel_batch",
    "sweep_batches",
    "fail_with_alert",
];

/// A store with a job in each state, and its verbs with a clock.
pub(super) struct Store {
    broker: Broker,
    time: Arc<AtomicU64>,
    parent: Claimed,
    running: Claimed,
}

async fn read(broker: &Broker, id: &str) -> Job {
    let id = JobId::foreign(id.to_owned());
    broker.inspect(&id).await.unwrap().unwrap()
}

fn claim_of<'a>(queues: &'a [String], token: &'a str) -> Claim<'a> {
    Claim {
        queues,
        old: &[],
        reverse: false,
        prefetch: PrefetchLists::All,
        want: 1,
        ahead: 0,
        lease: PATIENCE,
        worker: WORKER,
        token,
    }
}

fn after(id: &str, first: &str) -> NewJob {
    let mut after = job(id);
    after.depends_on = vec![first.parse().unwrap()];
    after
}

impl Store {
    /// Fills a namespace, as a user with all rights.
    pub(super) async fn fill(url: &str, namespace: &str) -> Self {
        let (clock, time) = Clock::manual(START);
        let keys = JobKeys::new(namespace.parse().unwrap());
        let broker = connect(url, keys).await.unwrap().with_clock(clock);
        let queues = [queue(&broker)];
        let mut parent = job("parent");
        parent.reply = true;
        let mut running = job("running");
        running.retries = 1;
        broker
            .enqueue(&[parent, running, job("dead")])
            .await
            .unwrap();
        let mut held = Vec::new();
        for token in ["t1", "t2", "t3"] {
            let taken = broker.claim(claim_of(&queues, token)).await.unwrap();
            held.extend(taken.jobs);
        }
        let dead = held.pop().unwrap();
        let failure = Failure::new(FailureKind::Permanent, "boom");
        let failed = broker.fail(&dead, &failure, b"", b"", Duration::ZERO);
        failed.await.unwrap();
        let running = held.pop().unwrap();
        let parent = held.pop().unwrap();
        let mut delayed = job("delayed");
        delayed.when = Some(When::In(1_000));
        let mut begins = job("begins");
        begins.start_timeout_ms = Some(1_000);
        begins.when = Some(When::In(9_000_000));
        let child = after("child", "parent");
        let all = [child, delayed, begins, job("waiting")];
        broker.enqueue(&all).await.unwrap();
        let timing = Timing::new("@every 10s".parse().unwrap());
        let schedule = Schedule::new("s".parse().unwrap(), timing, job("any"));
        broker.put_schedule(&schedule, false).await.unwrap();
        Self {
            broker,
            time,
            parent,
            running,
        }
    }

    /// The verbs over another connection.
    pub(super) fn over(&self, broker: &Broker) -> Broker {
        let clock = Clock::Manual(Arc::clone(&self.time));
        Broker::new(broker.conn().clone(), self.broker.keys().clone()).with_clock(clock)
    }

    fn pass(&self, ms: u64) {
        self.time.fetch_add(ms, Ordering::SeqCst);
    }

    pub(super) async fn raw(&self, words: &[&str]) {
        let mut cmd = redis::Cmd::new();
        for word in words {
            cmd.arg(*word);
        }
        cmd.exec_async(&mut self.broker.conn().clone())
            .await
            .unwrap();
    }

    /// Changes the store so that the verb has something to do.
    pub(super) async fn prepare(&self, verb: &str) {
        match verb {
            "reclaim" | "expire_workers" | "check_orphans" | "fire_schedules" | "promote" => {
                self.pass(60_000_000);
            }
            "resolve_dependents" => {
                let unresolved = self.broker.keys().unresolved();
                self.raw(&["LPUSH", &unresolved, "dead"]).await;
                let child = after("late", "dead");
                drop(self.broker.enqueue(&[child]).await);
            }
            "claim_limited" => {
                let mut limit = job("limited");
                limit.key = Some("k".to_owned());
                self.broker.enqueue(&[limit]).await.unwrap();
                let setting = QueueSetting::Concurrency(Some(5));
                let queue = queue(&self.broker);
                self.broker.configure(&queue, &[setting]).await.unwrap();
            }
            "control" => {
                let control = self
                    .broker
                    .keys()
                    .control_queue_type(&"osis".parse().unwrap());
                self.raw(&["LPUSH", &control, "waiting"]).await;
            }
            "fail_with_alert" => {
                let queue = queue(&self.broker);
                let alarm = job("alarm");
                let alert = self.broker.set_alert(&queue, 1, &alarm);
                alert.await.unwrap();
            }
            "seal_batch" | "cancel_batch" | "sweep_batches" => {
                let batch = NewBatch::new("b".parse().unwrap());
                self.broker.open_batch(&batch).await.unwrap();
                let mut member = job("member");
                member.batch = Some(Membership {
                    batch: batch.id,
                    by: None,
                });
                self.broker.enqueue(&[member]).await.unwrap();
                if verb == "sweep_batches" {
                    self.pass(60_000_000);
                }
            }
            "resume_schedule" => {
                let name = "s".parse().unwrap();
                self.broker.pause_schedule(&name).await.unwrap();
            }
            "prune" => self.pass(Retention::default().age.as_millis() as u64 * 2),
            _ => {}
        }
    }

    /// Calls a verb.
    pub(super) async fn act(&self, verb: &str, broker: &Broker) -> Result<(), Error> {
        let queues = [queue(broker)];
        let fail = async |kind, later| {
            let (later, failure) = (Duration::from_secs(later), Failure::new(kind, "boom"));
            let failed = broker.fail(&self.running, &failure, b"out", b"", later);
            failed.await.map(drop)
        };
        match verb {
            "enqueue" => broker.enqueue(&[job("new")]).await.map(drop),
            "enqueue_options" => {
                let mut new = job("new");
                (new.when, new.key) = (Some(When::In(500)), Some("k".to_owned()));
                new.unique = Some(Unique {
                    name: "one".to_owned(),
                    until: Until::Done,
                    policy: OnDuplicate::Keep,
                });
                broker.enqueue(&[new]).await.map(drop)
            }
            "enqueue_after" => broker.enqueue(&[after("new", "parent")]).await.map(drop),
            "claim" | "claim_limited" => broker.claim(claim_of(&queues, "t9")).await.map(drop),
            "complete_and_claim" => {
                let result = complete::Completion {
                    claimed: &self.running,
                    output: b"42",
                    stdout: b"",
                    stderr: b"",
                };
                let claim = claim_of(&queues, "t9");
                broker.complete_and_claim(&[result], claim).await.map(drop)
            }
            "complete" => broker
                .complete(&self.running, b"42", b"", b"")
                .await
                .map(drop),
            "complete_parent" => broker
                .complete(&self.parent, b"42", b"o", b"")
                .await
                .map(drop),
            "fail" => fail(FailureKind::Script, 0).await,
            "fail_later" => fail(FailureKind::Script, 5).await,
            "fail_for_good" => fail(FailureKind::Permanent, 0).await,
            "release" => broker.release(&self.running).await.map(drop),
            _ => self.maintain(verb, broker).await,
        }
    }

    /// Calls a verb that keeps the store in order.
    async fn maintain(&self, verb: &str, broker: &Broker) -> Result<(), Error> {
        let queues = [queue(broker)];
        match verb {
            "reclaim" => broker.reclaim().await.map(drop),
            "expire_workers" => broker
                .expire_workers(&BTreeSet::from([WORKER.to_owned()]))
                .await
                .map(drop),
            "promote" => broker.promote().await.map(drop),
            "resolve_dependents" => broker.resolve_dependents().await.map(drop),
            "check_orphans" => broker.check_orphans().await.map(drop),
            "prune" => broker.prune(Retention::default()).await.map(drop),
            "copy_counters" => broker.copy_counters(&queues, true).await.map(drop),
            "control" => {
                let control = broker.keys().control_queue_type(&"osis".parse().unwrap());
                let request = Controlled {
                    worker: WORKER,
                    queues: &[control],
                    types: &[],
                    held: &[],
                    turn: Duration::from_secs(1),
                };
                broker.control(request).await.map(drop)
            }
            "renew" => {
                let renewal = Renewal {
                    held: std::slice::from_ref(&self.running),
                    lease: PATIENCE,
                    listener: Listener {
                        worker: WORKER,
                        queues: &queues,
                    },
                    alive: PATIENCE,
                };
                broker.renew(renewal).await.map(drop)
            }
            "deregister" => {
                let listener = Listener {
                    worker: WORKER,
                    queues: &queues,
                };
                broker.deregister_prefetch(listener).await.map(drop)
            }
            _ => self.change(verb, broker).await,
        }
    }

    /// Calls a verb that changes a job, a schedule or a queue.
    async fn change(&self, verb: &str, broker: &Broker) -> Result<(), Error> {
        match verb {
            "cancel" => {
                let waiting = read(&self.broker, "waiting").await;
                broker.cancel(&waiting, "stop", false).await.map(drop)
            }
            "cancel_running" => {
                let running = read(&self.broker, "running").await;
                broker.cancel(&running, "stop", true).await.map(drop)
            }
            "retry" => broker
                .retry(&read(&self.broker, "dead").await)
                .await
                .map(drop),
            "delete" => broker
                .delete(&read(&self.broker, "waiting").await)
                .await
                .map(drop),
            "run_now" => broker
                .run_now(&read(&self.broker, "delayed").await)
                .await
                .map(drop),
            "set_job" => {
                let change = JobChange {
                    priority: Some(Priority::High),
                    delay: Some(Duration::from_secs(1)),
                    timeout: None,
                };
                let waiting = read(&self.broker, "waiting").await;
                broker.set_job(&waiting, &change).await.map(drop)
            }
            "put_schedule" => {
                let timing = Timing::new("@every 20s".parse().unwrap());
                let schedule = Schedule::new("t".parse().unwrap(), timing, job("any"));
                broker.put_schedule(&schedule, true).await.map(drop)
            }
            "pause_schedule" => broker.pause_schedule(&"s".parse().unwrap()).await.map(drop),
            "resume_schedule" => broker
                .resume_schedule(&"s".parse().unwrap())
                .await
                .map(drop),
            "remove_schedule" => broker
                .remove_schedule(&"s".parse().unwrap())
                .await
                .map(drop),
            "run_schedule" => {
                let name = "s".parse().unwrap();
                let there = self.broker.read_schedule(&name).await.unwrap().unwrap();
                let schedule = there.schedule.as_ref().unwrap();
                broker.run_schedule(&there, schedule, "now").await.map(drop)
            }
            "fire_schedules" => broker.fire_schedules().await.map(drop),
            "configure" => {
                let setting = QueueSetting::Concurrency(Some(5));
                broker.configure(&queue(broker), &[setting]).await.map(drop)
            }
            "log" => broker
                .log(&self.running, &[("stdout", b"out")], None)
                .await
                .map(drop),
            _ => self.change_batch(verb, broker).await,
        }
    }

    /// Calls a verb of children, alerts or batches.
    async fn change_batch(&self, verb: &str, broker: &Broker) -> Result<(), Error> {
        let batch = "b".parse().unwrap();
        match verb {
            "add_child" => {
                let child = NewChild::new("1");
                let digest = child.digest(&"osis".parse().unwrap());
                let job = job("grandchild");
                let added = broker.add_child(&self.running, 1, &job, &digest);
                added.await.map(drop)
            }
            "isolate" => broker.isolate(&self.running).await.map(drop),
            "set_alert" => broker.set_alert(&queue(broker), 3, &job("alarm")).await,
            "fail_with_alert" => {
                let failure = Failure::new(FailureKind::Permanent, "boom");
                let failed = broker.fail(&self.running, &failure, b"", b"", Duration::ZERO);
                failed.await.map(drop)
            }
            "open_batch" => broker.open_batch(&NewBatch::new(batch)).await.map(drop),
            "seal_batch" => broker.seal_batch(&batch).await.map(drop),
            "cancel_batch" => broker.cancel_batch(&batch, "stop").await.map(drop),
            "sweep_batches" => broker.sweep_batches(Retention::default()).await.map(drop),
            other => panic!("{other}"),
        }
    }

    /// Returns the whole content of the store.
    pub(super) async fn content(&self) -> String {
        let prefix = self.broker.keys().prefix();
        let namespace = prefix.trim_end_matches(':');
        snapshot(self.broker.conn(), namespace).await.unwrap()
    }
}
