//! The command on a real cluster: what it says of a namespace without a hash tag, and that all else works.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::{Done, Ground, json};
use meshwork_test_servers::servers::{RealCluster, RealServer, Tool, need};

#[tokio::test(flavor = "multi_thread")]
async fn a_hash_tag_is_all_it_takes() {
    let Some(cluster) = RealCluster::start(RealServer::redis(), 0).await else {
        return;
    };
    for url in [cluster.url(), cluster.nodes()[0].url()] {
        let ground = Ground::url(url);
        ground.file("answer.rhai", "6 * 7");
        let done = ground.run(&["run", "answer.rhai"]).exits(3);
        assert!(
            done.stderr.contains("--namespace '{hero}'"),
            "{}",
            done.stderr
        );
        let done = ground
            .run(&["run", "answer.rhai", "--namespace", "{hero}"])
            .ok();
        assert_eq!(done.stdout, "42\n");
        let done = ground
            .run(&["job", "list", "--namespace", "{hero"])
            .exits(2);
        assert!(done.stderr.contains("make no hash tag"), "{}", done.stderr);
    }

    // Keys of other systems have a prefix of their own.
    let ground = Ground::url(cluster.url());
    ground.file("a.rhai", "1");
    for (args, prefix) in [
        (&["bananas", "queues"][..], "{bananas}"),
        (&["bananas", "submit", "a"], "{bananas}"),
        (
            &["worker", "--protocol", "bananas", "--handler", "a=a.rhai"],
            "{bananas}",
        ),
        (&["action", "send", "a.b"], "{nooble4}"),
        (
            &["service", "--name", "a", "--handler", "a.b=a.rhai"],
            "{nooble4}",
        ),
    ] {
        let said = ground.run(args).exits(3).stderr;
        let asks = format!("--prefix '{prefix}'");
        assert!(
            said.contains(&asks) && !said.contains("--namespace"),
            "{args:?}: {said}"
        );
    }
    let done = ground.run(&["bananas", "submit", "a", "--prefix", "{bananas}"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let done = ground.run(&["action", "send", "a.b", "--prefix", "{nooble4}"]);
    assert_eq!(done.code, Some(0), "{done:?}");
}

/// Contexts 1, 2 and 3 are on three nodes.
#[tokio::test(flavor = "multi_thread")]
async fn contexts_are_spread_over_the_nodes() {
    let Some(cluster) = RealCluster::start(RealServer::redis().append_only(), 0).await else {
        return;
    };
    let ground = Ground::url(cluster.url());
    let in_cluster = |words: &[&str]| ground.run(&[words, &["--namespace", "{hero}"]].concat());
    let said = in_cluster(&["context", "create", "--layout", "db"])
        .exits(2)
        .stderr;
    assert!(said.contains("--layout prefix"), "{said}");
    for id in ["1", "2", "3"] {
        assert_eq!(in_cluster(&["context", "create"]).ok().stdout.trim(), id);
    }
    placed(&in_cluster);
    let shown = in_cluster(&["context", "show", "2"]).ok().stdout;
    assert!(shown.contains("prefix"), "{shown}");
    ground.file("answer.rhai", "6 * 7");
    for id in ["1", "2", "3"] {
        let done = in_cluster(&["run", "answer.rhai", "--context", id]).ok();
        assert_eq!(done.stdout, "42\n");
    }
    let serve = [
        "supervisor",
        "--worker",
        "osis",
        "--json",
        "--namespace",
        "{hero}",
    ];
    let mut supervisor = ground.start(&serve);
    assert_eq!(json(&supervisor.line())["event"], "ready");
    let sent = [
        "message",
        "send",
        "2",
        "--job",
        "answer.rhai",
        "--context",
        "1",
        "--wait",
    ];
    let sent = in_cluster(&sent).ok().stdout;
    assert!(sent.contains("42"), "{sent}");
    supervisor.stop().ok();
    in_cluster(&["doctor"]).ok();
}

/// New contexts go where they are requested to, else to the node with the fewest.
fn placed(in_cluster: &impl Fn(&[&str]) -> Done) {
    let nodes = || {
        let listed = in_cluster(&["context", "list", "--json"]).ok().jsons();
        let of = |it: Value| {
            (
                it["id"].to_string(),
                it["node"].as_str().unwrap().to_owned(),
            )
        };
        listed.into_iter().map(of).collect::<BTreeMap<_, _>>()
    };
    let create = |words: &[&str]| {
        let made = in_cluster(&[&["context", "create"], words].concat()).ok();
        made.stdout.trim().to_owned()
    };
    let first = nodes();
    let each: BTreeSet<_> = first.values().collect();
    assert_eq!(each.len(), 3, "{first:?}");
    let near = create(&["--near", "2"]);
    assert_eq!(nodes()[&near], first["2"]);
    let on = create(&["--node", &first["3"]]);
    assert_eq!(nodes()[&on], first["3"]);
    // The first node has one context, the others two.
    let least = create(&[]);
    assert_eq!(nodes()[&least], first["1"]);
    let said = in_cluster(&["context", "create", "--node", "nowhere:1"])
        .exits(2)
        .stderr;
    assert!(said.contains(&first["1"]), "{said}");
    let said = in_cluster(&["context", "create", "--near", "77"])
        .exits(5)
        .stderr;
    assert!(said.contains("no context 77"), "{said}");
    assert_eq!(nodes().len(), 6);
}

#[test]
fn a_single_server_is_near_to_all_and_has_no_nodes_to_choose() {
    let ground = Ground::embedded().unwrap();
    let created = |words: &[&str]| ground.run(&[&["context", "create"], words].concat());
    assert_eq!(created(&[]).ok().stdout, "1\n");
    assert_eq!(created(&["--near", "1"]).ok().stdout, "2\n");
    let said = created(&["--node", "127.0.0.1:6379"]).exits(2).stderr;
    assert!(said.contains("no Cluster"), "{said}");
    let said = created(&["--id", "7", "--near", "1"]).exits(2).stderr;
    assert!(said.contains("cannot be used with"), "{said}");
}

/// Longest time of a command, on a machine that builds at the same time. A command that goes on for ever takes longer.
const ENDS: Duration = Duration::from_secs(60);

/// The words of a command in a namespace.
fn within<'a>(args: &[&'a str], namespace: &'a str) -> Vec<&'a str> {
    [args, &["--namespace", namespace]].concat()
}

/// Commands that need keys which are on two nodes, or whose node is not known.
const COMMANDS: [&[&str]; 25] = [
    &["job", "enqueue", "a.rhai", "--id", "new"],
    &["job", "enqueue", "a.rhai", "--priority", "high"],
    &["job", "wait", "j1"],
    &["job", "wait", "j1", "--timeout", "1h"],
    &["job", "show", "j1"],
    &["job", "why", "j1"],
    &["job", "logs", "j1"],
    &["job", "logs", "-f", "j1"],
    &["job", "result", "j1"],
    &["job", "cancel", "j1"],
    &["job", "retry", "j1"],
    &["job", "delete", "j1", "--yes"],
    &["job", "list"],
    &["run", "a.rhai"],
    &["queue", "list"],
    &["queue", "stats"],
    &["queue", "pause", "osis"],
    &["queue", "limit", "set", "osis", "10"],
    &["dead", "list"],
    &["schedule", "list"],
    &["schedule", "add", "x", "--every", "5s", "a.rhai"],
    &["batch", "create"],
    &["rpc", "job.get", "{\"id\":\"j1\"}"],
    &["rpc", "job.create", "{\"type\":\"osis\",\"script\":\"1\"}"],
    &["worker", "--type", "osis"],
];

#[tokio::test(flavor = "multi_thread")]
async fn every_command_ends_on_a_half_moved_slot_and_names_it() {
    let Some(cluster) = RealCluster::start(RealServer::redis(), 0).await else {
        return;
    };
    let ground = Ground::url(cluster.url());
    ground.file("a.rhai", "1");
    for id in ["j0", "j1"] {
        let args = ["job", "enqueue", "a.rhai", "--id", id];
        ground.run(&within(&args, "{hero}")).ok();
    }
    let (from, slot) = cluster.owner("{hero}");
    let to = (from + 1) % 3;
    cluster.begin_move(slot, from, to).unwrap();
    cluster.move_key(from, to, "{hero}:job:j1").unwrap();
    let began = Instant::now();
    let all = COMMANDS.map(|args| (args, ground.start(&within(args, "{hero}"))));
    for (args, command) in all {
        let done = command.ended();
        assert!(began.elapsed() < ENDS, "{args:?}: {:?}", began.elapsed());
        // The log has the reason if the message is one for clients of the API.
        let is_named = done.stderr.contains(&format!("slot {slot}"))
            && ["ASK", "TRYAGAIN"]
                .iter()
                .any(|code| done.stderr.contains(code));
        assert!(done.code == Some(3) && is_named, "{args:?}: {done:#?}");
    }
    cluster.move_keys(slot, from, to).unwrap();
    cluster.end_move(slot, from, to).unwrap();
    let worker = ground.worker(&within(&["--type", "osis"], "{hero}"));
    for id in ["j0", "j1"] {
        ground.run(&within(&["job", "wait", id], "{hero}")).ok();
    }
    worker.stop();
}

/// Two nodes send clients to one another, or no node serves a slot. Calls end, and waits at their timeouts.
#[tokio::test(flavor = "multi_thread")]
async fn every_command_ends_without_an_owner_of_its_slot() {
    let Some(cluster) = RealCluster::start(RealServer::redis(), 0).await else {
        return;
    };
    let ground = Ground::url(cluster.url());
    ground.file("a.rhai", "1");
    let (from, slot) = cluster.owner("{hero}");
    let ids: Vec<String> = (0..3)
        .map(|at| cluster.nodes()[at].say(&["CLUSTER", "MYID"]).unwrap())
        .collect();
    let set = |words: &[&str]| {
        let words = [&["CLUSTER"], words].concat();
        cluster.nodes()[from].say::<()>(&words).unwrap();
    };
    let slot = slot.to_string();
    set(&["SETSLOT", &slot, "NODE", &ids[(from + 1) % 3]]);
    all_end(&ground, &slot, "MOVED");
    set(&["SETSLOT", &slot, "NODE", &ids[from]]);
    for node in cluster.nodes() {
        node.say::<()>(&["CLUSTER", "DELSLOTS", &slot]).unwrap();
    }
    all_end(&ground, &slot, "CLUSTERDOWN");
    for node in cluster.nodes() {
        node.say::<()>(&["CLUSTER", "SETSLOT", &slot, "NODE", &ids[from]])
            .unwrap();
    }
    cluster.settle().await;
    let worker = ground.worker(&within(&["--type", "osis"], "{hero}"));
    let done = ground.run(&within(&["run", "a.rhai"], "{hero}")).ok();
    assert_eq!(done.stdout, "1\n");
    worker.stop();
}

/// Runs all commands, which fail with this code of the server.
fn all_end(ground: &Ground, slot: &str, code: &str) {
    let began = Instant::now();
    let all = COMMANDS.map(|args| {
        let args = match args {
            ["job", "wait", ..] => &["job", "wait", "j1", "--timeout", "3"],
            args => args,
        };
        (args, ground.start(&within(args, "{hero}")))
    });
    let mut wrong = Vec::new();
    for (args, command) in all {
        let done = command.ended();
        let took = began.elapsed();
        let is_named = [slot, code].iter().all(|part| done.stderr.contains(part));
        // A list without jobs comes from all nodes, without a key of the slot.
        if args == ["job", "list"] && done.code == Some(0) {
            continue;
        }
        if done.code != Some(3) || !is_named || took > ENDS {
            wrong.push((args, took, done));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_job_is_lost_while_redis_cli_moves_slots() {
    const JOBS: usize = 60;
    const SLOTS: usize = 30;
    let Some(redis_cli) = need(Tool::RedisCli) else {
        return;
    };
    let Some(cluster) = RealCluster::start(RealServer::redis(), 0).await else {
        return;
    };
    // A namespace whose slot is among the first ones of the second node, which move first.
    let first = 16_384 / 3;
    let is_first = |name: &String| (first..first + SLOTS).contains(&cluster.owner(name).1);
    let mut names = (0..).map(|number| format!("{{{number}}}"));
    let namespace = names.find(is_first).unwrap();
    let ground = Ground::url(cluster.url());
    ground.file("a.rhai", "1");
    let worker = ground.worker(&within(&["--type", "osis", "--lease", "60"], &namespace));
    for (round, from, to) in [(0, 1, 2), (1, 2, 1)] {
        let ids = [from, to].map(|at| cluster.nodes()[at].say::<String>(&["CLUSTER", "MYID"]));
        let [from, to] = ids.map(Result::unwrap);
        let mut reshard = std::process::Command::new(&redis_cli);
        let slots = SLOTS.to_string();
        let any = format!("127.0.0.1:{}", cluster.nodes()[0].port());
        reshard.args(["--cluster", "reshard", &any]);
        reshard.args(["--cluster-from", &from, "--cluster-to", &to]);
        reshard.args(["--cluster-slots", &slots, "--cluster-yes"]);
        let jobs: String = (0..JOBS)
            .map(|number| {
                let id = format!("{round}-{number}");
                format!(
                    "{}\n",
                    serde_json::json!({"script": "1", "type": "osis", "id": id})
                )
            })
            .collect();
        ground.file("jobs.jsonl", jobs);
        let enqueues = ground.start(&within(
            &["job", "enqueue", "--jsonl", "jobs.jsonl"],
            &namespace,
        ));
        let moved = reshard.output().unwrap();
        assert!(moved.status.success(), "{moved:?}");
        enqueues.ended().ok();
        cluster.settle().await;
        for number in 0..JOBS {
            let id = format!("{round}-{number}");
            let job = ground
                .run(&within(&["job", "wait", &id, "--json"], &namespace))
                .ok()
                .json();
            assert_eq!(
                (&job["attempts"], &job["lost"]),
                (&json("1"), &json("0")),
                "{job}"
            );
        }
    }
    worker.stop();
}
