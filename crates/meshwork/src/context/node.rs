//! A node: a store with its actors and contexts.

use meshwork_broker::Broker;
use meshwork_broker::context::{Commit, ContextStore, Database, has_no_database};
use meshwork_model::context::{Context, NodeId};
use meshwork_model::keys::context::{ContextId, ContextKeys, ContextLayout, NodeKeys};

use super::audit::Change;
use super::{AuditEntry, ContextError, ContextHandle, Identity};

/// The most numbers that are tried for a new context.
const TRIED: u32 = 1_000;

/// The actors and contexts of one store; cheap to clone.
#[derive(Debug, Clone)]
pub struct Node {
    broker: Broker,
    pub(super) store: ContextStore,
}

/// The outcome of one try to create a context.
enum Tried {
    Created,
    Taken(ContextError),
}

impl Node {
    /// The node over the connection of `broker`.
    #[must_use]
    pub fn of(broker: &Broker) -> Self {
        Self {
            broker: broker.clone(),
            store: ContextStore::of(broker),
        }
    }

    /// Its verbs for jobs outside of contexts.
    pub(super) fn broker(&self) -> &Broker {
        &self.broker
    }

    /// The store of its records.
    #[must_use]
    pub fn store(&self) -> &ContextStore {
        &self.store
    }

    /// The time, in seconds since 1970.
    pub(super) async fn now(&self) -> Result<u32, ContextError> {
        let seconds = self.store.now().await? / 1000;
        Ok(u32::try_from(seconds).unwrap_or(u32::MAX))
    }

    /// The name of the node among others; random, created by the first call.
    ///
    /// # Errors
    /// A call to the server fails.
    pub async fn identity(&self) -> Result<NodeId, ContextError> {
        let key = NodeKeys.identity();
        let made = NodeId(rand::random()).to_string();
        let commit = Commit::default()
            .absent(key)
            .set(key, [("id", made.as_str())]);
        if self.store.commit(Database::Node, &commit).await?.is_done() {
            return made.parse().map_err(|_| ContextError::Busy(key.to_owned()));
        }
        let fields = self.store.hash(Database::Node, key).await?;
        let id = fields.into_iter().find(|(name, _)| name == "id");
        let id = id.and_then(|(_, value)| String::from_utf8(value).ok()?.parse().ok());
        id.ok_or_else(|| {
            ContextError::InvalidMessage(format!(
                "the node's name in `{key}` cannot be read: delete it"
            ))
        })
    }

    /// All contexts of the registry, by number.
    ///
    /// # Errors
    /// [`ContextError::Registry`] if it has a word that is no layout, or a call to the server fails.
    pub async fn contexts(&self) -> Result<Vec<ContextHandle>, ContextError> {
        let fields = self.store.hash(Database::Node, NodeKeys.contexts()).await?;
        let mut contexts = Vec::with_capacity(fields.len());
        for (id, word) in fields {
            // Fields that are not numbers are not contexts.
            let Ok(id) = id.parse() else { continue };
            contexts.push(self.handle(id, layout_of(id, &word)?));
        }
        contexts.sort_by_key(|it| it.id());
        Ok(contexts)
    }

    pub(super) fn handle(&self, id: ContextId, layout: ContextLayout) -> ContextHandle {
        ContextHandle::new(self.clone(), ContextKeys::new(id, layout))
    }

    /// A context by its number. One whose record a plain client wrote into its database needs no entry in the registry.
    ///
    /// # Errors
    /// [`ContextError::NoContext`], [`ContextError::NoRecord`] if the registry names one whose record is gone, and if the
    /// server does not take a call.
    pub async fn context(&self, id: ContextId) -> Result<ContextHandle, ContextError> {
        let registry = self.store.hash(Database::Node, NodeKeys.contexts()).await?;
        let entry = registry
            .into_iter()
            .find(|(field, _)| *field == id.to_string());
        let layout = entry.map(|(_, word)| layout_of(id, &word)).transpose()?;
        let handle = self.handle(id, layout.unwrap_or(ContextLayout::Db));
        let found = self
            .store
            .hash(handle.database(), &handle.keys().record())
            .await;
        match (found, layout) {
            (Ok(fields), _) if !fields.is_empty() => Ok(handle),
            (Ok(_), Some(layout)) => Err(ContextError::NoRecord { id, layout }),
            (Ok(_), None) => Err(ContextError::NoContext(id)),
            (Err(error), _) if has_no_database(&error) => Err(ContextError::NoContext(id)),
            (Err(error), _) => Err(error.into()),
        }
    }

    /// Creates a context, of which the actor is the first admin; the next free number without `id`. The layout is `db`
    /// where the server has such a database, unless `layout` says otherwise.
    ///
    /// # Errors
    /// [`ContextError::ContextExists`], [`ContextError::DatabaseInUse`] and [`ContextError::NoDatabase`] with the `id`
    /// or the requested layout, or a call to the server fails.
    pub async fn create_context(
        &self,
        me: &Identity,
        id: Option<ContextId>,
        layout: Option<ContextLayout>,
    ) -> Result<ContextHandle, ContextError> {
        self.actor_in_force(me).await?;
        let candidates = match id {
            Some(id) => id.get()..=id.get(),
            None => 1..=TRIED,
        };
        let registry = self.contexts().await?;
        for number in candidates {
            let Some(candidate) = ContextId::new(number) else {
                continue;
            };
            if let Some(known) = registry.iter().find(|it| it.id() == candidate) {
                match id {
                    Some(id) => {
                        return Err(ContextError::ContextExists {
                            id,
                            layout: known.keys().layout(),
                        });
                    }
                    None => continue,
                }
            }
            let handle = self.handle(candidate, layout.unwrap_or(ContextLayout::Db));
            let mut made = (self.try_create(me, &handle).await?, handle);
            if let (Tried::Taken(ContextError::NoDatabase(_)), None) = (&made.0, layout) {
                let handle = self.handle(candidate, ContextLayout::Prefix);
                made = (self.try_create(me, &handle).await?, handle);
            }
            match made {
                (Tried::Created, handle) => return Ok(handle),
                (Tried::Taken(why), _) if id.is_some() => return Err(why),
                (Tried::Taken(_), _) => {}
            }
        }
        Err(ContextError::NoNumber("context"))
    }

    async fn try_create(
        &self,
        me: &Identity,
        handle: &ContextHandle,
    ) -> Result<Tried, ContextError> {
        let (keys, id) = (handle.keys(), handle.id());
        let record = keys.record();
        let now = self.now().await?;
        let fields = Context::new(id, me.id(), now).to_fields();
        let change = Change {
            who: &me.to_string(),
            what: "create",
            object: &record,
            after: keys.layout().as_str(),
            ..Change::default()
        };
        let commit = Commit::default().absent(&record);
        let commit = match keys.layout() {
            ContextLayout::Db => commit.empty(&record),
            ContextLayout::Prefix => commit,
        };
        let commit = change.noted(commit.set(&record, fields), &keys.audit());
        let created = match self.store.commit(handle.database(), &commit).await {
            Ok(created) => created,
            Err(error) if has_no_database(&error) => {
                return Ok(Tried::Taken(ContextError::NoDatabase(keys.database())));
            }
            Err(error) => return Err(error.into()),
        };
        let layout = keys.layout();
        match created {
            meshwork_broker::context::Committed::Unmet(1) => {
                // The registry may have been lost, or a command was killed before it wrote it.
                self.register(id, layout).await?;
                Ok(Tried::Taken(ContextError::ContextExists { id, layout }))
            }
            meshwork_broker::context::Committed::Unmet(_) => {
                Ok(Tried::Taken(ContextError::DatabaseInUse(keys.database())))
            }
            meshwork_broker::context::Committed::Done => {
                self.register(id, layout).await?;
                Ok(Tried::Created)
            }
        }
    }

    /// Notes the layout of a context, unless one is noted.
    async fn register(&self, id: ContextId, layout: ContextLayout) -> Result<(), ContextError> {
        let (registry, field) = (NodeKeys.contexts(), id.to_string());
        let commit = Commit::default()
            .is(registry, &field, b"")
            .set(registry, [(field.as_str(), layout.as_str())]);
        // Another one has noted it.
        let _ = self.store.commit(Database::Node, &commit).await?;
        Ok(())
    }

    /// Entries of the node's audit trail: changes of actors. The latest `most`, or those behind an id, the oldest first.
    ///
    /// # Errors
    /// The call to the server fails.
    pub async fn audit(
        &self,
        after: Option<&str>,
        most: usize,
    ) -> Result<Vec<AuditEntry>, ContextError> {
        super::handle::entries(&self.store, Database::Node, NodeKeys.audit(), after, most).await
    }
}

fn layout_of(id: ContextId, word: &[u8]) -> Result<ContextLayout, ContextError> {
    let word = String::from_utf8_lossy(word);
    word.parse().map_err(|_| ContextError::Registry {
        id,
        word: word.chars().take(40).collect(),
    })
}
