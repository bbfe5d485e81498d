//! Latency with which an idle Meshwork worker begins a job on each of its lists, and the load that such a worker
//! causes while no job comes. Worker and client are in this process, each with its own connections. So one clock
//! times both the submission and the start of a job.

use std::fmt;
use std::time::Instant;

use meshwork::protocol::bananas::{Client, Request, Worker};
use meshwork::runtime::JobContext;
use meshwork_model::bananas::ClientVariant;
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

/// Greatest median latency from submission to start, in µs, as `docs/bananas.md` promises for each list.
const PROMISED_US: f64 = 1000.0;
/// Name of the handler.
const NAME: &str = "note";

/// Result of the measurement.
#[derive(Clone, Debug, Default)]
pub struct Idle {
    /// Latency for each list of the worker, in its order.
    pub lists: Vec<Pickup>,
    /// Number of connections of the worker.
    pub connections: u64,
    /// Calls of the idle worker in a second, without the commands inside of scripts.
    pub calls_per_second: f64,
}

/// Latency of the jobs of one list.
#[derive(Clone, Debug)]
pub struct Pickup {
    /// Key of the list.
    pub list: String,
    /// Route; `default` for a list without one.
    pub route: RoutingKey,
    /// Priority.
    pub priority: Priority,
    /// Number of jobs, which run one at a time.
    pub samples: usize,
    /// Median time from just before the call that submits to the first line of the handler, in µs.
    pub p50_us: f64,
    /// 99th percentile of that time, in µs.
    pub p99_us: f64,
}

impl Idle {
    /// Returns true if the median of each list is within the promise.
    #[must_use]
    pub fn holds(&self) -> bool {
        let soon = |pickup: &Pickup| pickup.samples > 0 && pickup.p50_us < PROMISED_US;
        !self.lists.is_empty() && self.lists.iter().all(soon)
    }

    /// Returns the result as a JSON object.
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

/// Measures on a server of its own with default settings.
pub(super) async fn play(plan: &Plan) -> Result<Idle, BananasError> {
    let server = RealServer::redis().start_for("bananas");
    let server = server.ok_or(BananasError::Missing("redis-server"))?;
    let (url, jobs, watch) = (server.url(), plan.jobs, plan.watch);
    // In a task: outside of the runtime's threads each call would have to wake another thread.
    let measure = tokio::spawn(async move {
        let client = Client::open(&url).await?;
        let mut redis = redis::Client::open(&*url)?.get_connection()?;
        let before = connections(&mut redis)?;
        let (begun, mut begins) = mpsc::unbounded_channel();
        let note = move |_: Value, _: JobContext| {
            // The receiver is dropped when all samples are taken.
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

/// Submits one job at a time to each list in rotation, so that other load on the machine affects all lists alike.
async fn pickups(
    client: &Client,
    lists: &[String],
    jobs: u64,
    begins: &mut mpsc::UnboundedReceiver<Instant>,
) -> Result<Vec<Pickup>, BananasError> {
    let rounds = usize::try_from(jobs).unwrap_or(usize::MAX) / lists.len().max(1);
    let mut took = vec![Vec::new(); lists.len()];
    let mut pace = tokio::time::interval(PACE);
    // After each job the worker gets the same time to become idle again.
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for round in 0..rounds + WARM_UP {
        for (list, took) in lists.iter().zip(&mut took) {
            let (client, request) = to(client, list)?;
            pace.tick().await;
            let began = Instant::now();
            client.enqueue(request).await?;
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

/// Returns a job for that list, and a client of the variant that pushes to it.
fn to(client: &Client, list: &str) -> Result<(Client, Request), BananasError> {
    let (route, priority) = place(client, list)?;
    let make = match client.broker().keys().is_plain(list) {
        true => ClientVariant::Go,
        false => ClientVariant::GoRouted,
    };
    let request = Request::new(NAME, &json!({}))?.priority(priority);
    Ok((client.clone().with_variant(make), request.route(route)))
}

fn place(client: &Client, list: &str) -> Result<(RoutingKey, Priority), BananasError> {
    let place = client.broker().keys().parse_list(list);
    place.ok_or_else(|| BananasError::Odd(format!("{list} is no list that jobs wait in")))
}

/// Returns the number of connections of the server.
fn connections(redis: &mut Connection) -> Result<u64, BananasError> {
    let info: String = redis::cmd("INFO").arg("clients").query(redis)?;
    let count = info
        .lines()
        .find_map(|line| line.strip_prefix("connected_clients:")?.parse().ok());
    count.ok_or_else(|| BananasError::Odd("INFO tells of no clients".to_owned()))
}
