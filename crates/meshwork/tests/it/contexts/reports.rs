//! Idle contexts of a pool whose server reports changes: all that there is to do is found, also if a report is lost, or
//! none comes.

use std::time::{Duration, Instant};

use meshwork::Client;
use meshwork_broker::conn::{Conn, Target, TlsFiles};
use meshwork_broker::{Claim, PrefetchLists};
use meshwork_model::job::Job;
use meshwork_model::keys::context::ContextLayout;
use meshwork_model::keys::hero::JobKeys;
use meshwork_model::name::JobId;
use meshwork_test_servers::eventually;
use meshwork_test_servers::servers::{RealCluster, RealSentinels, RealServer, ServerOptions};

use super::pool::{Site, new, stop};
use crate::worker_support::{Scripted, osis, raw};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);
/// Less than the time after which a context is looked at without a report.
const SOON: Duration = Duration::from_secs(15);
/// Longer than a context is polled after it had work.
const LATER: Duration = Duration::from_secs(6);

/// The connections that report changes.
fn tracking(server: &RealServer) -> Vec<String> {
    let clients: String = server.say(&["CLIENT", "LIST"]).unwrap();
    let field = |line: &str, name: &str| {
        let mut fields = line.split(' ');
        fields.find_map(|field| field.strip_prefix(name).map(str::to_owned))
    };
    let tracks = |line: &&str| field(line, "flags=").is_some_and(|flags| flags.contains('t'));
    let lines = clients.lines().filter(tracks);
    lines.filter_map(|line| field(line, "id=")).collect()
}

/// Waits until all contexts of a pool have been looked at over a connection that reports changes, and polls ended.
async fn reported(server: &RealServer) {
    let looks = || {
        let stats: String = server.say(&["INFO", "commandstats"]).unwrap();
        let head = "cmdstat_exists:calls=";
        let line = stats.lines().find_map(|line| line.strip_prefix(head));
        line.map(|line| line.split(',').next().unwrap().to_owned())
    };
    let uptime = || {
        server
            .info("uptime_in_seconds")
            .unwrap()
            .parse::<u64>()
            .unwrap()
    };
    eventually("polls end", PATIENCE, async || {
        let (before, begun) = (looks(), uptime());
        eventually("two seconds", PATIENCE, async || {
            (uptime() >= begun + 2).then_some(())
        })
        .await;
        (!tracking(server).is_empty() && looks() == before).then_some(())
    })
    .await;
}

/// Enqueues a job as a plain client does.
async fn plain_job(client: &Client, prefix: &str) -> String {
    let key = format!("{prefix}job:12:2001");
    let fields = [
        "id 2001 caller_id 12 context_id 3 script 1 script_type osis timeout 60 retries 0 env_vars {} result {}",
        "created_at 1700000000 updated_at 1700000000 status dispatched",
    ];
    let words = ["HSET", &key].into_iter();
    let words = words.chain(fields.iter().flat_map(|some| some.split(' ')));
    raw::<i64>(client, &words.collect::<Vec<_>>()).await;
    raw::<i64>(client, &["LPUSH", &format!("{prefix}queue:osis"), &key]).await;
    key
}

fn servers() -> impl Iterator<Item = RealServer> {
    let servers = [RealServer::redis(), RealServer::valkey()];
    servers.into_iter().filter_map(ServerOptions::start)
}

async fn result(client: &Client, id: &JobId) -> Job {
    client.result(id, SOON).await.unwrap()
}

/// Takes a job as a worker that is not heard of again, and that no other can ask.
async fn lose(client: &Client, queue: &str) -> JobId {
    let id = client.enqueue(new("1")).await.unwrap();
    let claim = Claim {
        queues: &[queue.to_owned()],
        old: &[],
        reverse: false,
        prefetch: PrefetchLists::All,
        want: 1,
        ahead: 0,
        lease: LATER,
        worker: "w-1",
        token: "w-1.1",
    };
    let claimed = client.broker().claim(claim).await.unwrap();
    assert_eq!(claimed.jobs.len(), 1);
    id
}

#[tokio::test]
async fn whatever_is_due_in_an_idle_context_is_found() {
    for server in servers() {
        let site = Site::over(Some(server), 4, Some(ContextLayout::Prefix)).await;
        let server = site.server.as_ref().unwrap();
        let key = |at: usize, name: &str| format!("{}{name}", site.contexts[at].keys().prefix());
        let [later, left, plain, paused] = &site.clients[..] else {
            unreachable!()
        };
        let lost = lose(left, &key(1, "queue:osis")).await;
        let workers = site.workers(10, &[osis()], |_| Scripted::echo()).await;
        assert!(result(left, &lost).await.output.is_some());
        reported(server).await;
        let job = plain_job(plain, &key(2, "")).await;
        eventually("its end", SOON, async || {
            let status = raw::<String>(plain, &["HGET", &job, "status"]).await;
            (status == "finished").then_some(())
        })
        .await;
        let queue = key(3, "queue:osis");
        paused.pause(&queue).await.unwrap();
        let waits = paused.enqueue(new("1")).await.unwrap();
        let begun = Instant::now();
        let delayed = later.enqueue(new("1").delay(LATER)).await.unwrap();
        result(later, &delayed).await;
        let took = begun.elapsed();
        assert!(took >= LATER && took < 2 * LATER, "{took:?}");
        paused.resume(&queue).await.unwrap();
        assert_eq!(result(paused, &waits).await.attempt, 1);
        stop(workers).await;
    }
}

#[tokio::test]
async fn a_lost_connection_and_a_flush_lose_no_change() {
    for server in servers() {
        let site = Site::over(Some(server), 3, Some(ContextLayout::Prefix)).await;
        let server = site.server.as_ref().unwrap();
        let workers = site.workers(10, &[osis()], |_| Scripted::echo()).await;
        for round in 0..4 {
            reported(server).await;
            match round % 2 {
                0 => tracking(server).iter().for_each(|id| {
                    server.say::<u64>(&["CLIENT", "KILL", "ID", id]).unwrap();
                }),
                _ => server.say::<()>(&["FLUSHALL"]).unwrap(),
            }
            for client in &site.clients {
                let id = client.enqueue(new("1")).await.unwrap();
                assert_eq!(result(client, &id).await.attempt, 1, "round {round}");
            }
        }
        stop(workers).await;
    }
}

#[tokio::test]
async fn contexts_are_polled_for_a_user_who_gets_no_reports() {
    for server in servers() {
        let rule = ["ACL", "SETUSER", "mw", "on", ">mw", "~*", "&*", "+@all"];
        let rule = rule.into_iter().chain(["-client|tracking"]);
        server.say::<()>(&rule.collect::<Vec<_>>()).unwrap();
        let login = server.url().replacen("://", "://mw:mw@", 1);
        let target = Target::parse(&login, TlsFiles::default()).unwrap();
        let conn = Conn::open(&target, &Default::default()).await.unwrap();
        let layout = Some(ContextLayout::Prefix);
        let site = Site::on(conn, JobKeys::default(), 3, layout).await;
        let workers = site.workers(10, &[osis()], |_| Scripted::echo()).await;
        for client in &site.clients {
            client.run(new("1")).await.unwrap();
        }
        assert!(tracking(&server).is_empty());
        let all_ready = || workers.iter().all(|it| it.monitor().ready().is_ok());
        eventually("readiness", SOON, async || all_ready().then_some(())).await;
        stop(workers).await;
    }
}

#[tokio::test]
async fn an_idle_context_that_moves_to_another_node_is_served_there() {
    let Some(cluster) = RealCluster::start(RealServer::redis(), 0).await else {
        return;
    };
    let site = Site::on_cluster(cluster, 3).await;
    let workers = site.workers(10, &[osis()], |_| Scripted::echo()).await;
    let cluster = site.cluster.as_ref().unwrap();
    for context in &site.contexts {
        let (from, slot) = cluster.owner(context.keys().prefix());
        let to = (from + 1) % 3;
        reported(&cluster.nodes()[from]).await;
        cluster.begin_move(slot, from, to).unwrap();
        cluster.move_keys(slot, from, to).unwrap();
        cluster.end_move(slot, from, to).unwrap();
    }
    for client in &site.clients {
        let id = client.enqueue(new("1")).await.unwrap();
        assert_eq!(result(client, &id).await.attempt, 1);
    }
    stop(workers).await;
}

/// The contexts of a master that fails are served on the replica that is promoted.
async fn fails_over(fail: impl FnOnce(&mut RealSentinels)) {
    let Some(mut sentinels) = RealSentinels::start(RealServer::redis(), None).await else {
        return;
    };
    let target = Target::parse(&sentinels.url(""), TlsFiles::default()).unwrap();
    let conn = Conn::open(&target, &Default::default()).await.unwrap();
    let layout = Some(ContextLayout::Prefix);
    let site = Site::on(conn, JobKeys::default(), 3, layout).await;
    let workers = site.workers(10, &[osis()], |_| Scripted::echo()).await;
    reported(&sentinels.servers()[0]).await;
    fail(&mut sentinels);
    let replica = &sentinels.servers()[1];
    eventually("a failover", PATIENCE, async || {
        (replica.info("role")? == "master").then_some(())
    })
    .await;
    for client in &site.clients {
        let id = eventually("the new master answers", PATIENCE, async || {
            client.enqueue(new("1")).await.ok()
        });
        assert_eq!(result(client, &id.await).await.attempt, 1);
    }
    reported(&sentinels.servers()[1]).await;
    stop(workers).await;
}

#[tokio::test]
async fn contexts_of_a_master_that_dies_are_served_after_the_failover() {
    fails_over(|sentinels| sentinels.server_mut(0).kill9()).await;
}

#[tokio::test]
async fn contexts_of_a_master_that_hangs_are_served_after_the_failover() {
    fails_over(|sentinels| sentinels.server_mut(0).pause()).await;
}

#[tokio::test]
async fn contexts_of_a_master_that_is_replaced_are_served_after_it() {
    fails_over(|sentinels| {
        let order = ["SENTINEL", "FAILOVER", "main"];
        sentinels.sentinels()[0].say::<()>(&order).unwrap();
    })
    .await;
}
