//! The clients of an engine: database, transaction, watched keys and subscriptions of each.

use std::collections::{BTreeSet, HashMap};

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::{Protocol, Reply, command::Spec};

/// Greatest number of unread messages of a subscriber, after which it is disconnected. Redis counts bytes (32 MB);
/// this number of small messages is about as much.
pub(crate) const PUSHES_MAX: usize = 32 * 1024;

/// Greatest number of commands between MULTI and EXEC: a client with more is faulty.
pub(crate) const QUEUE_MAX: usize = 1_000_000;

/// One client.
pub(crate) struct Client {
    pub(crate) id: u64,
    pub(crate) db: usize,
    pub(crate) protocol: Protocol,
    pub(crate) name: Bytes,
    /// Name and version of its library, from the client.
    pub(crate) library: [Bytes; 2],
    /// Address for `CLIENT LIST`.
    pub(crate) address: String,
    pub(crate) multi: Option<Queue>,
    pub(crate) watched: Vec<Watched>,
    pub(crate) subscribed: Subscriptions,
    /// `None` when the session is over: it quit, was killed, or read too slowly.
    pushes: Option<mpsc::Sender<Reply>>,
    pub(crate) replies: Replies,
    pub(crate) no_evict: bool,
    pub(crate) since_ms: u64,
    pub(crate) last_ms: u64,
    pub(crate) last_command: &'static str,
}

/// The commands since MULTI.
#[derive(Default)]
pub(crate) struct Queue {
    pub(crate) commands: Vec<(&'static Spec, Vec<Bytes>)>,
    /// True if one of them was refused: EXEC will refuse all.
    pub(crate) broken: bool,
}

/// A key under WATCH.
pub(crate) struct Watched {
    pub(crate) db: usize,
    pub(crate) key: Bytes,
    /// Version of the key at that time; another version means that it was written to.
    pub(crate) version: u64,
}

/// Subscriptions of a client.
#[derive(Default)]
pub(crate) struct Subscriptions {
    pub(crate) channels: BTreeSet<Bytes>,
    pub(crate) patterns: BTreeSet<Bytes>,
    pub(crate) shard_channels: BTreeSet<Bytes>,
}

impl Subscriptions {
    pub(crate) fn is_empty(&self) -> bool {
        self.channels.is_empty() && self.patterns.is_empty() && self.shard_channels.is_empty()
    }
}

/// `CLIENT REPLY`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Replies {
    On,
    Off,
    /// No reply to this command and to the next one.
    SkipNext,
    /// No reply to this command.
    Skip,
}

impl Client {
    pub(crate) fn is_over(&self) -> bool {
        self.pushes.is_none()
    }

    /// Ends the session; earlier pushes can still be read.
    pub(crate) fn end(&mut self) {
        self.pushes = None;
    }

    /// Pushes a message, or disconnects a client with too many unread ones.
    pub(crate) fn push(&mut self, message: Reply) {
        if let Some(pushes) = &self.pushes
            && pushes.try_send(message).is_err()
        {
            tracing::warn!(client = self.id, "reads its messages too slowly: cut off");
            self.end();
        }
    }

    /// Returns whether RESP2 permits only commands of pub/sub.
    pub(crate) fn only_listens(&self) -> bool {
        self.protocol == Protocol::Resp2 && !self.subscribed.is_empty()
    }
}

/// All clients, by id.
#[derive(Default)]
pub(crate) struct Clients {
    by_id: HashMap<u64, Client>,
    last_id: u64,
}

impl Clients {
    pub(crate) fn add(&mut self, now_ms: u64) -> (u64, mpsc::Receiver<Reply>) {
        self.last_id += 1;
        let (sender, receiver) = mpsc::channel(PUSHES_MAX);
        let client = Client {
            id: self.last_id,
            db: 0,
            protocol: Protocol::Resp2,
            name: Bytes::new(),
            library: [Bytes::new(), Bytes::new()],
            address: String::new(),
            multi: None,
            watched: Vec::new(),
            subscribed: Subscriptions::default(),
            pushes: Some(sender),
            replies: Replies::On,
            no_evict: false,
            since_ms: now_ms,
            last_ms: now_ms,
            last_command: "NULL",
        };
        self.by_id.insert(self.last_id, client);
        (self.last_id, receiver)
    }

    pub(crate) fn remove(&mut self, id: u64) -> Option<Client> {
        self.by_id.remove(&id)
    }

    pub(crate) fn get(&self, id: u64) -> Option<&Client> {
        self.by_id.get(&id)
    }

    pub(crate) fn get_mut(&mut self, id: u64) -> Option<&mut Client> {
        self.by_id.get_mut(&id)
    }

    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Returns the ids in the order of connection.
    pub(crate) fn ids(&self) -> Vec<u64> {
        let mut ids: Vec<u64> = self.by_id.keys().copied().collect();
        ids.sort_unstable();
        ids
    }
}
