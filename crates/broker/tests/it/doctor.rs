//! Findings of the doctor about real servers with bad and with good settings.

use std::path::Path;

use meshwork_broker::conn::{Conn, Target, TlsFiles};
use meshwork_broker::doctor::{Finding, Level, examine, rights};
use meshwork_model::keys::context::{ContextKeys, ContextLayout, NodeKeys};
use meshwork_model::keys::hero::JobKeys;
use meshwork_model::keys::table::KeyTable;
use meshwork_model::name::Namespace;
use meshwork_test_servers::servers::{RealCluster, RealServer, ServerOptions};

async fn look(target: &Target, namespace: &str) -> Vec<Finding> {
    let namespace: Namespace = namespace.parse().unwrap();
    examine(target, &namespace).await.unwrap()
}

async fn findings(url: &str, namespace: &str) -> Vec<Finding> {
    look(&Target::parse(url, TlsFiles::default()).unwrap(), namespace).await
}

/// The one finding of a check.
fn of<'a>(findings: &'a [Finding], check: &str) -> &'a Finding {
    let mut found = findings.iter().filter(|finding| finding.check == check);
    let one = found
        .next()
        .unwrap_or_else(|| panic!("nothing about {check}: {findings:?}"));
    assert!(found.next().is_none(), "{check} twice: {findings:?}");
    // Whatever is not as it should be comes with a reason and a remedy.
    assert_eq!(one.why.is_some(), one.level > Level::Ok, "{one:?}");
    assert_eq!(one.remedy.is_some(), one.level > Level::Ok, "{one:?}");
    one
}

/// Checks one finding, its level and what its remedy says.
fn says(findings: &[Finding], check: &str, level: Level, remedy: &str) {
    let one = of(findings, check);
    assert_eq!(one.level, level, "{one:?}");
    let said = one.remedy.as_deref().unwrap_or_default();
    assert!(said.contains(remedy), "{one:?}");
}

fn careful(options: ServerOptions) -> ServerOptions {
    options
        .append_only()
        .args(&["--maxmemory", "512mb", "--hash-max-listpack-value", "1024"])
}

#[tokio::test]
async fn a_good_server_has_no_problem() {
    for options in [RealServer::redis(), RealServer::valkey()] {
        let Some(server) = careful(options).password("sesame").start() else {
            return;
        };
        let findings = findings(&server.url(), "hero").await;
        let worse: Vec<_> = findings
            .iter()
            .filter(|one| one.level > Level::Hint)
            .collect();
        assert!(worse.is_empty(), "{worse:?}");
        for check in [
            "version",
            "eviction",
            "memory",
            "hash-max-listpack-value",
            "persistence",
            "rights",
            "security",
            "clients",
            "latency",
            "clock",
        ] {
            assert_eq!(of(&findings, check).level, Level::Ok, "{findings:?}");
        }
        says(&findings, "replication", Level::Hint, "REPLICAOF");
    }
}

#[tokio::test]
async fn damage_in_contexts_is_named() {
    let Some(server) = careful(RealServer::redis()).start() else {
        return;
    };
    let say = |words: &[&str]| drop(server.say::<redis::Value>(words).unwrap());
    let record = ["HSET", "{ctx:7}:context:7", "admins", "[1]"];
    say(&record);
    say(&["HSET", "mw:contexts", "7", "prefix"]);
    let before = findings(&server.url(), "hero").await;
    assert!(
        before.iter().all(|one| !one.check.contains("context")),
        "{before:?}"
    );
    say(&["HSET", "mw:contexts", "56", "garbage", "9", "prefix"]);
    say(&["HSET", "{ctx:9}:context:9", "admins", "garbage"]);
    say(&["SET", "{ctx:7}:msg_out", "x"]);
    let entry = [
        "what",
        "end damaged",
        "object",
        "message:1:5",
        "after",
        "the field `timeout`",
    ];
    say(&[&["XADD", "{ctx:7}:mw:audit", "*"], &entry[..]].concat());
    let found = findings(&server.url(), "hero").await;
    says(&found, "contexts", Level::Problem, "RENAME");
    let what = &of(&found, "contexts").what;
    for part in ["2, such as", "context 56", "`admins`"] {
        assert!(what.contains(part), "{what}");
    }
    says(&found, "keys", Level::Problem, "RENAME {ctx:7}:msg_out ");
    says(&found, "damaged messages", Level::Warning, "context audit");
    let what = &of(&found, "damaged messages").what;
    assert!(
        what.contains("message:1:5 of context 7 (the field `timeout`)"),
        "{what}"
    );
}

/// Doctor says for each way to sync what a crash may lose.
#[tokio::test]
async fn the_promise_of_a_server_is_stated() {
    for options in [RealServer::redis(), RealServer::valkey()] {
        let Some(server) = options.append_only().start() else {
            return;
        };
        for (sync, pauses, promise) in [
            ("always", "no", "loses no answered write"),
            ("always", "yes", "except while the file is rewritten"),
            (
                "everysec",
                "no",
                "kill -9 of the server, or a power failure, may lose the last 2 s",
            ),
        ] {
            for (name, value) in [("appendfsync", sync), ("no-appendfsync-on-rewrite", pauses)] {
                server.say::<()>(&["CONFIG", "SET", name, value]).unwrap();
            }
            let all = findings(&server.url(), "hero").await;
            let one = of(&all, "persistence");
            assert!(one.what.contains(promise), "{one:?}");
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let all = look(&Target::Directory(dir.path().join("data")), "hero").await;
    let one = of(&all, "persistence");
    assert!(
        one.what.contains("kill -9 loses no answered write"),
        "{one:?}"
    );
}

/// Scripts only say that some key is of the wrong kind.
#[tokio::test]
async fn a_key_of_another_kind_is_named() {
    let Some(server) = careful(RealServer::redis()).start() else {
        return;
    };
    server
        .say::<()>(&["ZADD", "hero:q:lease", "1", "j"])
        .unwrap();
    let nothing = findings(&server.url(), "hero").await;
    assert!(nothing.iter().all(|one| one.check != "keys"), "{nothing:?}");
    server.say::<()>(&["LPUSH", "hero:q:config", "x"]).unwrap();
    let all = findings(&server.url(), "hero").await;
    says(&all, "keys", Level::Problem, "RENAME hero:q:config");
    let other = findings(&server.url(), "other").await;
    assert!(other.iter().all(|one| one.check != "keys"), "{other:?}");
}

#[tokio::test]
async fn a_key_of_another_kind_is_named_for_each_name() {
    let Some(server) = careful(RealServer::redis()).start() else {
        return;
    };
    let say = |words: &[&str]| drop(server.say::<redis::Value>(words).unwrap());
    say(&["HSET", "{ctx:7}:context:7", "admins", "[1]"]);
    say(&["HSET", "mw:contexts", "7", "prefix"]);
    let context = ContextKeys::new("7".parse().unwrap(), ContextLayout::Prefix);
    for table in [
        JobKeys::default().table(),
        JobKeys::of_context(context).table(),
        KeyTable::of_node(NodeKeys::PLAIN),
    ] {
        let rows = table.rows().iter();
        // Values that were moved away have any type.
        let typed = rows.filter(|row| row.kinds.len() < 6);
        for row in typed.filter(|row| row.key != "mw:contexts") {
            let key = match row.key.ends_with(':') {
                true => format!("{}odd", row.key),
                false => row.key.clone(),
            };
            // A value of a type that no key of that name has. `PFADD` makes a string.
            match row.kinds.contains(&"string") {
                true => say(&["SADD", &key, "x"]),
                false => say(&["PFADD", &key, "x"]),
            }
            let all = findings(&server.url(), "hero").await;
            says(&all, "keys", Level::Problem, &format!("RENAME {key} "));
            say(&["DEL", &key]);
        }
    }
}

#[tokio::test]
async fn bad_settings_are_told_with_what_mends_them() {
    let options = RealServer::redis().max_memory_policy("allkeys-lru");
    let Some(server) = options.args(&["--maxmemory", "500kb"]).start() else {
        return;
    };
    let all = findings(&server.url(), "hero").await;
    says(
        &all,
        "eviction",
        Level::Problem,
        "CONFIG SET maxmemory-policy noeviction",
    );
    says(
        &all,
        "persistence",
        Level::Problem,
        "CONFIG SET appendonly yes",
    );
    says(&all, "memory", Level::Warning, "CONFIG SET maxmemory");
    says(
        &all,
        "hash-max-listpack-value",
        Level::Hint,
        "hash-max-listpack-value 1024",
    );

    server
        .say::<()>(&["CONFIG", "SET", "save", "3600 1"])
        .unwrap();
    server
        .say::<()>(&["CONFIG", "SET", "maxmemory", "0"])
        .unwrap();
    server
        .say::<()>(&["CONFIG", "SET", "min-replicas-to-write", "1"])
        .unwrap();
    let all = findings(&server.url(), "hero").await;
    says(
        &all,
        "persistence",
        Level::Warning,
        "CONFIG SET appendonly yes",
    );
    says(&all, "memory", Level::Hint, "CONFIG SET maxmemory");
    says(
        &all,
        "replication",
        Level::Problem,
        "min-replicas-to-write 0",
    );
    // What the remedies say is what the server takes.
    for words in [
        ["maxmemory-policy", "noeviction"],
        ["hash-max-listpack-value", "1024"],
        ["appendonly", "yes"],
        ["min-replicas-to-write", "0"],
        ["appendfsync", "no"],
    ] {
        server
            .say::<()>(&["CONFIG", "SET", words[0], words[1]])
            .unwrap();
    }
    let all = findings(&server.url(), "hero").await;
    assert_eq!(of(&all, "eviction").level, Level::Ok);
    assert_eq!(of(&all, "hash-max-listpack-value").level, Level::Ok);
    says(
        &all,
        "persistence",
        Level::Warning,
        "CONFIG SET appendfsync everysec",
    );
}

#[tokio::test]
async fn few_clients_are_left() {
    let Some(server) = RealServer::redis().args(&["--maxclients", "10"]).start() else {
        return;
    };
    let all = findings(&server.url(), "hero").await;
    assert_eq!(of(&all, "clients").level, Level::Ok);
    let other = redis::Client::open(server.url()).unwrap();
    let _others: Vec<_> = (0..8).map(|_| other.get_connection().unwrap()).collect();
    let all = findings(&server.url(), "hero").await;
    says(&all, "clients", Level::Warning, "CONFIG SET maxclients");
}

/// A user who lacks rights, and the same one after the remedy.
#[tokio::test]
async fn missing_rights_are_named_and_given() {
    let Some(server) = RealServer::redis().start() else {
        return;
    };
    let allow = [
        "ACL", "SETUSER", "ann", "on", ">x", "~hero:*", "+@all", "-xadd", "-info", "-config",
    ];
    server.say::<()>(&allow).unwrap();
    let url = server.url().replacen("redis://", "redis://ann:x@", 1);
    let all = findings(&url, "hero").await;
    let rule = rights(&"hero".parse().unwrap());
    says(
        &all,
        "rights",
        Level::Problem,
        &format!("ACL SETUSER ann {rule}"),
    );
    let what = &of(&all, "rights").what;
    assert!(what.contains(" info xadd for hero:*"), "{what}");
    says(&all, "settings", Level::Hint, "CONFIG GET");
    // The rights are for other keys.
    let all = findings(&url, "other").await;
    assert!(of(&all, "rights").what.contains(" hset "), "{all:?}");

    let remedy = ["ACL", "SETUSER", "ann"].into_iter().chain(rule.split(' '));
    server.say::<()>(&Vec::from_iter(remedy)).unwrap();
    let all = findings(&url, "hero").await;
    assert_eq!(of(&all, "rights").level, Level::Ok);
    server
        .say::<()>(&["ACL", "SETUSER", "ann", "-eval"])
        .unwrap();
    let all = findings(&url, "hero").await;
    assert!(of(&all, "rights").what.contains(" eval "), "{all:?}");
}

#[tokio::test]
async fn a_replica_is_not_the_place() {
    let Some(master) = RealServer::redis().start() else {
        return;
    };
    let port = master.port().to_string();
    let options = RealServer::redis().args(&["--replicaof", "127.0.0.1", &port]);
    let replica = options.start().unwrap();
    let all = findings(&replica.url(), "hero").await;
    says(
        &all,
        "replication",
        Level::Problem,
        &format!("redis://127.0.0.1:{port}"),
    );
}

#[tokio::test]
async fn a_cluster_wants_a_hash_tag() {
    let Some(cluster) = RealCluster::start(RealServer::redis(), 0).await else {
        return;
    };
    for url in [cluster.url(), cluster.nodes()[1].url()] {
        let all = findings(&url, "hero").await;
        says(&all, "cluster", Level::Problem, "--namespace '{hero}'");
        let all = findings(&url, "{hero}").await;
        assert_eq!(of(&all, "cluster").level, Level::Ok);
        assert_eq!(of(&all, "rights").level, Level::Ok);
    }
}

/// All other nodes are examined too, and one that is gone costs the time of one call.
#[tokio::test]
async fn each_node_of_a_cluster_is_examined() {
    let options = careful(RealServer::redis()).args(&["--cluster-require-full-coverage", "no"]);
    let Some(mut cluster) = RealCluster::start(options, 0).await else {
        return;
    };
    let url = cluster.url();
    assert!(
        findings(&url, "{hero}")
            .await
            .iter()
            .all(|one| one.check != "nodes")
    );
    // {hero} is in the slot 8184, of the second node.
    let last = &cluster.nodes()[2];
    let host = format!("127.0.0.1:{}", last.port());
    last.say::<()>(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"])
        .unwrap();
    let all = findings(&url, "{hero}").await;
    let bad: Vec<_> = all
        .iter()
        .filter(|one| one.level == Level::Problem)
        .collect();
    assert_eq!(bad.len(), 1, "{bad:?}");
    assert_eq!(bad[0].check, "eviction");
    assert!(bad[0].what.contains(&host), "{bad:?}");
    cluster.node_mut(2).kill9();
    let all = findings(&url, "{hero}").await;
    says(&all, "nodes", Level::Problem, "CLUSTER FAILOVER");
    assert!(of(&all, "nodes").what.contains(&host), "{all:?}");
}

#[tokio::test]
async fn a_data_directory() {
    let dir = tempfile::tempdir().unwrap();
    let place = |path: &Path| Target::Directory(path.to_owned());
    let all = look(&place(dir.path()), "hero").await;
    let checks: Vec<_> = all.iter().map(|one| (one.check, one.level)).collect();
    let expected = [
        "directory",
        "owner",
        "size",
        "version",
        "eviction",
        "persistence",
        "clients",
        "latency",
    ];
    assert_eq!(checks, expected.map(|check| (check, Level::Ok)));
    // The same from another process, as far as the owner can tell.
    let _owner = Conn::open(&place(dir.path()), &"hero".parse().unwrap())
        .await
        .unwrap();
    assert_eq!(look(&place(dir.path()), "hero").await.len(), expected.len());
}
