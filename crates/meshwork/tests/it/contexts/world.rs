//! A node with two contexts, and a transport that fails as if its coordinator were killed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use futures_util::future::BoxFuture;
use meshwork::context::{
    ContextError, ContextHandle, Coordinator, Delivery, Identity, MessageJob, NewMessage, Node,
    Notice, Origin, Parcel, Site, StoreTransport, Transport, new_key,
};
use meshwork_broker::conn::{Conn, Target, TlsFiles};
use meshwork_broker::{Broker, Clock, WaitReplicas};
use meshwork_model::context::{Message, MessageType};
use meshwork_model::keys::context::{ContextId, ContextKeys, ContextLayout, MessageKey};
use meshwork_model::keys::hero::JobKeys;
use meshwork_test_servers::servers::{RealCluster, RealServer};

/// Start of the clock, in milliseconds since 1970.
const START: u64 = 1_700_000_000_000;
/// Longer than the lease of what a coordinator has taken.
pub(super) const LEASE_MS: u64 = 10_001;

/// A node with the contexts 7 and 8, and somebody who is admin of both.
pub(super) struct World {
    server: Option<RealServer>,
    /// Holds the servers.
    _cluster: Option<RealCluster>,
    pub(super) conn: Conn,
    pub(super) node: Node,
    pub(super) me: Identity,
    pub(super) hand: Arc<AtomicU64>,
    layout: Option<ContextLayout>,
}

impl World {
    pub(super) async fn over(server: Option<RealServer>) -> Self {
        Self::in_layout(server, None).await
    }

    async fn in_layout(server: Option<RealServer>, layout: Option<ContextLayout>) -> Self {
        let conn = match &server {
            None => Conn::embedded(&meshwork_embedded::Handle::in_memory()),
            Some(server) => {
                let target = Target::parse(&server.url(), TlsFiles::default()).unwrap();
                Conn::open(&target, &Default::default()).await.unwrap()
            }
        };
        let world = Self::on(conn, layout, None).await;
        Self { server, ..world }
    }

    /// On a cluster of three nodes, each with one of: the context 7, the context 8, and what belongs to none.
    pub(super) async fn on_cluster(cluster: &RealCluster, rule: Option<WaitReplicas>) -> Self {
        let target = Target::parse(&cluster.url(), TlsFiles::default()).unwrap();
        let conn = Conn::open(&target, &"{hero}".parse().unwrap()).await;
        Self::on(conn.unwrap(), Some(ContextLayout::Prefix), rule).await
    }

    async fn on(conn: Conn, layout: Option<ContextLayout>, rule: Option<WaitReplicas>) -> Self {
        let (clock, hand) = Clock::manual(START);
        let broker = Broker::new(conn.clone(), JobKeys::default()).with_clock(clock);
        let node = Node::of(&match rule {
            Some(rule) => broker.acknowledge(rule),
            None => broker,
        });
        let key = new_key();
        node.trust(key.public(), None).await.unwrap();
        let me = node.identify(key).await.unwrap();
        for id in [7, 8] {
            node.create_context(&me, ContextId::new(id), layout)
                .await
                .unwrap();
        }
        Self {
            server: None,
            _cluster: None,
            conn,
            node,
            me,
            hand,
            layout,
        }
    }

    pub(super) fn layout(&self) -> ContextLayout {
        self.layout.unwrap_or(ContextLayout::Db)
    }

    /// The key of a context that has this name; 0: of the node.
    pub(super) fn key(&self, context: u32, name: &str) -> String {
        match self.layout() {
            _ if context == 0 && self.conn.is_cluster() => format!("{{mw}}:{name}"),
            _ if context == 0 => name.to_owned(),
            ContextLayout::Prefix if !name.starts_with("{ctx:") => {
                format!("{{ctx:{context}}}:{name}")
            }
            _ => name.to_owned(),
        }
    }

    /// In both layouts, on each engine, and on a cluster.
    pub(super) async fn everywhere() -> Vec<Self> {
        let mut worlds = Vec::new();
        for layout in ContextLayout::ALL {
            worlds.push(Self::in_layout(None, Some(layout)).await);
            let servers = [RealServer::redis().start(), RealServer::valkey().start()];
            for server in servers.into_iter().flatten() {
                worlds.push(Self::in_layout(Some(server), Some(layout)).await);
            }
        }
        if let Some(cluster) = RealCluster::start(RealServer::redis(), 0).await {
            let world = Self::on_cluster(&cluster, None).await;
            let _cluster = Some(cluster);
            worlds.push(Self { _cluster, ..world });
        }
        worlds
    }

    /// Creates a further context.
    pub(super) async fn add_context(&self, id: u32) -> ContextHandle {
        let created = self
            .node
            .create_context(&self.me, ContextId::new(id), self.layout);
        created.await.unwrap()
    }

    /// A plain command in a context of the world's layout. A word that begins with `@` is the name of a key.
    pub(super) async fn ask<T: redis::FromRedisValue>(&self, context: u32, words: &[&str]) -> T {
        let keys = self.context_keys(context);
        let word = |word: &&str| match word.strip_prefix('@') {
            Some(name) => format!("{}{name}", keys.prefix()),
            None => (*word).to_owned(),
        };
        let words: Vec<_> = words.iter().map(word).collect();
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        let sent = self.sent(keys.prefix(), keys.database(), &words);
        sent.await.unwrap()
    }

    fn context_keys(&self, context: u32) -> ContextKeys {
        ContextKeys::new(ContextId::new(context).unwrap(), self.layout())
    }

    /// A field of a record of a context.
    pub(super) async fn of(&self, context: u32, key: &str, field: &str) -> String {
        let words = ["HGET", &format!("@{key}"), field];
        self.ask::<Option<String>>(context, &words)
            .await
            .unwrap_or_default()
    }

    /// On the embedded engine, and on redis-server and valkey-server where they are there.
    pub(super) async fn all() -> Vec<Self> {
        let servers = [RealServer::redis().start(), RealServer::valkey().start()];
        let mut worlds = vec![Self::over(None).await];
        for server in servers.into_iter().flatten() {
            worlds.push(Self::over(Some(server)).await);
        }
        worlds
    }

    pub(super) fn has_server(&self) -> bool {
        self.server.is_some()
    }

    pub(super) fn pass(&self, ms: u64) {
        self.hand.fetch_add(ms, Ordering::SeqCst);
    }

    pub(super) async fn context(&self, id: u32) -> ContextHandle {
        self.node
            .context(ContextId::new(id).unwrap())
            .await
            .unwrap()
    }

    /// A plain command for a key of a context, the second word.
    pub(super) async fn plain<T: redis::FromRedisValue>(&self, context: u32, words: &[&str]) -> T {
        self.try_plain(context, words).await.unwrap()
    }

    /// The same; `None` if the server does not answer.
    pub(super) async fn try_plain<T: redis::FromRedisValue>(
        &self,
        context: u32,
        words: &[&str],
    ) -> Option<T> {
        let key = words.get(1).map(|key| self.key(context, key));
        let of_node = context == 0 || self.layout() == ContextLayout::Prefix;
        let mut words = words.to_vec();
        if let Some(key) = &key {
            words[1] = key;
        }
        let database = if of_node { 0 } else { context };
        let sent = self.sent(key.as_deref().unwrap_or_default(), database, &words);
        sent.await.ok()
    }

    /// Sends words where this key is.
    async fn sent<T: redis::FromRedisValue>(
        &self,
        key: &str,
        database: u32,
        words: &[&str],
    ) -> redis::RedisResult<T> {
        let mut conn = self.conn.of_key(key).dedicated().await?;
        redis::cmd("SELECT")
            .arg(database)
            .query_async::<()>(&mut conn)
            .await?;
        let mut cmd = redis::Cmd::new();
        for word in words {
            cmd.arg(word);
        }
        cmd.query_async(&mut conn).await
    }

    pub(super) async fn field(&self, database: u32, key: &str, field: &str) -> String {
        self.plain::<Option<String>>(database, &["HGET", key, field])
            .await
            .unwrap_or_default()
    }

    pub(super) async fn list(&self, database: u32, key: &str) -> Vec<String> {
        self.plain(database, &["LRANGE", key, "0", "-1"]).await
    }

    pub(super) async fn send_job(&self) -> MessageKey {
        self.send_jobs(8, 1).await
    }

    /// Sends a message from context 7 with this number of jobs.
    pub(super) async fn send_jobs(&self, to: u32, many: usize) -> MessageKey {
        let job = MessageJob {
            script_type: "v".parse().unwrap(),
            script: "1".to_owned(),
            timeout: None,
            retries: 0,
            env_vars: Default::default(),
            after: Vec::new(),
        };
        let mut new = NewMessage::new(ContextId::new(to).unwrap(), MessageType::Job);
        new.jobs = vec![job; many];
        self.context(7)
            .await
            .send(&self.me, &new)
            .await
            .unwrap()
            .key()
    }

    pub(super) async fn send_text(&self, text: &str) -> MessageKey {
        self.try_send_text(text).await.unwrap()
    }

    pub(super) async fn try_send_text(&self, text: &str) -> Result<MessageKey, ContextError> {
        let mut new = NewMessage::new(ContextId::new(8).unwrap(), MessageType::Chat);
        new.text = text.to_owned();
        let context = self.node.context(ContextId::new(7).unwrap()).await?;
        Ok(context.send(&self.me, &new).await?.key())
    }

    /// All that there is to do, in both contexts.
    pub(super) async fn settle(&self, coordinator: &Coordinator) {
        coordinator.settle().await.unwrap();
    }

    /// A plain runner, which ends the next job of context 8.
    pub(super) async fn run_job(&self) -> String {
        let job: String = self.plain(8, &["RPOP", "queue:v"]).await;
        self.plain::<i64>(8, &["HSET", &job, "status", "started"])
            .await;
        self.plain::<i64>(
            8,
            &[
                "HSET",
                &job,
                "status",
                "finished",
                "result",
                r#"{"rows":"5"}"#,
            ],
        )
        .await;
        job
    }
}

/// Kind of a delivery's failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fails {
    Before,
    After,
}

/// A transport whose first deliveries fail, as if the coordinator were killed there.
pub(super) struct Faulty {
    pub(super) inner: StoreTransport,
    pub(super) fails: Fails,
    pub(super) left: AtomicUsize,
}

impl Transport for Faulty {
    fn deliver<'a>(&'a self, parcel: &'a Parcel) -> BoxFuture<'a, Result<Delivery, ContextError>> {
        Box::pin(async move {
            let broken = self
                .left
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
                    left.checked_sub(1)
                });
            if broken.is_err() {
                return self.inner.deliver(parcel).await;
            }
            if self.fails == Fails::After {
                self.inner.deliver(parcel).await?;
            }
            Err(ContextError::Busy("killed".to_owned()))
        })
    }

    fn cancel<'a>(
        &'a self,
        message: &'a Message,
        origin: &'a Origin,
        to: Site,
    ) -> BoxFuture<'a, Result<Delivery, ContextError>> {
        self.inner.cancel(message, origin, to)
    }

    fn notify<'a>(
        &'a self,
        from: Site,
        origin: &'a Origin,
        notice: &'a Notice,
    ) -> BoxFuture<'a, Result<(), ContextError>> {
        self.inner.notify(from, origin, notice)
    }
}
