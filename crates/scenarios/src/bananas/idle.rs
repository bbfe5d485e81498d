//! How soon a worker of ours that waits begins a job, whichever of its lists it comes to, and what such a worker costs
//! while nothing comes. Worker and client are in this process, each with connections of its own, so that one clock
//! tells when a job was submitted and when it began.

use std::fmt;
use std::time::Instant;

use meshwork::protocol::bananas::{Client, Request, Worker};
use meshwork::runner::Context;
use meshwork_model::bananas::Peer;
use meshwork_model::name::RoutingKey;
use meshwork_model::route::Priority;
use redis::Connection;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;

use super::orders::ROUTES;
use super::{BananasError, Plan};
use crate::bench::latency::{PACE, WARM_UP, percentiles};
use meshwork_test_servers::calls::Calls;
use meshwork_test_servers::servers::RealServer;

/// On any list half of the jobs begin within this time, in µs: the promise of `docs/bananas.md`.
const PROMISED_US: f64 = 1000.0;
/// The handler's name.
const NAME: &str = "note";

/// What came out.
#[derive(Clone, Debug, Default)]
pub struct Idle {
    /// For each list that the worker listens to, in its order.
    pub lists: Vec<Pickup>,
    /// Connections of the worker.
    pub connections: u64,
    /// Calls that it makes in a second while nothing comes; what scripts call is not among them.
    pub calls_per_second: f64,
}

/// How soon jobs of one list began.
#[derive(Clone, Debug)]
pub struct Pickup {
    /// The list.
    pub list: String,
    /// The route; `default` of a list without one.
    pub route: RoutingKey,
    /// The priority.
    pub priority: Priority,
    /// Jobs, one at a time.
    pub samples: usize,
    /// From just before the call that submits to the first line of the handler, in µs: half of them.
    pub p50_us: f64,
    /// The same: 99 of a hundred.
    pub p99_us: f64,
}

impl Idle {
    /// Whether half of the jobs of each list began as soon as is promised.
    #[must_use]
    pub fn holds(&self) -> bool {
        let soon = |pickup: &Pickup| pickup.samples > 0 && pickup.p50_us < PROMISED_US;
        !self.lists.is_empty() && self.lists.iter().all(soon)
    }

    /// One object of JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        let list = |pickup: &Pickup| {
            json!({
                "list": pickup.list,
                "route": pickup.route.as_str(),
                "priority": pickup.priority.as_str(),
                "samples": pickup.samples,
                "p50_us": pickup.p50_us.round(),
                "p99_us": pickup.p99_us.round(),
            })
        };
        json!({
            "scenario": "idle",
            "holds": self.holds(),
            "lists": self.lists.iter().map(list).collect::<Vec<_>>(),
            "connections": self.connections,
            "calls_per_second": (self.calls_per_second * 100.0).round() / 100.0,
        })
    }
}

impl fmt::Display for Idle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (lists, connections) = (self.lists.len(), self.connections);
        let calls = self.calls_per_second;
        writeln!(
            f,
            "idle: a worker at {lists} lists has {connections} connections and makes {calls:.1} calls a second"
        )?;
        write!(
            f,
            "  {:<40} {:>7} {:>8} {:>8}",
            "list", "jobs", "p50 us", "p99 us"
        )?;
        for pickup in &self.lists {
            let Pickup { list, samples, .. } = pickup;
            let (half, most) = (pickup.p50_us, pickup.p99_us);
            let late = if half < PROMISED_US { "" } else { "  late" };
            write!(
                f,
                "\n  {list:<40} {samples:>7} {half:>8.0} {most:>8.0}{late}"
            )?;
        }
        Ok(())
    }
}

/// Measures, on a server of its own with the settings that a server has.
pub(super) async fn play(plan: &Plan) -> Result<Idle, BananasError> {
    let server = RealServer::redis().start_for("bananas");
    let server = server.ok_or(BananasError::Missing("redis-server"))?;
    let (url, jobs, watch) = (server.url(), plan.jobs, plan.watch);
    // In a task: from outside of the runtime's threads each call would wake another one.
    let measure = tokio::spawn(async move {
        let client = Client::open(&url).await?;
        let mut redis = redis::Client::open(&*url)?.get_connection()?;
        let before = connections(&mut redis)?;
        let (begun, mut begins) = mpsc::unbounded_channel();
        let note = move |_: Value, _: Context| {
            // The receiver goes when all samples are taken.
            let _ = begun.send(Instant::now());
            async { Ok::<_, String>(()) }
        };
        let worker = Worker::new(&Client::open(&url).await?)
            .handle(NAME, note)
            .routes(ROUTES.join(",").parse()?)
            .start()
            .await?;
        worker.registered().await;
        let lists = pickups(&client, &worker.queues(), jobs, &mut begins).await?;
        let connections = connections(&mut redis)?.saturating_sub(before);
        let calls_per_second = Calls::of(&url).await?.per_second(watch).await;
        worker.stop().await;
        Ok(Idle {
            lists,
            connections,
            calls_per_second,
        })
    });
    let odd = |why: tokio::task::JoinError| BananasError::Odd(why.to_string());
    measure.await.map_err(odd)?
}

/// One job at a time, to each list in turn: what else the machine does hits all of them alike.
async fn pickups(
    client: &Client,
    lists: &[String],
    jobs: u64,
    begins: &mut mpsc::UnboundedReceiver<Instant>,
) -> Result<Vec<Pickup>, BananasError> {
    let rounds = usize::try_from(jobs).unwrap_or(usize::MAX) / lists.len().max(1);
    let mut took = vec![Vec::new(); lists.len()];
    let mut pace = tokio::time::interval(PACE);
    // After each there is as long for the worker to wait again.
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for round in 0..rounds + WARM_UP {
        for (list, took) in lists.iter().zip(&mut took) {
            let (client, request) = to(client, list)?;
            pace.tick().await;
            let began = Instant::now();
            client.submit(request).await?;
            let begun = begins.recv().await;
            let begun = begun.ok_or_else(|| BananasError::Odd("the worker ended".to_owned()))?;
            if round >= WARM_UP {
                took.push(begun.duration_since(began));
            }
        }
    }
    let pickup = |(list, took): (&String, Vec<_>)| {
        let (route, priority) = place(client, list)?;
        let samples = took.len();
        let [p50_us, p99_us] = percentiles(took);
        Ok(Pickup {
            list: list.clone(),
            route,
            priority,
            samples,
            p50_us,
            p99_us,
        })
    };
    lists.iter().zip(took).map(pickup).collect()
}

/// A job that comes to that list, and a client of the make that puts it there.
fn to(client: &Client, list: &str) -> Result<(Client, Request), BananasError> {
    let (route, priority) = place(client, list)?;
    let make = match client.broker().keys().is_plain(list) {
        true => Peer::Go,
        false => Peer::GoRouted,
    };
    let request = Request::new(NAME, &json!({}))?.priority(priority);
    Ok((client.clone().like(make), request.route(route)))
}

fn place(client: &Client, list: &str) -> Result<(RoutingKey, Priority), BananasError> {
    let place = client.broker().keys().parse_list(list);
    place.ok_or_else(|| BananasError::Odd(format!("{list} is no list that jobs wait in")))
}

/// Connections that the server has.
fn connections(redis: &mut Connection) -> Result<u64, BananasError> {
    let info: String = redis::cmd("INFO").arg("clients").query(redis)?;
    let count = info
        .lines()
        .find_map(|line| line.strip_prefix("connected_clients:")?.parse().ok());
    count.ok_or_else(|| BananasError::Odd("INFO tells of no clients".to_owned()))
}
