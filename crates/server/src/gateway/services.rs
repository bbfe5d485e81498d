//! Services that may be called. An action for a service that does not exist would stay in the store for ever, under a
//! new key for each name.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use meshwork_broker::nooble::Nooble;

/// Greatest number of cached names; a deployment has dozens.
const MOST: usize = 1024;
/// Time for which a known service stays cached. In the lists dialect a restarting service has no key, and its actions
/// wait for it.
const KNOWN_FOR: Duration = Duration::from_secs(600);
/// Time for which an unknown service stays cached: the longest delay after its start.
const UNKNOWN_FOR: Duration = Duration::from_secs(1);

/// The services that may be called.
#[derive(Debug)]
pub(super) struct Services {
    /// Services named by the operator, started before or not. If there are any, no others may be called.
    named: HashSet<String>,
    /// Other services: true for a known one, and the end of the entry's validity.
    cached: Mutex<HashMap<String, (bool, Instant)>>,
}

impl Services {
    pub(super) fn new(named: Vec<String>) -> Self {
        Self {
            named: named.into_iter().collect(),
            cached: Mutex::default(),
        }
    }

    fn cached(&self) -> MutexGuard<'_, HashMap<String, (bool, Instant)>> {
        self.cached.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if a service may be called. Creates no key.
    ///
    /// # Errors
    /// If the store does not answer.
    pub(super) async fn is_known(
        &self,
        broker: &Nooble,
        service: &str,
    ) -> Result<bool, meshwork_broker::Error> {
        if !self.named.is_empty() {
            return Ok(self.named.contains(service));
        }
        if let Some(known) = self.cached_for(service, Instant::now()) {
            return Ok(known);
        }
        let known = broker.has_service(service).await?;
        self.cache(service, known, Instant::now());
        Ok(known)
    }

    fn cached_for(&self, service: &str, now: Instant) -> Option<bool> {
        let (known, until) = *self.cached().get(service)?;
        (until > now).then_some(known)
    }

    fn cache(&self, service: &str, known: bool, now: Instant) {
        let mut cached = self.cached();
        if cached.len() >= MOST {
            cached.retain(|_, (known, until)| *known && *until > now);
        }
        if cached.len() < MOST {
            let stays = if known { KNOWN_FOR } else { UNKNOWN_FOR };
            cached.insert(service.to_owned(), (known, now + stays));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_is_bounded_and_ends() {
        let (services, now) = (Services::new(Vec::new()), Instant::now());
        services.cache("a", true, now);
        for number in 0..10_000 {
            services.cache(&format!("invented-{number}"), false, now);
        }
        assert!(services.cached().len() <= MOST);
        assert_eq!(services.cached_for("a", now), Some(true));
        services.cache("b", false, now);
        assert_eq!(services.cached_for("b", now), Some(false));
        assert_eq!(services.cached_for("b", now + UNKNOWN_FOR), None);
        assert_eq!(services.cached_for("a", now + KNOWN_FOR), None);
    }
}
