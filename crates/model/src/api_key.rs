//! Keys of the API: their scopes, and the record that the store has of one. The store has the digest of a key, never
//! the key.

use std::fmt;
use std::str::FromStr;

use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::keys::context::{ActorId, ContextId};
use crate::name::{ApiKeyName, NameError};

/// Beginning of every key, by which tools that look for leaked secrets find one.
pub const PREFIX: &str = "mwk_";
/// Number of random bytes of a key.
pub const SECRET_BYTES: usize = 32;

/// The methods that a key may call. Each scope also has those of [`Scope::Viewer`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Reads.
    Viewer,
    /// Registers runners.
    Registrar,
    /// Enqueues, cancels and retries.
    User,
    /// All methods.
    Admin,
}

/// A text is no scope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no scope: give admin, user, registrar or viewer")]
pub struct UnknownScope(String);

impl Scope {
    /// Returns the word of the scope.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Registrar => "registrar",
            Self::User => "user",
            Self::Admin => "admin",
        }
    }

    /// Returns true if a key of this scope may call a method that needs `needed`.
    #[must_use]
    pub fn allows(self, needed: Self) -> bool {
        self == needed || self == Self::Admin || needed == Self::Viewer
    }

    /// Returns the scope that has what both have.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self.allows(other), other.allows(self)) {
            (true, _) => other,
            (_, true) => self,
            (false, false) => Self::Viewer,
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Scope {
    type Err = UnknownScope;

    fn from_str(text: &str) -> Result<Self, UnknownScope> {
        [Self::Viewer, Self::Registrar, Self::User, Self::Admin]
            .into_iter()
            .find(|scope| scope.as_str() == text)
            .ok_or_else(|| UnknownScope(text.chars().take(32).collect()))
    }
}

/// A key as a client gives it: `mwk_NAME.SECRET`.
#[derive(Clone)]
pub struct ApiSecret {
    name: ApiKeyName,
    text: Zeroizing<String>,
}

impl ApiSecret {
    /// Makes a key of random bytes.
    #[must_use]
    pub fn new(name: ApiKeyName, random: &[u8; SECRET_BYTES]) -> Self {
        let text = format!("{PREFIX}{name}.{}", BASE64URL_NOPAD.encode(random));
        Self {
            name,
            text: Zeroizing::new(text),
        }
    }

    /// Reads the key that a client gives; `None` if the text is none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix(PREFIX)?;
        let (name, secret) = rest.split_once('.')?;
        let bytes = BASE64URL_NOPAD.decode(secret.as_bytes()).ok()?;
        (bytes.len() == SECRET_BYTES).then_some(())?;
        Some(Self {
            name: name.parse().ok()?,
            text: Zeroizing::new(text.to_owned()),
        })
    }

    /// The name of the key.
    #[must_use]
    pub fn name(&self) -> &ApiKeyName {
        &self.name
    }

    /// The whole key, to be shown once.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.text
    }

    /// SHA-256 of the whole key.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        Sha256::digest(self.text.as_bytes()).into()
    }
}

impl fmt::Debug for ApiSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ApiSecret({})", self.name)
    }
}

/// The store's record of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKey {
    /// Name of the key.
    pub name: ApiKeyName,
    /// The methods that it may call.
    pub scope: Scope,
    /// SHA-256 of the key.
    pub digest: [u8; 32],
    /// Actor whose roles decide in contexts, and whose rights outside of them limit the key; without one the key has no access
    /// to contexts.
    pub actor: Option<ActorId>,
    /// The only place in which the key may call.
    pub context: Option<ContextId>,
    /// Time of creation, in milliseconds since 1970.
    pub created_ms: u64,
    /// Time from which on it is refused, in milliseconds since 1970.
    pub expires_ms: Option<u64>,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    scope: Scope,
    digest: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    actor: Option<ActorId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    context: Option<ContextId>,
    created_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_ms: Option<u64>,
}

/// The record of a key cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the record of the API key {name} cannot be read: {why}; revoke it, and create it again")]
pub struct UnreadableApiKey {
    name: String,
    why: String,
}

impl ApiKey {
    /// Writes the record.
    #[must_use]
    pub fn write(&self) -> String {
        let stored = Stored {
            scope: self.scope,
            digest: HEXLOWER.encode(&self.digest),
            actor: self.actor,
            context: self.context,
            created_ms: self.created_ms,
            expires_ms: self.expires_ms,
        };
        // Numbers and words can always be written.
        serde_json::to_string(&stored).unwrap_or_default()
    }

    /// Reads the record of the key `name`.
    ///
    /// # Errors
    /// If the record was not written by [`Self::write`].
    pub fn read(name: &str, record: &[u8]) -> Result<Self, UnreadableApiKey> {
        let failed = |why: String| UnreadableApiKey {
            name: name.chars().take(64).collect(),
            why,
        };
        let stored: Stored =
            serde_json::from_slice(record).map_err(|error| failed(error.to_string()))?;
        let digest = HEXLOWER.decode(stored.digest.as_bytes()).ok();
        let digest = digest.and_then(|bytes| bytes.try_into().ok());
        Ok(Self {
            name: name
                .parse()
                .map_err(|error: NameError| failed(error.to_string()))?,
            scope: stored.scope,
            digest: digest.ok_or_else(|| failed("its digest is no SHA-256".to_owned()))?,
            actor: stored.actor,
            context: stored.context,
            created_ms: stored.created_ms,
            expires_ms: stored.expires_ms,
        })
    }

    /// Returns true if the key is refused at this time.
    #[must_use]
    pub fn is_expired(&self, now_ms: u64) -> bool {
        self.expires_ms.is_some_and(|expires| expires <= now_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_as_it_was_made() {
        let name: ApiKeyName = "ci-1".parse().unwrap();
        let made = ApiSecret::new(name.clone(), &[0xfb; SECRET_BYTES]);
        assert!(made.reveal().starts_with("mwk_ci-1."));
        let read = ApiSecret::parse(made.reveal()).unwrap();
        assert_eq!((read.name(), read.digest()), (&name, made.digest()));
        assert!(!format!("{made:?}").contains(&made.reveal()[9..]));
        for text in [
            "",
            "mwk_",
            "mwk_a.b",
            "mwk_ci-1",
            &made.reveal()[1..],
            &format!("{}A", made.reveal()),
        ] {
            assert!(ApiSecret::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let key = ApiKey {
            name: "ci".parse().unwrap(),
            scope: Scope::User,
            digest: [7; 32],
            actor: Some(ActorId(12)),
            context: ContextId::new(7),
            created_ms: 1,
            expires_ms: Some(5),
        };
        assert_eq!(ApiKey::read("ci", key.write().as_bytes()), Ok(key.clone()));
        assert!(key.is_expired(5) && !key.is_expired(4));
        let error = ApiKey::read("ci", b"{}").unwrap_err().to_string();
        assert!(error.contains("API key ci"), "{error}");
    }

    #[test]
    fn a_scope_has_what_a_viewer_has() {
        use Scope::{Admin, Registrar, User, Viewer};
        for scope in [Admin, User, Registrar, Viewer] {
            assert!(scope.allows(Viewer) && Admin.allows(scope));
            assert_eq!(scope.as_str().parse(), Ok(scope));
        }
        assert!(!Viewer.allows(User) && !User.allows(Admin) && !User.allows(Registrar));
        assert!(!Registrar.allows(User));
        assert_eq!((Admin.and(User), Viewer.and(Admin)), (User, Viewer));
        assert_eq!((User.and(Registrar), User.and(User)), (Viewer, User));
        assert!("root".parse::<Scope>().is_err());
    }
}
