//! Nodes of a Cluster: each has two contexts, and one pool runs the jobs of all.
//!
//! The rate is that of a backlog. The accounts of the nodes are of a steady load, the same for each node at each point: a
//! server that is busy reads more calls at once, and so needs less time for each.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join_all;
use meshwork::{Client, Worker, WorkerHandle};
use tokio::time::MissedTickBehavior;

use super::super::ours::{Progress, request, run_all};
use super::super::{BenchError, Cost, PAYLOAD};
use super::Value;
use super::site::Site;

/// Note for the reader of the rates.
pub(super) const NOTE: &str = "nodes: all servers share the processors of this machine, so compare processor time and calls; \
     rates grow only with processors";
/// Figures that should grow with the number of nodes, each with the name of its ratio to the value of one node: jobs for
/// each second of processor time of the node that needs most, and jobs for 1,000 commands of the node that has most. With
/// a processor for each node, the first is the limit of the rate.
pub(super) const GROWTH: [[&str; 2]; 2] = [
    ["work-per-node-s", "work-growth"],
    ["work-per-1k-calls", "calls-growth"],
];

/// Number of contexts on each node.
const CONTEXTS: usize = 2;
/// Number of jobs of each context that wait.
const JOBS: usize = 5_000;
/// Number of concurrent handlers for each context.
const SLOTS: usize = 10;
/// Number of jobs in one call.
const TOGETHER: usize = 100;
/// Steady load of a context: calls, jobs in each, and the time between two calls.
const CALLS: usize = 100;
const OF_CALL: usize = 50;
const PAUSE: Duration = Duration::from_millis(100);
/// Names of the figures of each node: its processor time, and its commands with those inside of scripts.
const NODES: [[&str; 2]; 4] = [
    ["server-1", "calls-1"],
    ["server-2", "calls-2"],
    ["server-3", "calls-3"],
    ["server-4", "calls-4"],
];

/// Measures a Cluster of `nodes` nodes.
pub(super) async fn take(
    nodes: usize,
    few: impl Fn(usize) -> usize,
) -> Result<Vec<Value>, BenchError> {
    let site = Site::start(nodes, CONTEXTS * nodes).await?;
    let clients = site.clients().await?;
    let first = site.read()?;
    let mut values = backlog(&site, &clients, few(JOBS)).await?;
    let costs = steady(&site, &clients, few(CALLS)).await?;
    let after = site.read()?;
    let refused = after.iter().zip(&first);
    let refused = refused.map(|(to, from)| to.refused_since(from));
    let [moved, rejected] = refused.fold([0.0; 2], |sum, one| [sum[0] + one[0], sum[1] + one[1]]);
    values.extend([("moved", "calls", moved), ("rejected", "calls", rejected)]);
    let server_us = |cost: &Cost| cost.server_us.unwrap_or_default();
    let calls = |cost: &Cost| cost.commands.unwrap_or_default();
    let most = |of: fn(&Cost) -> f64| costs.iter().map(of).fold(0.0, f64::max);
    let [[by_time, _], [by_calls, _]] = GROWTH;
    values.push((by_time, "jobs/s", 1e6 / most(server_us)));
    values.push((by_calls, "jobs", 1e3 / most(calls)));
    for (cost, [server, commands]) in costs.iter().zip(NODES) {
        values.push((server, "us/job", server_us(cost)));
        values.push((commands, "1/job", calls(cost)));
    }
    Ok(values)
}

/// Enqueues `each` jobs in each context, and runs them then.
async fn backlog(site: &Site, clients: &[Client], each: usize) -> Result<Vec<Value>, BenchError> {
    let jobs = each * clients.len();
    let before = site.read()?;
    let stored = clients.iter().map(async |client| {
        for from in (0..each).step_by(TOGETHER) {
            enqueue(client, TOGETHER.min(each - from)).await?;
        }
        Ok::<_, BenchError>(())
    });
    try_join_all(stored).await?;
    let enqueued = site.read()?;
    let start = async |progress: &Arc<Progress>| pool(site, clients, progress).await;
    let took = run_all(jobs, start, clients).await?;
    let after = site.read()?;
    // Each reading also has the time of this program.
    let client = enqueued[0].since(&before[0], jobs).client_us;
    let pool = after[0].since(&enqueued[0], jobs).client_us;
    Ok(vec![
        ("work", "jobs/s", jobs as f64 / took.as_secs_f64()),
        ("client-enqueue", "us/job", client),
        ("client-pool", "us/job", pool),
    ])
}

/// Enqueues jobs at a steady rate in each context while a pool runs them. Returns the cost of each node, for each of all
/// jobs.
async fn steady(site: &Site, clients: &[Client], calls: usize) -> Result<Vec<Cost>, BenchError> {
    let jobs = calls * OF_CALL * clients.len();
    let mut before = Vec::new();
    let start = async |progress: &Arc<Progress>| {
        let workers = pool(site, clients, progress).await?;
        before = site.read()?;
        let stored = clients.iter().map(async |client| {
            let mut pace = tokio::time::interval(PAUSE);
            pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
            for _ in 0..calls {
                pace.tick().await;
                enqueue(client, OF_CALL).await?;
            }
            Ok::<_, BenchError>(())
        });
        try_join_all(stored).await?;
        Ok(workers)
    };
    run_all(jobs, start, clients).await?;
    let after = site.read()?;
    let costs = after.iter().zip(&before);
    Ok(costs.map(|(to, from)| to.since(from, jobs)).collect())
}

/// Starts one pool for all contexts.
async fn pool(
    site: &Site,
    clients: &[Client],
    progress: &Arc<Progress>,
) -> Result<Vec<WorkerHandle>, BenchError> {
    let (handler, slots) = (progress.handler(), SLOTS * clients.len());
    let with = |worker: Worker| worker.job(handler.clone());
    site.work(slots, with).await
}

/// Enqueues jobs in one call.
async fn enqueue(client: &Client, jobs: usize) -> Result<(), BenchError> {
    let requests = (0..jobs).map(|_| request(PAYLOAD));
    let requests = requests.collect::<Result<Vec<_>, _>>()?;
    for stored in client.enqueue_all(requests).await? {
        stored?;
    }
    Ok(())
}
