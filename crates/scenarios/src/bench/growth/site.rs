//! A fresh Cluster, with contexts that are divided evenly among its nodes.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::{join_all, try_join_all};
use futures_util::stream::{StreamExt, TryStreamExt, iter};
use meshwork::context::{ContextHandle, Identity, Node, new_key};
use meshwork::{Client, MAX_POOL, Worker, WorkerHandle, WorkerPool};
use meshwork_model::access::{Object, Operation};
use meshwork_test_servers::servers::{RealCluster, RealServer};

use super::super::BenchError;
use super::super::ground::ON_DISK;
use super::super::meter::Reading;

/// Namespace of jobs without a context, with the hash tag that a Cluster needs.
const NAMESPACE: &str = "{hero}";
/// Number of workers that start at the same time.
const STARTS: usize = 32;

/// A Cluster with contexts.
pub(super) struct Site {
    // The servers are stopped when this is dropped.
    cluster: RealCluster,
    node: Node,
    me: Arc<Identity>,
    contexts: Vec<ContextHandle>,
}

impl Site {
    /// Starts `nodes` servers and creates the contexts. Each goes to the node with the fewest ones.
    pub(super) async fn start(nodes: usize, contexts: usize) -> Result<Self, BenchError> {
        let options = RealServer::redis().args(&ON_DISK);
        let cluster = RealCluster::start_masters_for("bench", options, nodes).await;
        let cluster = cluster.ok_or(BenchError::Missing("redis"))?;
        let builder = Client::builder().url(cluster.url()).namespace(NAMESPACE);
        let (node, key) = (Node::of(builder.connect().await?.broker()), new_key());
        node.trust(key.public(), None).await?;
        let mut site = Self {
            me: Arc::new(node.identify(key).await?),
            contexts: Vec::with_capacity(contexts),
            cluster,
            node,
        };
        for _ in 0..contexts {
            let created = site.node.create_context(&*site.me, None, None).await?;
            site.contexts.push(created);
        }
        site.check().await?;
        Ok(site)
    }

    /// Fails unless the numbers of contexts on two nodes differ by one at most.
    async fn check(&self) -> Result<(), BenchError> {
        let slots = self.node.slots().await?;
        let slots = slots.ok_or_else(|| BenchError::Odd("the servers are no Cluster".into()))?;
        let mut loads: BTreeMap<_, usize> = slots.nodes().map(|node| (node, 0)).collect();
        for context in &self.contexts {
            let node = slots.node_of(context.keys().prefix()).unwrap_or_default();
            *loads.entry(node).or_default() += 1;
        }
        let (least, most) = (loads.values().min(), loads.values().max());
        match (loads.len(), least, most) {
            (nodes, Some(least), Some(most))
                if nodes == self.cluster.nodes().len() && most - least <= 1 =>
            {
                Ok(())
            }
            _ => Err(BenchError::Odd(format!(
                "contexts are spread unevenly: {loads:?}"
            ))),
        }
    }

    /// Returns a client for each context. They share connections of their own.
    pub(super) async fn clients(&self) -> Result<Vec<Client>, BenchError> {
        let each = self.contexts.iter().map(async |context| {
            let client = context.client(&*self.me, Object::Job, Operation::Create);
            Ok::<_, BenchError>(client.await?)
        });
        try_join_all(each).await
    }

    /// Starts a worker in each context, in as few pools as possible. Returns when all are registered.
    pub(super) async fn work(
        &self,
        slots: usize,
        with: impl Fn(Worker) -> Worker,
    ) -> Result<Vec<WorkerHandle>, BenchError> {
        let mut workers = Vec::with_capacity(self.contexts.len());
        for contexts in self.contexts.chunks(MAX_POOL) {
            let pool = WorkerPool::open(&self.node, contexts, slots).await?;
            let start = contexts.iter().map(|context| {
                let (pool, with) = (pool.clone(), &with);
                async move {
                    let context = context.over(pool.node());
                    let client = context.client(&*self.me, Object::Queue, Operation::Pop);
                    let worker = with(Worker::new(&client.await?));
                    Ok::<_, BenchError>(worker.pool(&pool).start().await?)
                }
            });
            let started = iter(start).buffered(STARTS).try_collect::<Vec<_>>();
            workers.extend(started.await?);
        }
        join_all(workers.iter().map(WorkerHandle::registered)).await;
        Ok(workers)
    }

    /// Reads the counters of each node, in order.
    pub(super) fn read(&self) -> Result<Vec<Reading>, BenchError> {
        self.cluster
            .nodes()
            .iter()
            .map(Reading::of_server)
            .collect()
    }
}
