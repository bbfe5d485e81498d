//! Methods of the API's own keys.

use meshwork_broker::MAX_API_KEYS;
use meshwork_model::api_key::{ApiKey, SECRET_BYTES, Scope};
use meshwork_model::keys::context::{ActorId, ContextId};
use meshwork_model::name::ApiKeyName;
use meshwork_model::time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::access::{Access, new_key};
use crate::api::call::Call;
use crate::api::error::{ApiError, Code};
use crate::api::method::{HttpVerb, Method, Reply};
use meshwork_ops::Paging;
use meshwork_ops::number;
use meshwork_ops::params::{moment, parse, parse_some};

/// Greatest number of keys of an actor after which its keys make no more: an actor cannot use up all places.
const MOST_OF_ACTOR: usize = 100;

/// The methods.
pub(in crate::api) fn methods() -> Vec<Method> {
    use HttpVerb::{Delete, Get, Post};
    use Scope::Admin;
    vec![
        Method::new(
            ("key.create", Admin),
            (Post, "/v1/keys"),
            "Make a key of the API; the result has it once. The key of an actor makes keys of this actor, with no more rights than it has",
            create,
        )
        .also(&["auth.key.create"])
        .creates()
        .of_caller(),
        Method::new(
            ("key.list", Admin),
            (Get, "/v1/keys"),
            "List the keys of the API that the caller may make, without their secrets",
            list,
        )
        .of_caller(),
        Method::new(
            ("key.revoke", Admin),
            (Delete, "/v1/keys/{name}"),
            "Revoke a key of the API, within a second",
            revoke,
        )
        .also(&["key.remove"])
        .of_caller(),
        Method::new(
            ("key.rotate", Admin),
            (Post, "/v1/keys/{name}/rotate"),
            "Replace the secret of a key; the old one is refused within a second",
            rotate,
        )
        .of_caller(),
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
    /// Actor whose roles decide in contexts. Default: that of the caller's key; with `context` that of the caller.
    actor: Option<String>,
    /// The only context in which it may call.
    context: Option<u32>,
    /// Time from which on it is refused (RFC 3339). Default: that of the key of an actor that makes it.
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
    /// The only context in which it may call.
    context: Option<u32>,
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

/// Page of keys of the API.
#[derive(Debug, Serialize, JsonSchema)]
struct KeyList {
    /// The keys, by name.
    keys: Vec<KeyView>,
    /// Records of the page that cannot be read, with the reason.
    unreadable: Vec<String>,
    /// Cursor of the next page; null after the last one.
    next: Option<String>,
}

impl From<&ApiKey> for KeyView {
    fn from(key: &ApiKey) -> Self {
        Self {
            name: key.name.to_string(),
            scope: key.scope.as_str(),
            actor: key.actor.map(|actor| actor.to_string()),
            context: key.context.map(ContextId::get),
            created_at: time::iso(key.created_ms),
            expires_at: key.expires_ms.map(time::iso),
        }
    }
}

/// The key of an actor, which makes and changes keys of this actor alone.
fn own_key(call: &Call) -> Option<&ApiKey> {
    match &call.access {
        Access::Key(key) if key.actor.is_some() => Some(key),
        _ => None,
    }
}

/// Returns true if `key` has no more rights than `own`, the key of an actor, and is of this actor too.
fn is_within(own: &ApiKey, key: &ApiKey) -> bool {
    let ends = |own: u64| key.expires_ms.is_some_and(|end| end <= own);
    key.actor == own.actor
        && own.scope.allows(key.scope)
        && own.context.is_none_or(|own| key.context == Some(own))
        && own.expires_ms.is_none_or(ends)
}

/// Refuses a key that the caller may not make.
async fn check_new(call: &Call, key: &ApiKey) -> Result<(), ApiError> {
    let Some(own) = own_key(call) else {
        return check_named(call, key).await;
    };
    if !is_within(own, key) {
        let message =
            "the key of an actor makes keys of this actor alone, with no more rights than it has";
        return Err(ApiError::new(Code::Forbidden, message)
            .hint("`meshwork key create` on the store, or a key of no actor, makes others"));
    }
    check_named(call, key).await?;
    let keys = call.client.broker().api_keys().await?;
    let of_actor = keys.iter().flatten().filter(|it| it.actor == key.actor);
    match of_actor.count() < MOST_OF_ACTOR {
        true => Ok(()),
        false => {
            let message = format!("the actor has {MOST_OF_ACTOR} keys: revoke one first");
            Err(ApiError::new(Code::LimitExceeded, message))
        }
    }
}

/// Refuses a key of an actor or a context that does not exist: who gets the number later would have the key's rights.
async fn check_named(call: &Call, key: &ApiKey) -> Result<(), ApiError> {
    if let Some(actor) = key.actor
        && call.node().actor(actor).await?.revoked_at.is_some()
    {
        let message = format!("actor: the keys of actor {actor} are revoked");
        return Err(ApiError::new(Code::Conflict, message));
    }
    let Some(context) = key.context else {
        return Ok(());
    };
    if key.actor.is_none() {
        let message = "actor: a key for a context needs the actor whose roles decide there";
        return Err(ApiError::invalid(message));
    }
    call.node().context(context).await?;
    Ok(())
}

async fn create(call: Call, params: CreateParams) -> Result<Reply<NewKey<'static>>, ApiError> {
    let name: ApiKeyName = parse("name", &params.name)?;
    let own = own_key(&call);
    let context = params.context.map(number).transpose()?;
    let default = match context {
        Some(_) => call.actor(),
        None => own.and_then(|own| own.actor),
    };
    let actor = parse_some::<ActorId>("actor", params.actor.as_deref())?.or(default);
    let expires = params.expires_at.as_deref();
    let expires = expires.map(|at| moment("expires_at", at)).transpose()?;
    let expires = expires.or(own.and_then(|own| own.expires_ms));
    let scope = parse("scope", &params.scope)?;
    let random = rand::random::<[u8; SECRET_BYTES]>();
    let now = meshwork::host_ms();
    let limits = (actor, context, expires);
    let (secret, key) = new_key(name, scope, limits, (&random, now));
    check_new(&call, &key).await?;
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

async fn list(call: Call, params: Paging) -> Result<Reply<KeyList>, ApiError> {
    let own = own_key(&call);
    let mut all = call.client.broker().api_keys().await?;
    // A key sees those within its rights alone.
    all.retain(|key| own.is_none_or(|own| key.as_ref().is_ok_and(|key| is_within(own, key))));
    let (page, next) = params.page(all)?;
    let (mut keys, mut unreadable) = (Vec::new(), Vec::new());
    for key in page {
        match key {
            Ok(key) => keys.push(KeyView::from(&key)),
            Err(error) => unreadable.push(error.to_string()),
        }
    }
    Ok(Reply::new(&KeyList {
        keys,
        unreadable,
        next,
    }))
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

/// Reads a key that the caller may change: to the key of an actor, keys beyond its own rights are none.
async fn known(call: &Call, name: &ApiKeyName) -> Result<Option<ApiKey>, ApiError> {
    let key = call.client.broker().api_key(name).await?;
    Ok(match own_key(call) {
        Some(own) => key.filter(|key| is_within(own, key)),
        None => key,
    })
}

async fn revoke(call: Call, params: NameParams) -> Result<Reply<RevokedKey>, ApiError> {
    let name: ApiKeyName = parse("name", &params.name)?;
    // A record that cannot be read can be revoked, too.
    if own_key(&call).is_some() && known(&call, &name).await?.is_none() {
        return Err(no_key(&name));
    }
    match call.client.broker().revoke_api_key(&name).await? {
        true => Ok(Reply::new(&RevokedKey { name: params.name })),
        false => Err(no_key(&name)),
    }
}

async fn rotate(call: Call, params: NameParams) -> Result<Reply<NewKey<'static>>, ApiError> {
    let name: ApiKeyName = parse("name", &params.name)?;
    let old = known(&call, &name).await?;
    let old = old.ok_or_else(|| no_key(&name))?;
    let random = rand::random::<[u8; SECRET_BYTES]>();
    let limits = (old.actor, old.context, old.expires_ms);
    let (secret, key) = new_key(name, old.scope, limits, (&random, meshwork::host_ms()));
    call.client.broker().replace_api_key(&key).await?;
    Ok(Reply::borrowed(&NewKey {
        key: secret.reveal(),
        view: KeyView::from(&key),
    }))
}
