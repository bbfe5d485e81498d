//! Rights of actors that were read a moment ago, so that many calls of one actor cost few reads.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use meshwork_model::access::Roles;
use meshwork_model::api_key::Scope;
use meshwork_model::keys::context::{ActorId, ContextId};

/// Time for which keys and rights that were read stay valid here: a revocation holds after it.
pub(super) const CACHED_FOR: Duration = Duration::from_millis(500);
/// Greatest number of actors, and of their roles in contexts, that are kept.
const MOST_KEPT: usize = 4096;

/// Values that were read a moment ago.
#[derive(Debug)]
pub(super) struct Recent<K, V>(Mutex<HashMap<K, (Instant, V)>>);

impl<K, V> Default for Recent<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash, V: Copy> Recent<K, V> {
    pub(super) fn get(&self, key: &K, now: Instant) -> Option<V> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, value) = kept.get(key).filter(|it| is_fresh(it.0, now))?;
        Some(*value)
    }

    /// Keeps what a read has returned that began at this time.
    pub(super) fn keep(&self, key: K, began: Instant, value: V) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MOST_KEPT {
            kept.retain(|_, (at, _)| is_fresh(*at, began));
        }
        if kept.len() < MOST_KEPT {
            kept.insert(key, (began, value));
        }
    }
}

fn is_fresh(at: Instant, now: Instant) -> bool {
    now.saturating_duration_since(at) < CACHED_FOR
}

/// Rights of actors that were read a moment ago.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// Scope outside of contexts; `None` for an actor who is unknown or revoked.
    pub(super) actors: Recent<ActorId, Option<Option<Scope>>>,
    pub(super) roles: Recent<(ContextId, ActorId), Roles>,
}
