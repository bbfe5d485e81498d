//! Actors of a node. An actor is a public key, with a number on each node.

use meshwork_macros::boxed;
use std::fmt;

use meshwork_broker::context::{Commit, Committed, Database};
use meshwork_model::actor_key::{PublicKey, SecretKey};
use meshwork_model::api_key::Scope;
use meshwork_model::context::{Actor, field};
use meshwork_model::keys::context::ActorId;

use super::audit::Change;
use super::{Acting, ContextError, Node, PAGE, TRIES};

/// Author of changes of actors: anybody who can write to the node's database.
pub(super) const OWNER: &str = "owner";

/// An actor with its secret key.
#[derive(Debug, Clone)]
pub struct Identity {
    id: ActorId,
    key: SecretKey,
}

impl Identity {
    /// Number on this node.
    #[must_use]
    pub const fn id(&self) -> ActorId {
        self.id
    }

    /// Key of its signatures.
    #[must_use]
    pub const fn key(&self) -> &SecretKey {
        &self.key
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "actor {}", self.id)
    }
}

impl Node {
    /// Returns the actor with this key.
    ///
    /// # Errors
    /// [`ContextError::UnknownKey`] if no actor has the key, [`ContextError::RevokedKey`] if it is revoked, or a call
    /// to the server fails.
    #[boxed]
    pub async fn identify(&self, key: SecretKey) -> Result<Identity, ContextError> {
        let id = self.trusted(&key.public()).await?.id;
        Ok(Identity { id, key })
    }

    /// Returns the actor with this public key, if the key is valid.
    ///
    /// # Errors
    /// As for [`Self::identify`].
    #[boxed]
    pub async fn trusted(&self, public: &PublicKey) -> Result<Actor, ContextError> {
        let actor = match self.number_of(public).await? {
            Some(id) => Some(self.actor(id).await?),
            // A plain client wrote the record without an entry in the index.
            None => {
                let all = self.actors().await?;
                all.into_iter().find(|actor| actor.pubkey == *public)
            }
        };
        let actor = actor.ok_or_else(|| ContextError::UnknownKey {
            key: public.to_string(),
        })?;
        let old = actor.pubkey != *public;
        let now = self.now().await?;
        let over = old && actor.old_until.is_none_or(|until| until <= now);
        match actor.revoked_at.is_some() || over {
            true => Err(ContextError::RevokedKey(actor.id)),
            false => Ok(actor),
        }
    }

    /// Checks that the actor's keys are not revoked.
    pub(super) async fn actor_in_force(&self, me: &impl Acting) -> Result<(), ContextError> {
        match self.actor(me.id()).await?.revoked_at {
            Some(_) => Err(ContextError::RevokedKey(me.id())),
            None => Ok(()),
        }
    }

    /// Returns the number of a key in the index.
    async fn number_of(&self, key: &PublicKey) -> Result<Option<ActorId>, ContextError> {
        let index = self
            .store
            .hash(Database::Node, &self.keys().actors())
            .await?;
        let key = key.to_string();
        let found = index.into_iter().find(|(field, _)| *field == key);
        Ok(found.and_then(|(_, id)| String::from_utf8(id).ok()?.parse().ok()))
    }

    /// Returns an actor by its number.
    ///
    /// # Errors
    /// [`ContextError::NoActor`], or a call to the server fails.
    #[boxed]
    pub async fn actor(&self, id: ActorId) -> Result<Actor, ContextError> {
        let fields = self
            .store
            .hash(Database::Node, &self.keys().actor(id))
            .await?;
        if fields.is_empty() {
            return Err(ContextError::NoActor(id));
        }
        Ok(Actor::from_fields(id, fields)?)
    }

    /// Returns all actors with readable records, by number.
    ///
    /// # Errors
    /// A call to the server fails.
    #[boxed]
    pub async fn actors(&self) -> Result<Vec<Actor>, ContextError> {
        let (mut cursor, mut ids) = (0, Vec::<ActorId>::new());
        loop {
            let prefix = &self.keys().actor_prefix();
            let (next, keys) = self
                .store
                .scan(Database::Node, cursor, prefix, PAGE)
                .await?;
            let numbers = keys.iter().filter_map(|key| {
                let key = std::str::from_utf8(key).ok()?;
                key.strip_prefix(prefix)?.parse::<ActorId>().ok()
            });
            ids.extend(numbers);
            cursor = next;
            if cursor == 0 {
                break;
            }
        }
        ids.sort_unstable();
        ids.dedup();
        let mut actors = Vec::with_capacity(ids.len());
        for page in ids.chunks(PAGE) {
            let keys: Vec<_> = page.iter().map(|id| self.keys().actor(*id)).collect();
            let found = self.store.hashes(Database::Node, &keys).await?;
            let read = page.iter().zip(found);
            actors.extend(read.filter_map(|(id, fields)| Actor::from_fields(*id, fields).ok()));
        }
        Ok(actors)
    }

    /// Registers a public key under a number of this node. Default `id`: the next free number.
    ///
    /// # Errors
    /// [`ContextError::ActorExists`], [`ContextError::KeyTaken`] if another actor has the key, or a call to the server
    /// fails.
    #[boxed]
    pub async fn trust(&self, key: PublicKey, id: Option<ActorId>) -> Result<Actor, ContextError> {
        // Checked before a number is drawn, so that no number is wasted.
        if let Some(other) = self.number_of(&key).await? {
            return Err(ContextError::KeyTaken(other));
        }
        let text = key.to_string();
        let now = self.now().await?;
        for _ in 0..TRIES {
            let number = match id {
                Some(id) => id,
                None => {
                    let (counter, prefix) =
                        (&self.keys().next_actor(), &self.keys().actor_prefix());
                    let drawn = self.store.draw(Database::Node, counter, prefix).await?;
                    ActorId(drawn.ok_or(ContextError::NoNumber("actor"))?)
                }
            };
            let (record, index) = (self.keys().actor(number), &self.keys().actors());
            let actor = Actor::new(number, key, now);
            let change = Change {
                who: OWNER,
                what: "trust",
                object: &record,
                after: &text,
                ..Change::default()
            };
            let commit = Commit::default()
                .is(index, &text, b"")
                .absent(&record)
                .set(&record, actor.to_fields())
                .set(index, [(text.as_str(), number.to_string().as_str())]);
            let commit = change.noted(commit, &self.keys().audit());
            match self.store.commit(Database::Node, &commit).await? {
                Committed::Done => return Ok(actor),
                Committed::Unmet(1) => {
                    let other = self.number_of(&key).await?;
                    return Err(ContextError::KeyTaken(other.unwrap_or(number)));
                }
                Committed::Unmet(_) if id.is_some() => {
                    return Err(ContextError::ActorExists(number));
                }
                // A plain client took the number meanwhile.
                Committed::Unmet(_) => {}
            }
        }
        Err(ContextError::Busy("the numbers of actors".to_owned()))
    }

    /// Replaces the key of an actor. The old key is valid for 7 more days.
    ///
    /// # Errors
    /// [`ContextError::NoActor`], [`ContextError::KeyTaken`], [`ContextError::RevokedKey`] if all keys of the actor are
    /// revoked, or a call to the server fails.
    #[boxed]
    pub async fn rotate(&self, id: ActorId, key: PublicKey) -> Result<Actor, ContextError> {
        match self.number_of(&key).await? {
            // A repeated call of an interrupted command.
            Some(other) if other == id => return self.actor(id).await,
            Some(other) => return Err(ContextError::KeyTaken(other)),
            None => {}
        }
        let now = self.now().await?;
        self.change_actor(id, "rotate", |actor| match actor.revoked_at {
            Some(_) => Err(ContextError::RevokedKey(id)),
            None => {
                actor.rotate(key, now);
                Ok(())
            }
        })
        .await
    }

    /// Revokes all keys of an actor, at once and permanently.
    ///
    /// # Errors
    /// [`ContextError::NoActor`], or a call to the server fails.
    #[boxed]
    pub async fn revoke(&self, id: ActorId) -> Result<Actor, ContextError> {
        let now = self.now().await?;
        self.change_actor(id, "revoke", |actor| {
            actor.revoke(now);
            Ok(())
        })
        .await
    }

    /// Grants an actor this scope outside of contexts, for its keys of the API and its logins. It replaces an earlier grant.
    ///
    /// # Errors
    /// [`ContextError::NoActor`], [`ContextError::RevokedKey`] if all keys of the actor are revoked, or a call to the server
    /// fails.
    #[boxed]
    pub async fn grant_node_scope(&self, id: ActorId, scope: Scope) -> Result<Actor, ContextError> {
        self.change_actor(id, "grant node", |actor| match actor.revoked_at {
            Some(_) => Err(ContextError::RevokedKey(id)),
            None => {
                actor.node_scope = Some(scope);
                Ok(())
            }
        })
        .await
    }

    /// Takes an actor all rights outside of contexts.
    ///
    /// # Errors
    /// [`ContextError::NoActor`], [`ContextError::NoNodeScope`] if it has none, or a call to the server fails.
    #[boxed]
    pub async fn revoke_node_scope(&self, id: ActorId) -> Result<Actor, ContextError> {
        self.change_actor(id, "revoke node", |actor| match actor.node_scope.take() {
            Some(_) => Ok(()),
            None => Err(ContextError::NoNodeScope(id)),
        })
        .await
    }

    async fn change_actor(
        &self,
        id: ActorId,
        what: &str,
        change: impl Fn(&mut Actor) -> Result<(), ContextError>,
    ) -> Result<Actor, ContextError> {
        let record = self.keys().actor(id);
        for _ in 0..TRIES {
            let before = self.actor(id).await?;
            let mut after = before.clone();
            change(&mut after)?;
            let (old, new) = (before.pubkey.to_string(), after.pubkey.to_string());
            let revoked = before
                .revoked_at
                .map(|at| at.to_string())
                .unwrap_or_default();
            let [had, has] = [&before, &after].map(|it| it.node_scope.map_or("", Scope::as_str));
            let (was, is) = match had == has {
                true => (old.as_str(), new.as_str()),
                false => (had, has),
            };
            let commit = Commit::default()
                .is(&record, field::PUBKEY, old.as_bytes())
                .is(&record, field::REVOKED_AT, revoked.as_bytes())
                .is(&record, field::NODE_SCOPE, had.as_bytes())
                // A commit removes no field: an empty one is none.
                .set(&record, (had != has).then_some((field::NODE_SCOPE, has)))
                .set(&record, after.to_fields())
                .set(
                    &self.keys().actors(),
                    [(new.as_str(), id.to_string().as_str())],
                );
            let change = Change {
                who: OWNER,
                what,
                object: &record,
                before: was,
                after: is,
            };
            let commit = change.noted(commit, &self.keys().audit());
            if self.store.commit(Database::Node, &commit).await?.is_done() {
                return Ok(after);
            }
        }
        Err(ContextError::Busy(record))
    }
}
