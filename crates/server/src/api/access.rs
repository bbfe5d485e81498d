//! Callers of the API: their keys, and what they may call.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use axum::http::request::Parts;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use meshwork::context::{ContextError, Node};
use meshwork_broker::Broker;
use meshwork_model::api_key::{ApiKey, ApiSecret, SECRET_BYTES, Scope};
use meshwork_model::keys::context::{ActorId, ContextId};
use meshwork_model::name::ApiKeyName;
use subtle::ConstantTimeEq;

use super::away::unless_away;
use super::error::{ApiError, Code};
use super::recent::Known;
use crate::http::guard::{Admission, Authenticate, Refusal, bearer};

/// Wrong keys in one second from one address after which further ones get another error.
const WRONG_PER_SECOND: u32 = 5;
/// Greatest number of addresses with wrong keys that are remembered.
const MOST_PEERS: usize = 4096;
/// Time that the store has to answer for a key.
const STORE_TIMEOUT: Duration = Duration::from_secs(10);

/// Caller of a method.
#[derive(Debug, Clone)]
pub enum Access {
    /// The server needs no keys, or the caller has opened its socket: it may call all methods.
    All,
    /// A key.
    Key(Arc<ApiKey>),
    /// The dashboard of a command, whose user may call the methods of this scope.
    Local(Scope),
    /// An actor who has signed a nonce: as a key of [`Scope::User`].
    Actor(ActorId),
    /// No key was given.
    Nobody,
}

impl Access {
    /// The scope of the caller.
    #[must_use]
    pub fn scope(&self) -> Option<Scope> {
        match self {
            Self::All => Some(Scope::Admin),
            Self::Key(key) => Some(key.scope),
            Self::Local(scope) => Some(*scope),
            Self::Actor(_) => Some(Scope::User),
            Self::Nobody => None,
        }
    }

    /// The only place in which the caller may call: the context of its key.
    #[must_use]
    pub fn context(&self) -> Option<ContextId> {
        match self {
            Self::Key(key) => key.context,
            Self::All | Self::Local(_) | Self::Actor(_) | Self::Nobody => None,
        }
    }

    /// Name of the caller's key.
    #[must_use]
    pub fn key_name(&self) -> Option<&ApiKeyName> {
        match self {
            Self::Key(key) => Some(&key.name),
            Self::All | Self::Local(_) | Self::Actor(_) | Self::Nobody => None,
        }
    }

    /// Name of the caller in events.
    #[must_use]
    pub fn actor_name(&self) -> Option<String> {
        match self {
            Self::Key(key) => Some(format!("api:{}", key.name)),
            Self::Actor(actor) => Some(format!("actor {actor}")),
            Self::All | Self::Local(_) | Self::Nobody => None,
        }
    }

    /// Refuses a method that the caller may not call.
    pub(crate) fn check(&self, needed: Scope, name: &str) -> Result<(), ApiError> {
        let Some(scope) = self.scope() else {
            let message = "this method needs a key: send authorization: Bearer mwk_…";
            return Err(ApiError::new(Code::AuthenticationRequired, message)
                .hint("`meshwork key create NAME --scope user` makes one"));
        };
        if scope.allows(needed) {
            return Ok(());
        }
        let message = format!("{name} needs the scope {needed}, and the key has the scope {scope}");
        Err(ApiError::new(Code::Forbidden, message))
    }
}

/// Makes a key: the secret to be shown once, and the record to be stored.
#[must_use]
pub fn new_key(
    name: ApiKeyName,
    scope: Scope,
    (actor, context, expires_ms): (Option<ActorId>, Option<ContextId>, Option<u64>),
    (random, now_ms): (&[u8; SECRET_BYTES], u64),
) -> (ApiSecret, ApiKey) {
    let secret = ApiSecret::new(name.clone(), random);
    let key = ApiKey {
        name,
        scope,
        digest: secret.digest(),
        actor,
        context,
        created_ms: now_ms,
        expires_ms,
    };
    (secret, key)
}

/// The keys of the store, as the guard checks them.
#[derive(Debug, Clone)]
pub struct KeyRing(Arc<Ring>);

#[derive(Debug)]
struct Ring {
    broker: Broker,
    wrong: Mutex<HashMap<IpAddr, (Instant, u32)>>,
    known: Known,
}

impl KeyRing {
    /// Checks keys in this store.
    pub(super) fn new(broker: Broker) -> Self {
        Self(Arc::new(Ring {
            broker,
            wrong: Mutex::default(),
            known: Known::default(),
        }))
    }

    /// The store of the keys.
    pub(super) fn broker(&self) -> &Broker {
        &self.0.broker
    }

    /// Keys and rights that were read a moment ago.
    pub(super) fn known(&self) -> &Known {
        &self.0.known
    }

    /// Returns false if a key that was accepted is now revoked, expired or replaced. While the store is away it stays valid.
    pub(crate) async fn is_valid(&self, key: &ApiKey) -> bool {
        let Ok(now) = self.key(&key.name).await else {
            return true;
        };
        now.is_some_and(|now| now.digest == key.digest && !now.is_expired(meshwork::host_ms()))
    }

    fn wrong(&self) -> MutexGuard<'_, HashMap<IpAddr, (Instant, u32)>> {
        self.0.wrong.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the caller that gives this key.
    ///
    /// # Errors
    /// If the key is wrong, expired or revoked, or the store does not answer. Many wrong ones of an address get
    /// another error; a right one is never refused for them, since many clients may share an address.
    pub async fn caller(&self, text: &str, peer: IpAddr) -> Result<Access, ApiError> {
        let Some(secret) = ApiSecret::parse(text) else {
            return Err(self.refused(peer));
        };
        let Some(key) = self.key(secret.name()).await? else {
            return Err(self.refused(peer));
        };
        let same: bool = key.digest.ct_eq(&secret.digest()).into();
        match same && !key.is_expired(meshwork::host_ms()) {
            true => Ok(Access::Key(key)),
            false => Err(self.refused(peer)),
        }
    }

    async fn key(&self, name: &ApiKeyName) -> Result<Option<Arc<ApiKey>>, ApiError> {
        let now = Instant::now();
        let known = &self.known().keys;
        if let Some(key) = known.get(name, now) {
            return Ok(Some(key));
        }
        let away = || ApiError::new(Code::StorageError, "the store does not answer for the key");
        let read = tokio::time::timeout(STORE_TIMEOUT, self.read(name));
        let read = read.map(|read| read.map_err(|_| away())?.map_err(|_| away()));
        let key = unless_away(&self.0.broker, false, read).await?;
        let Some(key) = key.map(Arc::new) else {
            // Invented names take no place.
            known.remove(name);
            return Ok(None);
        };
        // The time before the read counts, so that a revocation during it holds in time.
        known.keep(name.clone(), now, Arc::clone(&key));
        Ok(Some(key))
    }

    /// Reads a key; `None` if there is none, or its actor is revoked.
    async fn read(&self, name: &ApiKeyName) -> Result<Option<ApiKey>, ContextError> {
        let key = self.0.broker.api_key(name).await?;
        let Some(actor) = key.as_ref().and_then(|key| key.actor) else {
            return Ok(key);
        };
        match Node::of(&self.0.broker).actor(actor).await {
            Ok(actor) => Ok(key.filter(|_| actor.revoked_at.is_none())),
            Err(ContextError::NoActor(_) | ContextError::Record(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Counts a wrong key, and returns its refusal.
    fn refused(&self, peer: IpAddr) -> ApiError {
        let now = Instant::now();
        let mut wrong = self.wrong();
        if wrong.len() >= MOST_PEERS {
            wrong.retain(|_, (since, _)| now.duration_since(*since) < Duration::from_secs(1));
        }
        let mut count = 0;
        if wrong.len() < MOST_PEERS || wrong.contains_key(&peer) {
            let entry = wrong.entry(peer).or_insert((now, 0));
            if now.duration_since(entry.0) >= Duration::from_secs(1) {
                *entry = (now, 0);
            }
            entry.1 = entry.1.saturating_add(1);
            count = entry.1;
        }
        if count > WRONG_PER_SECOND {
            let message = "too many wrong keys from this address: wait a second";
            return ApiError::new(Code::TooManyRequests, message);
        }
        let message = "the key is wrong, expired or revoked";
        ApiError::new(Code::InvalidCredentials, message).hint("`meshwork key list` shows the keys")
    }
}

impl Authenticate for KeyRing {
    fn check<'a>(
        &'a self,
        head: &'a mut Parts,
        peer: IpAddr,
    ) -> BoxFuture<'a, Result<Admission, Refusal>> {
        async move {
            // For keys that come in parameters.
            head.extensions.insert(self.clone());
            // A method decides whether it needs a key.
            let Some(text) = bearer(&head.headers).map(str::to_owned) else {
                head.extensions.insert(Access::Nobody);
                return Ok(Admission::Anonymous);
            };
            match self.caller(&text, peer).await {
                Ok(access) => {
                    head.extensions.insert(access);
                    Ok(Admission::Authenticated)
                }
                Err(error) => Err(refusal(error)),
            }
        }
        .boxed()
    }
}

fn refusal(error: ApiError) -> Refusal {
    let (status, code) = match error.code {
        Code::TooManyRequests => (StatusCode::TOO_MANY_REQUESTS, "too_many_requests"),
        Code::StorageError => (StatusCode::SERVICE_UNAVAILABLE, "storage_error"),
        _ => (StatusCode::UNAUTHORIZED, "invalid_credentials"),
    };
    Refusal::new(status, code, error.message)
}
