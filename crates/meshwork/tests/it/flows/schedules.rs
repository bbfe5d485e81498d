//! Flows by the clock: each slot starts one flow, also over a connection that breaks, and a deployment is one step.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use meshwork_broker::flow::{Deployed, Flows};
use meshwork_conformance::faulty::{Faulty, Moment, Plan as Fault};
use meshwork_model::job::NewJob;
use meshwork_model::keys::context::FlowId;
use meshwork_model::name::ScheduleName;
use meshwork_model::route::Route;
use meshwork_model::schedule::Schedule;
use meshwork_model::schedule::policy::{CatchUp, Overlap};
use meshwork_model::schedule::timing::Timing;

use super::*;

const START: u64 = 1_700_000_000_000;
/// Longer than the lease of a flow.
const LEASE: Duration = Duration::from_secs(11);
/// Greatest number of calls until all is done.
const MOST: usize = 200;
const TICKS: &str = "
flow: ticks
jobs:
  a: {script: 'ENV.MESHWORK_SLOT', type: osis}
  b: {script: '2', type: osis, needs: a}
";

/// A context over a connection that breaks, and over one that does not.
struct Life {
    faulty: Faulty,
    good: Broker,
    bad: Broker,
    hand: Arc<AtomicU64>,
}

impl Life {
    async fn new(fault: Option<Fault>) -> Self {
        let (clock, hand) = Clock::manual(START);
        let conn = Conn::embedded(&Handle::in_memory());
        let keys = ContextKeys::new(ContextId::new(7).unwrap(), ContextLayout::Prefix);
        let faulty = Faulty::new(conn.clone(), fault);
        let of = async |conn| {
            let broker = Broker::new(conn, JobKeys::default()).with_clock(clock.clone());
            broker.of_context(keys.clone()).await.unwrap()
        };
        Self {
            good: of(conn).await,
            bad: of(Conn::new(faulty.clone())).await,
            faulty,
            hand,
        }
    }

    fn pass(&self, time: Duration) {
        let ms = time.as_millis() as u64;
        self.hand.fetch_add(ms, Ordering::SeqCst);
    }

    /// Fires all slots and takes all steps, whenever a call fails.
    async fn work(&self) {
        let stepper = Stepper::new(&self.bad).unwrap();
        for _ in 0..MOST {
            match self.bad.fire_schedules().await {
                Ok(fired) if fired.due > 0 => continue,
                Ok(_) => {}
                Err(_) => continue,
            }
            match stepper.step().await {
                Ok(None) => {}
                Ok(Some(_)) => return,
                Err(_) => self.pass(LEASE),
            }
        }
        panic!("work is left");
    }

    /// The slots of all flows with jobs.
    async fn slots(&self) -> Vec<String> {
        let flows = FlowClient::new(&self.good).unwrap();
        let mut slots = Vec::new();
        for id in flows
            .list()
            .await
            .unwrap()
            .iter()
            .map(|flow| FlowId(flow.id))
        {
            let record = Flows::of(&self.good).unwrap().record(id).await.unwrap();
            let view = flows.status(id).await.unwrap();
            assert_eq!(ends(&view), "a=ready b=waiting");
            let env: Value = serde_json::from_str(&record["env_vars"]).unwrap();
            slots.push(env["MESHWORK_SLOT"].as_str().unwrap().to_owned());
        }
        slots
    }
}

fn ticks() -> ScheduleName {
    "ticks".parse().unwrap()
}

/// A schedule with this number of slots, one every second.
fn every_second(slots: u64) -> Schedule {
    let mut timing = Timing::new("@every 1s".parse().unwrap());
    timing.end = Some(START + slots * 1_000);
    let route = Route::to("flow".parse().unwrap());
    let mut template = NewJob::new("ticks".parse().unwrap(), route, "ticks");
    template.caller_id = "12".to_owned();
    let mut schedule = Schedule::new(ticks(), timing, template);
    (schedule.catch_up, schedule.overlap) = (CatchUp::All(100), Overlap::Allow);
    schedule
}

async fn add(life: &Life, schedule: &Schedule) {
    let flows = Flows::of(&life.good).unwrap();
    let plan = json!(plan(TICKS)).to_string();
    flows.put_schedule(schedule, &plan, false).await.unwrap();
}

fn are_each_once(slots: &[String], expected: usize) {
    assert_eq!(slots.len(), expected, "{slots:#?}");
    assert_eq!(slots.iter().collect::<BTreeSet<_>>().len(), expected);
}

#[tokio::test]
async fn each_slot_starts_one_flow_if_the_connection_breaks() {
    const SLOTS: u64 = 3;
    for moment in [Moment::Before, Moment::After] {
        for first in 0.. {
            let times = 1;
            let fault = Fault {
                first,
                times,
                moment,
            };
            let life = Life::new(Some(fault)).await;
            add(&life, &every_second(SLOTS)).await;
            life.pass(Duration::from_secs(SLOTS + 1));
            life.work().await;
            are_each_once(&life.slots().await, SLOTS as usize);
            if life.faulty.broken() == 0 {
                assert!(first > 10, "{first} commands only");
                break;
            }
        }
    }
}

#[tokio::test]
async fn a_hundred_slots_start_a_hundred_flows_whichever_worker_stops() {
    const SLOTS: u64 = 100;
    let life = Life::new(None).await;
    add(&life, &every_second(SLOTS)).await;
    for second in 0..SLOTS {
        life.pass(Duration::from_secs(1));
        let workers = (0..3).map(|number| {
            let broker = life.good.clone();
            let stepper = Stepper::new(&life.good).unwrap();
            let worker = tokio::spawn(async move {
                broker.fire_schedules().await.unwrap();
                while stepper.step().await.unwrap().is_none() {}
            });
            (number, worker)
        });
        for (number, worker) in workers.collect::<Vec<_>>() {
            // Each worker is aborted at another point of its calls.
            for _ in 0..(second * 7 + number * 3) % 23 {
                tokio::task::yield_now().await;
            }
            worker.abort();
            let _ = worker.await;
        }
    }
    life.pass(LEASE);
    life.work().await;
    are_each_once(&life.slots().await, SLOTS as usize);
}

#[tokio::test]
async fn a_replaced_flow_ends_before_the_next_one_begins() {
    let life = Life::new(None).await;
    let mut schedule = every_second(2);
    (schedule.catch_up, schedule.overlap) = (CatchUp::One, Overlap::Replace);
    add(&life, &schedule).await;
    life.pass(Duration::from_secs(1));
    life.work().await;
    // A runner takes the first job.
    let queue = format!(
        "{}queue:osis",
        Flows::of(&life.good).unwrap().keys().prefix()
    );
    let raw = async |words: &[&str]| -> Option<String> {
        let mut command = redis::cmd(words[0]);
        command.arg(&words[1..]);
        let conn = &mut life.good.conn().clone();
        command.query_async(conn).await.unwrap()
    };
    let job = raw(&["RPOP", &queue]).await.unwrap();
    raw(&["HSET", &job, "status", "started"]).await;
    life.pass(Duration::from_secs(1));
    life.work().await;
    let flows = FlowClient::new(&life.good).unwrap();
    let listed = flows.list().await.unwrap();
    let states: Vec<_> = listed.iter().map(|flow| flow.status.as_str()).collect();
    assert_eq!(states, ["dispatched", "started"]);
    assert_eq!(raw(&["RPOP", &queue]).await, None);
    let id = FlowId(listed[1].id);
    let record = Flows::of(&life.good).unwrap().record(id).await.unwrap();
    assert_eq!(record["mw_stop"], "cancelled");
    raw(&["HSET", &job, "status", "error"]).await;
    for _ in 0..10 {
        life.pass(Duration::from_secs(6));
        life.work().await;
    }
    let listed = flows.list().await.unwrap();
    let states: Vec<_> = listed.iter().map(|flow| flow.status.as_str()).collect();
    assert_eq!(states, ["dispatched", "error"]);
}

#[tokio::test]
async fn a_deployment_is_the_old_or_the_new_one_if_the_connection_breaks() {
    let schedule = every_second(100);
    for moment in [Moment::Before, Moment::After] {
        for first in 0.. {
            let times = 1;
            let life = Life::new(Some(Fault {
                first,
                times,
                moment,
            }))
            .await;
            let (good, bad) = (
                Flows::of(&life.good).unwrap(),
                Flows::of(&life.bad).unwrap(),
            );
            let deploy = async |flows: &Flows, plan| {
                let schedule = Some((&schedule, plan));
                flows.deploy(&ticks(), plan, ActorId(12), schedule).await
            };
            assert_eq!(deploy(&good, "1").await.unwrap(), Deployed::Stored(1));
            let answered = deploy(&bad, "2").await;
            let found = good.deployed_plan(&ticks()).await.unwrap().unwrap();
            let key = life.good.keys().schedule(&ticks());
            let mut command = redis::cmd("HGET");
            command.arg(&key).arg("plan");
            let conn = &mut life.good.conn().clone();
            let of_schedule: String = command.query_async(conn).await.unwrap();
            assert_eq!(found, of_schedule);
            assert!(answered.is_err() || found == "2");
            if life.faulty.broken() == 0 {
                assert!(first > 2, "{first} commands only");
                break;
            }
        }
    }
}
