//! Keys of the node that a single server had, on a cluster of three nodes: they are moved once, whenever a process dies.

use futures_util::future::join_all;
use meshwork_broker::conn::{Conn, Target, TlsFiles};
use meshwork_broker::context::{ContextStore, Database};
use meshwork_broker::doctor::{Level, examine};
use meshwork_broker::{Broker, Error};
use meshwork_conformance::faulty::{Faulty, Moment, Plan};
use meshwork_model::keys::context::NodeKeys;
use meshwork_model::keys::hero::JobKeys;
use meshwork_test_servers::servers::{RealCluster, RealServer};

const PEER: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
/// Longer than any test takes, in milliseconds.
const EXPIRES: &str = "3600000";

/// The keys of a node on a single server.
struct Ground {
    cluster: RealCluster,
    target: Target,
    conn: Conn,
    keys: Vec<String>,
}

impl Ground {
    async fn new() -> Option<Self> {
        let cluster = RealCluster::start(RealServer::redis(), 0).await?;
        let target = Target::parse(&cluster.url(), TlsFiles::default()).unwrap();
        let conn = Conn::open(&target, &"{hero}".parse().unwrap()).await;
        let (conn, keys) = (conn.unwrap(), Vec::new());
        let mut ground = Self {
            cluster,
            target,
            conn,
            keys,
        };
        ground.fill().await;
        Some(ground)
    }

    async fn send<T: redis::FromRedisValue>(&self, words: &[&str]) -> T {
        let mut cmd = redis::cmd(words[0]);
        cmd.arg(&words[1..]);
        let sent = cmd.query_async(&mut self.conn.of_key(words[1])).await;
        sent.unwrap()
    }

    async fn fill(&mut self) {
        let [peer, out, held] = ["", "-out", "-in"].map(|kind| format!("mw:peer{kind}:{PEER}"));
        let writes = [
            &["HSET", "actor:1", "id", "1"][..],
            &["HSET", "actor:2", "id", "2"],
            // A plain client wrote it: the index does not have it.
            &["HSET", "actor:3", "id", "3"],
            &["HSET", "mw:actors", "key1", "1", "key2", "2"],
            &["SET", "mw:id:actor", "3"],
            &["HSET", "mw:contexts", "1", "prefix"],
            &["HSET", "mw:node", "id", PEER],
            &["HSET", "mw:peers", "bob", PEER, "former", ""],
            &["HSET", &peer, "card", "x"],
            &["ZADD", &out, "5", "x"],
            &["ZADD", &held, "5", "x"],
            &["HSET", "mw:mesh-refused", "a/b", "1"],
            &["HSET", "mw:mesh", "owner", "x"],
            &["XADD", "mw:audit", "5-1", "what", "create"],
        ];
        for words in writes {
            self.send::<redis::Value>(words).await;
        }
        self.send::<i64>(&["PEXPIRE", "mw:mesh", EXPIRES]).await;
        self.keys = writes.iter().map(|words| words[1].to_owned()).collect();
    }

    async fn dumps(&self, keys: NodeKeys) -> Vec<Option<Vec<u8>>> {
        let mut dumps = Vec::new();
        for key in &self.keys {
            dumps.push(self.send(&["DUMP", &keys.moved(key)]).await);
        }
        dumps
    }

    async fn clear(&self, keys: NodeKeys) {
        for key in &self.keys {
            self.send::<u64>(&["DEL", &keys.moved(key)]).await;
        }
    }

    /// Reads the registry as another process, over a connection that may break.
    async fn read(&self, plan: Option<Plan>) -> (Faulty, Result<usize, Error>) {
        let faulty = Faulty::new(self.conn.clone(), plan);
        let conn = Conn::new(faulty.clone());
        let store = ContextStore::of(&Broker::new(conn, JobKeys::default()));
        let registry = NodeKeys::TAGGED.contexts();
        let read = store.hash(Database::Node, &registry).await;
        (faulty, read.map(|entries| entries.len()))
    }
}

#[tokio::test]
async fn a_death_between_any_two_commands_loses_nothing() {
    let Some(mut ground) = Ground::new().await else {
        return;
    };
    for moment in [Moment::Before, Moment::After] {
        for first in 0.. {
            let plain = ground.dumps(NodeKeys::PLAIN).await;
            assert!(plain.iter().all(Option::is_some));
            let plan = Plan {
                first,
                times: 1,
                moment,
            };
            let (faulty, broken) = ground.read(Some(plan)).await;
            assert_eq!(ground.read(None).await.1.unwrap(), 1);
            assert_eq!(ground.dumps(NodeKeys::TAGGED).await, plain);
            let expires: u64 = ground.send(&["PTTL", "{mw}:mw:mesh"]).await;
            assert!(expires > 0);
            let left = ground.dumps(NodeKeys::PLAIN).await;
            assert!(left.iter().all(Option::is_none), "{left:?}");
            let moving = NodeKeys::TAGGED.moving();
            assert!(!ground.send::<bool>(&["EXISTS", &moving]).await);
            ground.clear(NodeKeys::TAGGED).await;
            ground.fill().await;
            if faulty.broken() == 0 {
                assert_eq!(broken.unwrap(), 1);
                assert!(first > 50, "{first} commands");
                break;
            }
        }
    }
}

#[tokio::test]
async fn several_processes_move_once() {
    let Some(ground) = Ground::new().await else {
        return;
    };
    let plain = ground.dumps(NodeKeys::PLAIN).await;
    let found = join_all((0..5).map(|_| ground.read(None))).await;
    assert!(found.into_iter().all(|(_, read)| read.unwrap() == 1));
    assert_eq!(ground.dumps(NodeKeys::TAGGED).await, plain);
}

#[tokio::test]
async fn a_diagnosis_names_them_and_own_ones_are_kept_apart() {
    let Some(ground) = Ground::new().await else {
        return;
    };
    let found = async || {
        let found = examine(&ground.target, &"{hero}".parse().unwrap()).await;
        let mut found = found.unwrap().into_iter();
        let found = found.find(|it| it.check == "keys of a single server");
        found.map(|it| (it.level, it.what, it.remedy.unwrap()))
    };
    let plain = ground.dumps(NodeKeys::PLAIN).await;
    let (level, what, remedy) = found().await.unwrap();
    assert_eq!(level, Level::Hint);
    assert!(what.starts_with("4, such as mw:contexts"), "{what}");
    assert!(remedy.contains("moves them"), "{remedy}");
    assert_eq!(ground.dumps(NodeKeys::PLAIN).await, plain);
    assert_eq!(ground.read(None).await.1.unwrap(), 1);
    assert_eq!(found().await, None);
    ground
        .send::<i64>(&["HSET", "mw:contexts", "9", "prefix"])
        .await;
    assert_eq!(ground.read(None).await.1.unwrap(), 1);
    let (level, _, remedy) = found().await.unwrap();
    assert_eq!(level, Level::Warning);
    assert!(remedy.contains("keeps these apart"), "{remedy}");
}

/// Contexts 1 to 12: seven on the first node, three on the second, and two on the third.
#[tokio::test]
async fn a_diagnosis_names_an_uneven_spread() {
    let Some(ground) = Ground::new().await else {
        return;
    };
    let mut found = Vec::new();
    for many in [3, 12] {
        for id in 1..=many {
            let words = ["HSET", "{mw}:mw:contexts", &id.to_string(), "prefix"];
            ground.send::<i64>(&words).await;
        }
        let all = examine(&ground.target, &"{hero}".parse().unwrap()).await;
        let spread = all.unwrap().into_iter();
        found.extend(spread.filter(|it| it.check == "spread of contexts"));
    }
    assert_eq!(
        found.iter().map(|it| it.level).collect::<Vec<_>>(),
        [Level::Ok, Level::Hint]
    );
    let [first, ..] = ground.cluster.nodes() else {
        unreachable!()
    };
    let seven = format!("7 on 127.0.0.1:{}", first.port());
    assert!(found[1].what.contains(&seven), "{:?}", found[1]);
}

#[tokio::test]
async fn a_user_who_may_not_copy_is_refused_and_moves_nothing() {
    let Some(ground) = Ground::new().await else {
        return;
    };
    for node in ground.cluster.nodes() {
        let rules = ["ACL", "SETUSER", "default", "-restore"];
        node.say::<()>(&rules).unwrap();
    }
    let refused = ground.read(None).await.1.unwrap_err().to_string();
    assert!(refused.contains("once as a user with DUMP"), "{refused}");
    let plain = ground.dumps(NodeKeys::PLAIN).await;
    assert!(plain.iter().all(Option::is_some));
}
