//! Methods of the API's own keys.

use meshwork_broker::MAX_API_KEYS;
use meshwork_model::api_key::{ApiKey, SECRET_BYTES, Scope};
use meshwork_model::keys::context::ActorId;
use meshwork_model::name::ApiKeyName;
use meshwork_model::time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::queue::NoParams;
use crate::api::access::new_key;
use crate::api::call::Call;
use crate::api::error::{ApiError, Code};
use crate::api::method::{HttpVerb, Method, Reply};
use crate::api::params::{moment, parse, parse_some};

/// The methods.
pub(in crate::api) fn methods() -> Vec<Method> {
    use HttpVerb::{Delete, Get, Post};
    use Scope::Admin;
    vec![
        Method::new(
            ("key.create", Admin),
            (Post, "/v1/keys"),
            "Make a key of the API; the result has it once",
            create,
        )
        .also(&["auth.key.create"])
        .creates(),
        Method::new(
            ("key.list", Admin),
            (Get, "/v1/keys"),
            "List the keys of the API, without their secrets",
            list,
        ),
        Method::new(
            ("key.revoke", Admin),
            (Delete, "/v1/keys/{name}"),
            "Revoke a key of the API, within a second",
            revoke,
        )
        .also(&["key.remove"]),
        Method::new(
            ("key.rotate", Admin),
            (Post, "/v1/keys/{name}/rotate"),
            "Replace the secret of a key; the old one is refused within a second",
            rotate,
        ),
    ]
}

/// A new key.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "KeyCreateParams")]
struct CreateParams {
    /// Name of the key, which is part of it.
    name: String,
    /// `admin`, `user`, `registrar` or `viewer`.
    scope: String,
    /// Actor whose roles decide in contexts.
    actor: Option<String>,
    /// Time from which on it is refused (RFC 3339).
    expires_at: Option<String>,
}

/// Key of the API.
#[derive(Debug, Serialize, JsonSchema)]
struct KeyView {
    /// Name of the key.
    name: String,
    /// Methods that it may call: `admin`, `user`, `registrar` or `viewer`.
    scope: &'static str,
    /// Actor whose roles decide in contexts.
    actor: Option<String>,
    /// Time of creation (RFC 3339).
    created_at: String,
    /// Time from which on it is refused (RFC 3339).
    expires_at: Option<String>,
}

/// New key of the API.
#[derive(Debug, Serialize, JsonSchema)]
struct NewKey<'a> {
    /// The key. It is never shown again.
    key: &'a str,
    /// Its record.
    #[serde(flatten)]
    view: KeyView,
}

/// Keys of the API.
#[derive(Debug, Serialize, JsonSchema)]
struct KeyList {
    /// The keys, by name.
    keys: Vec<KeyView>,
    /// Records that cannot be read, with the reason.
    unreadable: Vec<String>,
}

impl From<&ApiKey> for KeyView {
    fn from(key: &ApiKey) -> Self {
        Self {
            name: key.name.to_string(),
            scope: key.scope.as_str(),
            actor: key.actor.map(|actor| actor.to_string()),
            created_at: time::iso(key.created_ms),
            expires_at: key.expires_ms.map(time::iso),
        }
    }
}

async fn create(call: Call, params: CreateParams) -> Result<Reply<NewKey<'static>>, ApiError> {
    let name: ApiKeyName = parse("name", &params.name)?;
    let actor = parse_some::<ActorId>("actor", params.actor.as_deref())?;
    let expires = params.expires_at.as_deref();
    let expires = expires.map(|at| moment("expires_at", at)).transpose()?;
    let scope = parse("scope", &params.scope)?;
    let random = rand::random::<[u8; SECRET_BYTES]>();
    let now = meshwork::host_ms();
    let (secret, key) = new_key(name, scope, (actor, expires), (&random, now));
    if !call.client.broker().create_api_key(&key).await? {
        let message = format!(
            "there is a key {} already, or there are {MAX_API_KEYS} keys",
            key.name
        );
        return Err(ApiError::new(Code::Conflict, message).hint("key.list lists the keys"));
    }
    Ok(Reply::borrowed(&NewKey {
        key: secret.reveal(),
        view: KeyView::from(&key),
    }))
}

async fn list(call: Call, _: NoParams) -> Result<Reply<KeyList>, ApiError> {
    let (mut keys, mut unreadable) = (Vec::new(), Vec::new());
    for key in call.client.broker().api_keys().await? {
        match key {
            Ok(key) => keys.push(KeyView::from(&key)),
            Err(error) => unreadable.push(error.to_string()),
        }
    }
    Ok(Reply::new(&KeyList { keys, unreadable }))
}

/// The name of a key.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "KeyParams")]
struct NameParams {
    /// Name of the key.
    name: String,
}

/// A key that was revoked.
#[derive(Debug, Serialize, JsonSchema)]
struct RevokedKey {
    /// Name of the key.
    name: String,
}

fn no_key(name: &ApiKeyName) -> ApiError {
    let message = format!("there is no key {name}");
    ApiError::new(Code::NotFound, message).hint("key.list lists the keys")
}

async fn revoke(call: Call, params: NameParams) -> Result<Reply<RevokedKey>, ApiError> {
    let name: ApiKeyName = parse("name", &params.name)?;
    match call.client.broker().revoke_api_key(&name).await? {
        true => Ok(Reply::new(&RevokedKey { name: params.name })),
        false => Err(no_key(&name)),
    }
}

async fn rotate(call: Call, params: NameParams) -> Result<Reply<NewKey<'static>>, ApiError> {
    let name: ApiKeyName = parse("name", &params.name)?;
    let old = call.client.broker().api_key(&name).await?;
    let old = old.ok_or_else(|| no_key(&name))?;
    let random = rand::random::<[u8; SECRET_BYTES]>();
    let limits = (old.actor, old.expires_ms);
    let (secret, key) = new_key(name, old.scope, limits, (&random, meshwork::host_ms()));
    call.client.broker().replace_api_key(&key).await?;
    Ok(Reply::borrowed(&NewKey {
        key: secret.reveal(),
        view: KeyView::from(&key),
    }))
}
