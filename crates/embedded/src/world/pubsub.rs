//! Publish and subscribe: subscriptions, and delivery of messages.

use std::collections::{BTreeSet, HashMap};

use bytes::Bytes;

use super::{Clients, World, clients::Subscriptions};
use crate::{Reply, command::glob_match};

/// Kind of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    Channel,
    Pattern,
    ShardChannel,
}

impl Scope {
    /// Returns the words for subscribing, unsubscribing and a message.
    pub(crate) fn words(self) -> [&'static str; 3] {
        match self {
            Self::Channel => ["subscribe", "unsubscribe", "message"],
            Self::Pattern => ["psubscribe", "punsubscribe", "pmessage"],
            Self::ShardChannel => ["ssubscribe", "sunsubscribe", "smessage"],
        }
    }
}

/// A message to deliver.
pub(crate) struct Message {
    pub(crate) scope: Scope,
    pub(crate) channel: Bytes,
    pub(crate) text: Bytes,
}

/// All subscriptions.
#[derive(Default)]
pub(crate) struct PubSub {
    channels: Listeners,
    patterns: Listeners,
    shard_channels: Listeners,
}

type Listeners = HashMap<Bytes, BTreeSet<u64>>;

impl PubSub {
    pub(crate) fn of(&self, scope: Scope) -> &Listeners {
        match scope {
            Scope::Channel => &self.channels,
            Scope::Pattern => &self.patterns,
            Scope::ShardChannel => &self.shard_channels,
        }
    }

    fn of_mut(&mut self, scope: Scope) -> &mut Listeners {
        match scope {
            Scope::Channel => &mut self.channels,
            Scope::Pattern => &mut self.patterns,
            Scope::ShardChannel => &mut self.shard_channels,
        }
    }
}

impl Subscriptions {
    pub(crate) fn of(&mut self, scope: Scope) -> &mut BTreeSet<Bytes> {
        match scope {
            Scope::Channel => &mut self.channels,
            Scope::Pattern => &mut self.patterns,
            Scope::ShardChannel => &mut self.shard_channels,
        }
    }

    /// Returns the number in a confirmation.
    pub(crate) fn count(&self, scope: Scope) -> i64 {
        let count = match scope {
            Scope::Channel | Scope::Pattern => self.channels.len() + self.patterns.len(),
            Scope::ShardChannel => self.shard_channels.len(),
        };
        i64::try_from(count).unwrap_or(i64::MAX)
    }
}

impl World {
    pub(crate) fn subscribe(&mut self, id: u64, scope: Scope, name: &Bytes) {
        let Some(client) = self.clients.get_mut(id) else {
            return;
        };
        if client.subscribed.of(scope).insert(name.clone()) {
            self.pubsub
                .of_mut(scope)
                .entry(name.clone())
                .or_default()
                .insert(id);
        }
    }

    pub(crate) fn unsubscribe(&mut self, id: u64, scope: Scope, name: &Bytes) {
        if let Some(client) = self.clients.get_mut(id) {
            client.subscribed.of(scope).remove(name);
        }
        let listeners = self.pubsub.of_mut(scope);
        if let Some(ids) = listeners.get_mut(name) {
            ids.remove(&id);
            if ids.is_empty() {
                listeners.remove(name);
            }
        }
    }

    /// Ends every subscription of a client, without confirmations.
    pub(crate) fn unsubscribe_all(&mut self, id: u64) {
        for scope in [Scope::Channel, Scope::Pattern, Scope::ShardChannel] {
            let Some(client) = self.clients.get_mut(id) else {
                return;
            };
            for name in client.subscribed.of(scope).clone() {
                self.unsubscribe(id, scope, &name);
            }
        }
    }

    /// Returns the number of deliveries of a message: one for each channel and one for each matching pattern.
    pub(crate) fn receivers(&self, message: &Message) -> usize {
        let listen = |ids: &BTreeSet<u64>| {
            let live = |id: &&u64| self.clients.get(**id).is_some();
            ids.iter().filter(live).count()
        };
        let direct = self.pubsub.of(message.scope).get(&message.channel);
        let patterns = match message.scope {
            Scope::Channel => &self.pubsub.patterns,
            _ => &Listeners::new(),
        };
        let matching = patterns
            .iter()
            .filter(|(pattern, _)| glob_match(pattern, &message.channel));
        direct.map_or(0, listen) + matching.map(|(_, ids)| listen(ids)).sum::<usize>()
    }

    /// Delays a message until its writes are in the log.
    pub(crate) fn publish_later(&mut self, message: Message) {
        self.unsent.push(message);
    }

    /// Delivers a message to all subscribers.
    pub(super) fn publish(&mut self, message: &Message) {
        let Message {
            scope,
            channel,
            text,
        } = message;
        let scope = *scope;
        let word = |scope: Scope| Reply::Bulk(Bytes::from_static(scope.words()[2].as_bytes()));
        let content = [Reply::Bulk(channel.clone()), Reply::Bulk(text.clone())];
        let push = |clients: &mut Clients, ids: &BTreeSet<u64>, head: &[Reply]| {
            for id in ids {
                if let Some(client) = clients.get_mut(*id) {
                    client.push(Reply::Push(head.iter().chain(&content).cloned().collect()));
                }
            }
        };
        if let Some(ids) = self.pubsub.of(scope).get(channel) {
            push(&mut self.clients, ids, &[word(scope)]);
        }
        if scope == Scope::Channel {
            let patterns = &self.pubsub.patterns;
            for (pattern, ids) in patterns.iter().filter(|(p, _)| glob_match(p, channel)) {
                let head = [word(Scope::Pattern), Reply::Bulk(pattern.clone())];
                push(&mut self.clients, ids, &head);
            }
        }
    }
}
