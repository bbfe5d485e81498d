//! Callers by Hero's names: keys in `params.secret`, and actors who sign a nonce.

use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use data_encoding::HEXLOWER_PERMISSIVE;
use meshwork_model::actor_key::{PublicKey, SIGNATURE_BYTES};
use meshwork_model::api_key::Scope;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::Fields;
use crate::api::access::{Access, KeyRing};
use crate::api::call::Call;
use crate::api::error::{ApiError, Code};
use crate::api::find;
use crate::api::method::{Params, parsed};
use crate::api::nonces::{Nonces, Unusable, VALID_FOR};
use crate::api::rights::Held;

/// A caller: its keys, and on a WebSocket the actor who has signed a nonce.
#[derive(Debug)]
pub(crate) struct Session {
    keys: Option<KeyRing>,
    client: IpAddr,
    /// The actor who has logged in.
    login: Mutex<Option<Held>>,
    /// The last caller who has shown a key or logged in.
    shown: watch::Sender<Option<Access>>,
}

impl Session {
    /// Returns the session of a client at this address. Secrets are checked by `keys`; without any the server needs none.
    pub(crate) fn new(keys: Option<KeyRing>, client: IpAddr) -> Self {
        Self {
            keys,
            client,
            login: Mutex::default(),
            shown: watch::Sender::new(None),
        }
    }

    /// The actor who has signed a nonce.
    pub(crate) fn login(&self) -> Option<Held> {
        let login = self.login.lock().unwrap_or_else(PoisonError::into_inner);
        login.clone()
    }

    /// Waits for a caller who logs in or shows a key.
    pub(crate) async fn shown(&self) -> Access {
        let mut shown = self.shown.subscribe();
        loop {
            if let Some(access) = shown.borrow_and_update().clone() {
                return access;
            }
            // The session has the sender.
            let _ = shown.changed().await;
        }
    }

    fn become_caller(&self, held: Held) {
        let access = held.access.clone();
        *self.login.lock().unwrap_or_else(PoisonError::into_inner) = Some(held);
        self.shown.send_replace(Some(access));
    }

    /// Returns the caller who gives this key.
    async fn holder_of(&self, secret: &str) -> Option<Result<Access, ApiError>> {
        let keys = self.keys.as_ref()?;
        let found = keys.caller(secret, self.client).await;
        if let Ok(access) = &found {
            self.shown.send_replace(Some(access.clone()));
        }
        Some(found)
    }

    /// Gives the call to the holder of a secret, or to the actor of the session, unless it has a key.
    pub(super) async fn identify(
        &self,
        call: &mut Call,
        secret: Option<&str>,
    ) -> Result<(), ApiError> {
        if !matches!(call.access, Access::Nobody) {
            return Ok(());
        }
        let by_key = match secret {
            Some(secret) => self.holder_of(secret).await.transpose()?,
            None => None,
        };
        if let Some(access) = by_key.or_else(|| self.login().map(|held| held.access)) {
            call.act_as(access);
        }
        Ok(())
    }

    /// Runs a method that changes the session; `None` if it is another one.
    pub(super) async fn run(
        &self,
        call: &Call,
        name: &str,
        fields: &Fields,
    ) -> Result<Option<Box<RawValue>>, ApiError> {
        let failed = |error: serde_json::Error| ApiError::new(Code::Internal, error.to_string());
        match name {
            "authenticate" => {
                let params: Signed = parsed(Value::Object(fields.clone()))?;
                let access = params.check(call, self.client).await?;
                self.become_caller(call.rights.hold(access).await);
                Ok(Some(to_raw_value(&true).map_err(failed)?))
            }
            "fetch_nonce" => {
                let KeyParams { pubkey } = parsed(Value::Object(fields.clone()))?;
                let nonce = nonce(&call.nonces, &pubkey, self.client)?;
                Ok(Some(to_raw_value(&nonce).map_err(failed)?))
            }
            "auth.verify" => {
                let key = fields
                    .get("key")
                    .and_then(Value::as_str)
                    .unwrap_or_default();
                let none = || Err(ApiError::new(Code::InvalidCredentials, "there are no keys"));
                let found = self.holder_of(key).await.unwrap_or_else(none);
                Ok(Some(to_raw_value(&verified(found)?).map_err(failed)?))
            }
            _ => Ok(None),
        }
    }
}

/// Result of `auth.verify`. A wrong key is no error of the call.
fn verified(found: Result<Access, ApiError>) -> Result<Value, ApiError> {
    match found {
        Ok(access) => Ok(json!({
            "valid": true,
            "name": access.key_name().map(ToString::to_string),
            "scope": access.scope().map(|scope| scope.as_str()),
        })),
        Err(error) if error.code == Code::InvalidCredentials => {
            Ok(json!({"valid": false, "name": null, "scope": null}))
        }
        Err(error) => Err(error),
    }
}

/// A nonce that an actor has signed.
#[derive(Debug, Deserialize)]
pub(crate) struct Signed {
    #[serde(alias = "public_key")]
    pubkey: String,
    #[serde(alias = "sig")]
    signature: String,
    nonce: Option<String>,
}

impl Signed {
    /// Checks the signature, and uses the nonce up. Returns the actor as a caller.
    async fn check(&self, call: &Call, client: IpAddr) -> Result<Access, ApiError> {
        let wrong = || {
            let message = "the signature is not that of this nonce by the key of an actor: ask for another nonce";
            ApiError::new(Code::InvalidCredentials, message)
        };
        let nonce = call
            .nonces
            .find(&self.pubkey, self.nonce.as_deref(), client);
        let nonce = nonce.ok_or_else(wrong)?;
        let key: PublicKey = self.pubkey.parse().map_err(|_| wrong())?;
        let signature = HEXLOWER_PERMISSIVE.decode(self.signature.as_bytes());
        let signature = signature.map_err(|_| wrong())?;
        let signature: [u8; SIGNATURE_BYTES] = signature.try_into().map_err(|_| wrong())?;
        if !key.verifies(nonce.as_bytes(), &signature) {
            return Err(wrong());
        }
        let actor = call.node().trusted(&key).await.map_err(|_| wrong())?;
        match call.nonces.use_up(&self.pubkey, &nonce) {
            Ok(()) => {}
            Err(Unusable::Used) => return Err(wrong()),
            Err(Unusable::TooMany) => {
                let message = "too many logins of this actor: wait five minutes";
                return Err(ApiError::new(Code::TooManyRequests, message));
            }
        }
        Ok(Access::Actor(actor.id))
    }
}

/// The key that is to sign a nonce.
#[derive(Debug, Deserialize)]
struct KeyParams {
    #[serde(alias = "public_key")]
    pubkey: String,
}

/// Makes a nonce for a key, for a client at this address.
pub(crate) fn nonce(nonces: &Nonces, pubkey: &str, client: IpAddr) -> Result<String, ApiError> {
    let is_key =
        (64..=130).contains(&pubkey.len()) && pubkey.bytes().all(|c| c.is_ascii_hexdigit());
    if !is_key {
        return Err(ApiError::invalid(
            "pubkey: give the public key of an actor, 64 hexadecimal digits",
        ));
    }
    Ok(nonces.make(pubkey, client))
}

/// The caller.
#[derive(Debug, Serialize)]
pub(super) struct Caller {
    authenticated: bool,
    key: Option<String>,
    actor: Option<u32>,
    /// Its scope outside of contexts, where these names work.
    scope: Option<&'static str>,
}

pub(super) async fn whoami(call: Call, _: super::jobs::NoParams) -> Result<Caller, ApiError> {
    let scope = call.rights.outside(&call.access).await?;
    Ok(Caller {
        authenticated: !matches!(call.access, Access::Nobody),
        key: call.access.key_name().map(ToString::to_string),
        actor: call.actor().map(|actor| actor.0),
        scope: scope.map(Scope::as_str),
    })
}

/// The session answers these.
pub(super) async fn in_session(_: Call, _: super::jobs::NoParams) -> Result<(), ApiError> {
    Err(ApiError::new(Code::Internal, "the session did not answer"))
}

/// A new key.
#[derive(Debug, Deserialize)]
pub(super) struct NewKeyParams {
    name: String,
    scope: String,
}

pub(super) async fn create_key(
    call: Call,
    params: NewKeyParams,
) -> Result<Box<RawValue>, ApiError> {
    let params = json!({"name": params.name, "scope": params.scope});
    let params: Params = serde_json::from_str(&params.to_string())
        .map_err(|error| ApiError::invalid(error.to_string()))?;
    let none = || ApiError::new(Code::Internal, "there is no key.create");
    find("key.create")
        .ok_or_else(none)?
        .call(call, params)
        .await
}

/// Time for which a nonce is valid, as `GET /auth/nonce` tells it.
pub(crate) fn expires_at() -> u64 {
    meshwork::host_ms() / 1000 + VALID_FOR.as_secs()
}
