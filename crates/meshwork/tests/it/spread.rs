//! Spread queues: jobs go to the part of their key, also while the number of parts changes and at each step of a change.

use std::collections::{BTreeMap, BTreeSet};

use meshwork::context::{ContextHandle, ContextLayout, Identity, Node, new_key};
use meshwork::spread::{Spread, SpreadError, SpreadLayout, SpreadName};
use meshwork::{Client, Job, JobId, JobRequest};
use meshwork_broker::Broker;
use meshwork_broker::conn::{Conn, Target, TlsFiles};
use meshwork_broker::context::{Commit, Database};
use meshwork_model::access::{Object, Operation};
use meshwork_model::keys::context::{ContextId, ContextKeys};
use meshwork_model::keys::hero::JobKeys;
use meshwork_test_servers::servers::{RealCluster, RealServer};
use serde::{Deserialize, Serialize};

/// A node with an actor.
struct World {
    node: Node,
    me: Identity,
    _server: Option<RealServer>,
}

impl World {
    async fn over(server: Option<RealServer>) -> Self {
        let conn = match &server {
            None => Conn::embedded(&meshwork_embedded::Handle::in_memory()),
            Some(server) => {
                let target = Target::parse(&server.url(), TlsFiles::default()).unwrap();
                Conn::open(&target, &Default::default()).await.unwrap()
            }
        };
        Self::of(Broker::new(conn, JobKeys::default()), server).await
    }

    async fn of(broker: Broker, server: Option<RealServer>) -> Self {
        let node = Node::of(&broker);
        let key = new_key();
        node.trust(key.public(), None).await.unwrap();
        let me = node.identify(key).await.unwrap();
        Self {
            node,
            me,
            _server: server,
        }
    }

    async fn new() -> Self {
        Self::over(None).await
    }

    async fn everywhere() -> Vec<Self> {
        let mut worlds = vec![Self::new().await];
        let servers = [RealServer::redis().start(), RealServer::valkey().start()];
        for server in servers.into_iter().flatten() {
            worlds.push(Self::over(Some(server)).await);
        }
        worlds
    }

    async fn spread_over(&self, parts: usize) -> SpreadLayout {
        let spread = self.node.spread_queue(&self.me, &name(), parts).await;
        spread.unwrap()
    }

    async fn open(&self) -> Spread {
        Spread::open(&self.node, &self.me, name()).await.unwrap()
    }

    async fn part(&self, id: ContextId) -> Client {
        let part: ContextHandle = self.node.context(id).await.unwrap();
        let needs = (Object::Queue, Operation::Pop);
        part.client(&self.me, needs.0, needs.1).await.unwrap()
    }

    /// Cancels the waiting jobs of these parts, which ends them.
    async fn end_all(&self, layout: &SpreadLayout) {
        for id in &layout.parts {
            let client = self.part(*id).await;
            for job in ids_in(&client).await {
                client.cancel(&job).await.unwrap();
            }
        }
    }

    /// Returns the unfinished jobs of all parts, by part, the oldest first.
    async fn open_jobs(&self, layout: &SpreadLayout) -> BTreeMap<u32, Vec<JobId>> {
        let mut all = BTreeMap::new();
        for id in &layout.parts {
            let jobs = ids_in(&self.part(*id).await).await;
            if !jobs.is_empty() {
                all.insert(id.get(), jobs);
            }
        }
        all
    }
}

fn name() -> SpreadName {
    "osis".parse().unwrap()
}

fn job(key: &str) -> JobRequest {
    JobRequest::new("osis".parse().unwrap(), "1").key(key)
}

fn part_in(id: &JobId) -> u32 {
    ContextKeys::named_in(id.as_str()).unwrap().get()
}

/// Returns the ids in the queue, the oldest first.
async fn ids_in(client: &Client) -> Vec<JobId> {
    let queue = client.broker().keys().parse_work_queue("osis").unwrap();
    let mut command = redis::cmd("LRANGE");
    command.arg(&queue).arg(0).arg(-1);
    let mut conn = client.broker().conn().clone();
    let ids: Vec<String> = command.query_async(&mut conn).await.unwrap();
    ids.into_iter().rev().map(JobId::foreign).collect()
}

#[tokio::test]
async fn jobs_of_a_key_share_a_part_and_others_go_to_the_shorter_one() {
    for world in World::everywhere().await {
        let layout = world.spread_over(4).await;
        assert_eq!(
            (layout.parts.len(), layout.active, layout.previous),
            (4, 4, None)
        );
        let spread = world.open().await;
        for key in ["a", "b", "c"] {
            let mut parts = BTreeSet::new();
            for _ in 0..5 {
                parts.insert(part_in(&spread.enqueue(job(key)).await.unwrap()));
            }
            assert_eq!(parts.len(), 1);
        }
        let named = |n: u32| {
            JobRequest::new("osis".parse().unwrap(), "1").unique(
                format!("u{n}"),
                meshwork::Until::Done,
                meshwork::OnDuplicate::Keep,
            )
        };
        let (one, two) = (
            spread.enqueue(named(1)).await,
            spread.enqueue(named(1)).await,
        );
        assert_eq!(one.unwrap(), two.unwrap());
        world.end_all(&layout).await;
        let mut counts = BTreeMap::new();
        for _ in 0..400 {
            let plain = JobRequest::new("osis".parse().unwrap(), "1");
            let id = spread.enqueue(plain).await.unwrap();
            *counts.entry(part_in(&id)).or_insert(0) += 1;
        }
        assert_eq!(counts.len(), 4, "{counts:?}");
        assert!(
            counts.values().all(|n| (90..=110).contains(n)),
            "{counts:?}"
        );
    }
}

/// Both ways of enqueueing, before the change, while keys move, and after.
#[tokio::test]
async fn keys_stay_in_their_old_parts_while_they_have_jobs() {
    for world in World::everywhere().await {
        let before = world.spread_over(2).await;
        let (early, keys) = (world.open().await, 0..40);
        let keys: Vec<_> = keys.map(|n| format!("key {n}")).collect();
        let mut places = BTreeMap::new();
        for key in &keys {
            let id = early.enqueue(job(key)).await.unwrap();
            places.insert(key.clone(), part_in(&id));
        }
        let after = world.spread_over(5).await;
        assert_eq!((after.active, after.previous), (5, Some(2)));
        assert_eq!(after.generation, before.generation + 1);
        // `early` still has the layout before; `late` has the new one.
        let late = world.open().await;
        for spread in [&early, &late] {
            let answers = spread.enqueue_all(keys.iter().map(|key| job(key))).await;
            for (key, id) in keys.iter().zip(answers.unwrap()) {
                assert_eq!(part_in(&id.unwrap()), places[key], "{key}");
            }
            let free = spread.enqueue(job("a key without jobs")).await.unwrap();
            let place = after.place("a key without jobs").part;
            assert_eq!(part_in(&free), after.parts[place].get());
        }
        let more = world.node.spread_queue(&world.me, &name(), 6).await;
        let Err(SpreadError::Moving { keys: moving, .. }) = more else {
            panic!("{more:?}");
        };
        let moves = |key: &&String| after.place(key).old.is_some();
        assert_eq!(moving, keys.iter().filter(moves).count());
        world.end_all(&after).await;
        for spread in [&early, &late] {
            for key in &keys {
                let id = spread.enqueue(job(key)).await.unwrap();
                let part = after.parts[after.place(key).part].get();
                assert_eq!(part_in(&id), part, "{key}");
            }
        }
        assert_eq!(world.node.settle_spread(&name()).await.unwrap(), 0);
        let settled = world.node.spread(&name()).await.unwrap().unwrap();
        assert_eq!(settled.previous, None);
        assert_eq!(settled.generation, after.generation);
        // Fewer parts again: the others keep their jobs.
        let fewer = world.spread_over(2).await;
        assert_eq!((fewer.active, fewer.parts.len()), (2, 5));
        let id = early.enqueue(job("another")).await.unwrap();
        assert!(
            fewer.parts[..2]
                .iter()
                .any(|part| part.get() == part_in(&id))
        );
    }
}

/// A random history of two clients, each with the layout that it knows, of ends of jobs, and of changes that stop after any
/// step: a key never has unfinished jobs in two parts, and none is lost.
#[tokio::test]
async fn no_history_has_a_key_in_two_parts() {
    for seed in 0..12_u64 {
        history(seed).await;
    }
}

async fn history(seed: u64) {
    let world = World::new().await;
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut draw = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    world.spread_over(2).await;
    let clients = [world.open().await, world.open().await];
    let mut key_of: BTreeMap<JobId, String> = BTreeMap::new();
    for step in 0..60 {
        match draw(8) {
            0..=3 => {
                let key = format!("k{}", draw(6));
                let client = &clients[draw(2) as usize];
                let id = client.enqueue(job(&key)).await.unwrap();
                key_of.insert(id, key);
            }
            4 | 5 => {
                let layout = world.node.spread(&name()).await.unwrap().unwrap();
                let open = world.open_jobs(&layout).await.into_values().flatten();
                let open: Vec<_> = open.collect();
                if !open.is_empty() {
                    let id = &open[draw(open.len() as u64) as usize];
                    let part = ContextKeys::named_in(id.as_str()).unwrap();
                    world.part(part).await.cancel(id).await.unwrap();
                    key_of.remove(id);
                }
            }
            6 => match world
                .node
                .spread_queue(&world.me, &name(), draw(6) as usize + 1)
                .await
            {
                Ok(_) | Err(SpreadError::Moving { .. }) => {}
                Err(error) => panic!("seed {seed}: {error}"),
            },
            _ => stop_before_the_commit(&world).await,
        }
        let layout = world.node.spread(&name()).await.unwrap().unwrap();
        let open = world.open_jobs(&layout).await;
        let mut places: BTreeMap<&String, BTreeSet<u32>> = BTreeMap::new();
        for (part, ids) in &open {
            for id in ids {
                places.entry(&key_of[id]).or_default().insert(*part);
            }
        }
        let apart: Vec<_> = places.iter().filter(|(_, parts)| parts.len() > 1).collect();
        assert!(apart.is_empty(), "seed {seed}, step {step}: {apart:?}");
        let total: usize = open.values().map(Vec::len).sum();
        assert_eq!(total, key_of.len(), "seed {seed}, step {step}");
    }
}

/// Leaves a change as a process does that was killed after it has added a part.
async fn stop_before_the_commit(world: &World) {
    let layout = world.node.spread(&name()).await.unwrap().unwrap();
    if layout.parts.len() > 6 {
        return;
    }
    let part = world
        .node
        .create_context(&world.me, None, Some(ContextLayout::Prefix));
    let mut more = layout.clone();
    more.parts.push(part.await.unwrap().id());
    let (key, texts) = ("mw:spreads", [layout.to_string(), more.to_string()]);
    let commit = Commit::default()
        .is(key, "osis", texts[0].as_bytes())
        .set(key, [("osis", texts[1].as_str())]);
    let done = world.node.store().commit(Database::Node, &commit).await;
    assert!(done.unwrap().is_done());
}

#[tokio::test]
async fn what_needs_one_part_is_refused_by_name() {
    let world = World::new().await;
    let missing = Spread::open(&world.node, &world.me, name()).await;
    assert!(matches!(missing, Err(SpreadError::NotSpread(_))));
    for parts in [0, 65] {
        let refused = world.node.spread_queue(&world.me, &name(), parts).await;
        assert!(matches!(refused, Err(SpreadError::PartCount(_))));
    }
    let layout = world.spread_over(4).await;
    let spread = world.open().await;
    let firsts: Vec<_> = ["a", "b", "c", "d", "e"].into_iter().map(job).collect();
    let firsts = spread.enqueue_all(firsts).await.unwrap();
    let firsts: Vec<JobId> = firsts.into_iter().map(Result::unwrap).collect();
    let other = firsts.iter().find(|id| part_in(id) != part_in(&firsts[0]));
    let other = other.unwrap();
    // Without a key, a job follows its prerequisites.
    let plain = || JobRequest::new("osis".parse().unwrap(), "1");
    let follows = spread.enqueue(plain().depends_on(firsts[0].clone())).await;
    assert_eq!(part_in(&follows.unwrap()), part_in(&firsts[0]));
    spread
        .enqueue(job("a").depends_on(firsts[0].clone()))
        .await
        .unwrap();
    let apart = [
        plain()
            .depends_on(firsts[0].clone())
            .depends_on(other.clone()),
        job("a").depends_on(other.clone()),
    ];
    for job in apart {
        let refused = spread.enqueue(job).await;
        assert!(
            matches!(refused, Err(SpreadError::Apart { .. })),
            "{refused:?}"
        );
    }
    let gate = spread
        .enqueue(plain().depends_on(JobId::foreign("gate".to_owned())))
        .await;
    assert!(matches!(gate, Err(SpreadError::NoPart { .. })), "{gate:?}");
    let before = world.open_jobs(&layout).await;
    let refused = [
        plain().id(firsts[0].clone()),
        plain().batch("b1".parse().unwrap()),
        plain().instance("1".parse().unwrap()),
    ];
    for job in refused {
        let refused = spread.enqueue_all([job]).await;
        assert!(
            matches!(refused, Err(SpreadError::Option { .. })),
            "{refused:?}"
        );
    }
    let elsewhere = spread.enqueue(plain().group("io".parse().unwrap())).await;
    assert!(
        matches!(elsewhere, Err(SpreadError::OtherQueue { .. })),
        "{elsewhere:?}"
    );
    assert_eq!(world.open_jobs(&layout).await, before);
}

#[tokio::test]
async fn contexts_become_parts_by_their_numbers() {
    let world = World::new().await;
    let mut ids = Vec::new();
    for n in [21, 22, 23] {
        let id = ContextId::new(n).unwrap();
        let made = world
            .node
            .create_context(&world.me, Some(id), Some(ContextLayout::Prefix));
        made.await.unwrap();
        ids.push(id);
    }
    let over = async |ids: &[ContextId]| world.node.spread_over(&world.me, &name(), ids).await;
    assert_eq!(over(&ids[..2]).await.unwrap().active, 2);
    let layout = over(&ids).await.unwrap();
    assert_eq!((layout.active, &layout.parts), (3, &ids));
    world.node.settle_spread(&name()).await.unwrap();
    let swapped = over(&[ids[1], ids[0], ids[2]]).await;
    assert!(
        matches!(swapped, Err(SpreadError::NoPart { .. })),
        "{swapped:?}"
    );
    let db = world
        .node
        .create_context(&world.me, ContextId::new(3), Some(ContextLayout::Db));
    let db = db.await.unwrap().id();
    let refused = over(&[ids[0], ids[1], ids[2], db]).await;
    assert!(
        matches!(refused, Err(SpreadError::Layout(_))),
        "{refused:?}"
    );
    let key = new_key();
    world.node.trust(key.public(), None).await.unwrap();
    let stranger = world.node.identify(key).await.unwrap();
    let denied = world.node.spread_queue(&stranger, &name(), 8).await;
    assert!(matches!(denied, Err(SpreadError::Context(_))), "{denied:?}");
    let denied = Spread::open(&world.node, &stranger, name()).await;
    assert!(matches!(denied, Err(SpreadError::Context(_))));
}

/// Calls run in tasks of their own, as those of web servers.
#[tokio::test]
async fn calls_can_be_spawned() {
    let world = World::new().await;
    world.spread_over(2).await;
    let spread = world.open().await;
    let one = spread.clone();
    let one = tokio::spawn(async move { one.enqueue(job("a")).await });
    let all = tokio::spawn(async move { spread.enqueue_all([job("a"), job("b")]).await });
    one.await.unwrap().unwrap();
    assert_eq!(all.await.unwrap().unwrap().len(), 2);
}

#[derive(Debug, Serialize, Deserialize, Job)]
#[job(output = u64)]
struct Double {
    n: u64,
}

async fn double(job: Double) -> Result<u64, meshwork::JobError> {
    Ok(job.n * 2)
}

/// The same handler and worker in all parts, in one pool.
#[tokio::test]
async fn typed_jobs_run_in_all_parts() {
    let world = World::new().await;
    let name: SpreadName = "double".parse().unwrap();
    let layout = world.node.spread_queue(&world.me, &name, 3).await.unwrap();
    let pool = meshwork::WorkerPool::open(&world.node, &[], 4)
        .await
        .unwrap();
    let mut workers = Vec::new();
    for id in &layout.parts {
        let part = world.node.context(*id).await.unwrap().over(pool.node());
        let client = part
            .client(&world.me, Object::Queue, Operation::Pop)
            .await
            .unwrap();
        let worker = meshwork::Worker::new(&client).job(double).pool(&pool);
        workers.push(worker.start().await.unwrap());
    }
    let spread = Spread::open(&world.node, &world.me, name).await.unwrap();
    let handles = spread
        .enqueue_all((0..30).map(|n| Double { n }))
        .await
        .unwrap();
    for (n, handle) in handles.into_iter().enumerate() {
        assert_eq!(handle.unwrap().result().await.unwrap(), n as u64 * 2);
    }
    for worker in workers {
        worker.stop().await;
    }
}

#[tokio::test]
async fn a_context_is_one_part() {
    let world = World::new().await;
    let ids = world.spread_over(2).await.parts;
    let twice = [ids[0], ids[1], ids[0]];
    let refused = world.node.spread_over(&world.me, &name(), &twice).await;
    assert!(matches!(refused, Err(SpreadError::Twice(id)) if id == ids[0]));
    assert_eq!(world.node.spread(&name()).await.unwrap().unwrap().active, 2);
}

/// A failed node holds back only the jobs whose keys have their part there.
#[tokio::test]
async fn jobs_go_to_the_parts_of_live_nodes() {
    let options = RealServer::redis().args(&["--cluster-require-full-coverage", "no"]);
    let Some(mut cluster) = RealCluster::start(options, 0).await else {
        return;
    };
    let target = Target::parse(&cluster.url(), TlsFiles::default()).unwrap();
    let keys = JobKeys::new("{hero}".parse().unwrap());
    let conn = Conn::open(&target, keys.namespace()).await.unwrap();
    let world = World::of(Broker::new(conn, keys), None).await;
    world.spread_over(6).await;
    let before = world.open().await;
    let host = format!("127.0.0.1:{}", cluster.nodes()[0].port());
    cluster.node_mut(0).kill9();
    let free = || JobRequest::new("osis".parse().unwrap(), "1");
    for spread in [before, world.open().await] {
        for _ in 0..20 {
            spread.enqueue(free()).await.unwrap();
        }
        let mut keys = (0..50).map(|key| key.to_string());
        let refused = loop {
            let key = keys.next().expect("a third of the keys is on that node");
            if let Err(error) = spread.enqueue(job(&key)).await {
                break error.to_string();
            }
        };
        assert!(refused.contains(&host), "{refused}");
    }
}
