//! Keys, and rights of actors, that were read a moment ago, so that many calls of one actor cost few reads.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use meshwork_model::access::Roles;
use meshwork_model::api_key::{ApiKey, Scope};
use meshwork_model::keys::context::{ActorId, ContextId};
use meshwork_model::name::ApiKeyName;

/// Time for which keys and rights that were read stay valid here: a revocation holds after it.
pub(super) const CACHED_FOR: Duration = Duration::from_millis(500);
/// Greatest number of keys that are kept.
const MOST_KEYS: usize = 1024;
/// Greatest number of actors, and of their roles in contexts, that are kept.
const MOST_ACTORS: usize = 4096;

/// Values that were read a moment ago.
#[derive(Debug)]
pub(super) struct Recent<K, V> {
    kept: Mutex<HashMap<K, (Instant, V)>>,
    most: usize,
}

impl<K: Eq + Hash, V: Clone> Recent<K, V> {
    /// Keeps at most this many.
    fn of(most: usize) -> Self {
        let kept = Mutex::default();
        Self { kept, most }
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<K, (Instant, V)>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn get(&self, key: &K, now: Instant) -> Option<V> {
        let kept = self.kept();
        let (_, value) = kept.get(key).filter(|it| is_fresh(it.0, now))?;
        Some(value.clone())
    }

    pub(super) fn remove(&self, key: &K) {
        self.kept().remove(key);
    }

    /// Keeps what a read has returned that began at this time.
    pub(super) fn keep(&self, key: K, began: Instant, value: V) {
        let mut kept = self.kept();
        if kept.len() >= self.most {
            kept.retain(|_, (at, _)| is_fresh(*at, began));
        }
        if kept.len() < self.most {
            kept.insert(key, (began, value));
        }
    }
}

fn is_fresh(at: Instant, now: Instant) -> bool {
    now.saturating_duration_since(at) < CACHED_FOR
}

/// Keys and rights that were read a moment ago.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) keys: Recent<ApiKeyName, Arc<ApiKey>>,
    /// Scope outside of contexts; `None` for an actor who is unknown or revoked.
    pub(super) actors: Recent<ActorId, Option<Option<Scope>>>,
    pub(super) roles: Recent<(ContextId, ActorId), Roles>,
}

impl Default for Known {
    fn default() -> Self {
        Self {
            keys: Recent::of(MOST_KEYS),
            actors: Recent::of(MOST_ACTORS),
            roles: Recent::of(MOST_ACTORS),
        }
    }
}
