//! WATCH: watched keys of clients. The store counts versions.

use bytes::Bytes;

use super::{Call, World, clients::Watched};
use crate::store::Effect;

impl Call<'_> {
    /// Begins to watch `key` for the client of this call.
    pub(crate) fn watch(&mut self, key: &Bytes) {
        let (db, id, now_ms) = (self.db, self.client, self.now_ms());
        let world = &mut *self.world;
        if world.store.is_due(db, key, now_ms) {
            // It has expired for all clients: its later removal is not a change.
            world.store.remove(db, key);
            world.store.touch(db, key);
            world.effects.push(Effect {
                db,
                args: vec![Bytes::from_static(b"DEL"), key.clone()],
            });
        }
        let Some(client) = world.clients.get_mut(id) else {
            return;
        };
        if client
            .watched
            .iter()
            .any(|watched| watched.db == db && watched.key == *key)
        {
            return;
        }
        let version = world.store.watch(db, key);
        client.watched.push(Watched {
            db,
            key: key.clone(),
            version,
        });
    }
}

impl World {
    /// Ends all watches of a client.
    pub(crate) fn unwatch(&mut self, id: u64) {
        let Some(client) = self.clients.get_mut(id) else {
            return;
        };
        for watched in std::mem::take(&mut client.watched) {
            self.store.unwatch(watched.db, &watched.key);
        }
    }

    /// Returns whether a watched key of a client was written to, or has expired, since the watch.
    pub(crate) fn watched_changed(&self, id: u64, now_ms: u64) -> bool {
        self.clients.get(id).is_some_and(|client| {
            client.watched.iter().any(|Watched { db, key, version }| {
                self.store.version(*db, key) != Some(*version)
                    || self.store.is_due(*db, key, now_ms)
            })
        })
    }
}
