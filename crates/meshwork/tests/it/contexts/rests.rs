//! A coordinator of many idle contexts, whose servers report changes: it makes few calls, and finds each message at once.

use std::time::Duration;

use meshwork::context::{Coordinator, NewMessage, Serves};
use meshwork_model::context::MessageType;
use meshwork_test_servers::eventually;
use meshwork_test_servers::servers::{RealCluster, RealServer};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::pool::Site;
use super::world::job_of;
use crate::worker_support::raw;

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);
/// Less than the time after which a context is looked at without a report.
const SOON: Duration = Duration::from_secs(15);
/// Number of contexts, unless `MESHWORK_CONTEXTS` has another: more than outboxes are watched by a connection of their own.
const CONTEXTS: u32 = 40;

fn contexts() -> u32 {
    std::env::var("MESHWORK_CONTEXTS").map_or(CONTEXTS, |it| it.parse().unwrap())
}

struct Serving {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Serving {
    async fn start(site: &Site) -> Self {
        let coordinator = Coordinator::new(&site.node).await.unwrap();
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let task = tokio::spawn(async move { coordinator.run(&Serves::All, &stopped).await });
        Self { stop, task }
    }

    async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }
}

/// The commands that a server has executed, but for those of the test.
fn calls(node: &RealServer) -> u64 {
    let stats: String = node.say(&["INFO", "commandstats"]).unwrap();
    let lines = stats.lines().filter_map(|line| {
        let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
        let is_test = ["info", "ping", "replconf"].contains(&name);
        (!is_test).then(|| rest.split(',').next().unwrap().parse::<u64>().unwrap())
    });
    lines.sum()
}

/// Waits until each server gets fewer calls in ten seconds than there are contexts. Returns their greatest number.
async fn idle(site: &Site) -> u64 {
    let nodes = site.cluster.as_ref().unwrap().nodes();
    let each = || nodes.iter().map(calls).collect::<Vec<_>>();
    let uptime = || -> u64 { nodes[0].info("uptime_in_seconds").unwrap().parse().unwrap() };
    eventually("the coordinator is idle", PATIENCE, async || {
        let (before, begun) = (each(), uptime());
        eventually("ten seconds", PATIENCE, async || {
            (uptime() >= begun + 10).then_some(())
        })
        .await;
        let spent = each().into_iter().zip(before).map(|(now, then)| now - then);
        let most = spent.max().unwrap();
        (most < u64::from(contexts())).then_some(most)
    })
    .await
}

/// Sends a text from one context to another, and waits for it there.
async fn deliver(site: &Site, from: usize, to: usize) {
    let mut new = NewMessage::new(site.contexts[to].id(), MessageType::Chat);
    new.text = format!("from {from}");
    let before = site.contexts[to].messages(&site.me).await.unwrap();
    eventually("the message is stored", PATIENCE, async || {
        site.contexts[from].send(&site.me, &new).await.ok()
    })
    .await;
    eventually("it arrives", SOON, async || {
        let now = site.contexts[to].messages(&site.me).await.ok()?;
        (now.len() > before.len()).then_some(())
    })
    .await;
}

#[tokio::test]
async fn messages_of_idle_contexts_are_found_at_once() {
    for server in [RealServer::redis(), RealServer::valkey()] {
        let Some(cluster) = RealCluster::start(server.append_only(), 0).await else {
            continue;
        };
        let mut site = Site::on_cluster(cluster, contexts()).await;
        let serving = Serving::start(&site).await;
        let most = idle(&site).await;
        println!("{most} calls in 10 s on the busiest node");
        for from in [0, 7, 20, 39] {
            deliver(&site, from, 39 - from).await;
        }
        // Messages that nobody reads cost nothing either.
        idle(&site).await;
        // A context without messages moves: nothing is reported.
        let cluster = site.cluster.as_ref().unwrap();
        let (from, slot) = cluster.owner(site.contexts[5].keys().prefix());
        let to = (from + 1) % 3;
        cluster.begin_move(slot, from, to).unwrap();
        cluster.move_keys(slot, from, to).unwrap();
        cluster.end_move(slot, from, to).unwrap();
        deliver(&site, 5, 6).await;
        deliver(&site, 6, 5).await;
        for at in 0..3 {
            let node = site.cluster.as_mut().unwrap().node_mut(at);
            node.kill9();
            node.start_again();
            site.cluster.as_ref().unwrap().settle().await;
            deliver(&site, 1, 2).await;
            deliver(&site, 2, 30).await;
        }
        serving.stop().await;
    }
}

#[tokio::test]
async fn a_message_whose_time_is_over_ends_in_an_idle_context() {
    let Some(cluster) = RealCluster::start(RealServer::redis(), 0).await else {
        return;
    };
    let site = Site::on_cluster(cluster, contexts()).await;
    let serving = Serving::start(&site).await;
    idle(&site).await;
    let mut new = NewMessage::new(site.contexts[3].id(), MessageType::Job);
    new.timeout_result = 8;
    new.jobs = vec![job_of("v")];
    let sent = site.contexts[2].send(&site.me, &new).await.unwrap().key();
    // No runner takes the job.
    eventually("its time is over", PATIENCE, async || {
        let key = site.contexts[2].keys().message(sent);
        let status: String = raw(&site.clients[2], &["HGET", &key, "status"]).await;
        (status == "error").then_some(())
    })
    .await;
    serving.stop().await;
}
