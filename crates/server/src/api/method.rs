//! A method of the API: name, parameters, result, scope and path, and the function that runs it.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use axum::http;
use data_encoding::HEXLOWER;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use meshwork::Client;
use meshwork_model::api_key::Scope;
use meshwork_model::keys::context::{ActorId, ContextKeys};
use meshwork_model::read;
use meshwork_ops::{OpError, Store};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde::{Deserializer, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use sha2::{Digest, Sha256};

use super::access::Access;
use super::away::unless_away;
use super::call::{Call, Calls};
use super::error::{ApiError, Code};

/// Time that the store has to answer a call that does not wait for a job.
const STORE_TIMEOUT: Duration = Duration::from_secs(18);

/// A method of HTTP that the API uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HttpVerb {
    /// Reads.
    Get,
    /// Creates or changes.
    Post,
    /// Replaces.
    Put,
    /// Deletes.
    Delete,
}

impl HttpVerb {
    /// The method as HTTP has it.
    #[must_use]
    pub fn method(self) -> http::Method {
        match self {
            Self::Get => http::Method::GET,
            Self::Post => http::Method::POST,
            Self::Put => http::Method::PUT,
            Self::Delete => http::Method::DELETE,
        }
    }

    /// Returns true if the parameters beside those of the path come in a body.
    #[must_use]
    pub fn has_body(self) -> bool {
        matches!(self, Self::Post | Self::Put)
    }
}

/// Parameters of a call by name. Their JSON is unchanged.
pub type Params = BTreeMap<String, Box<RawValue>>;

type Run =
    dyn Fn(Call, Params) -> BoxFuture<'static, Result<Box<RawValue>, ApiError>> + Send + Sync;

/// A method of the API.
pub struct Method {
    /// Name, as in `job.create`.
    pub name: &'static str,
    /// Its purpose, one line.
    pub summary: &'static str,
    /// The scope that a key needs.
    pub scope: Scope,
    /// Its HTTP method.
    pub verb: HttpVerb,
    /// Its path, with parameters in braces.
    pub path: &'static str,
    /// Other names.
    pub aliases: &'static [&'static str],
    /// Status of a successful response.
    pub status: u16,
    /// True if REST streams its result with `follow=true`.
    pub follows: bool,
    /// True if it is only about contexts, where the key's actor decides.
    pub of_contexts: bool,
    /// True if it is about the caller and the server: it needs no right outside of contexts.
    of_caller: bool,
    /// Names of those of its parameters that select a place: `context`, `spread`.
    places: Vec<&'static str>,
    /// True if it takes an idempotency key.
    pub keyed: bool,
    /// True if it may answer 202: what it began goes on.
    pub goes_on: bool,
    waits: bool,
    params: fn(&mut SchemaGenerator) -> Schema,
    result: fn(&mut SchemaGenerator) -> Schema,
    run: Box<Run>,
}

impl Method {
    /// Returns a method that is an operation.
    pub(crate) fn of<P, R, F>(
        (name, scope): (&'static str, Scope),
        (verb, path): (HttpVerb, &'static str),
        summary: &'static str,
        operation: impl Fn(Store, P) -> F + Copy + Send + Sync + 'static,
    ) -> Self
    where
        P: DeserializeOwned + JsonSchema + Send + 'static,
        R: Serialize + JsonSchema,
        F: Future<Output = Result<R, OpError>> + Send + 'static,
    {
        let handler = move |call: Call, params: P| {
            operation(call.store, params).map(|answer| Ok(Reply::new(&answer?)))
        };
        Self::new((name, scope), (verb, path), summary, handler)
    }

    /// Returns a method that `handler` runs.
    pub(crate) fn new<P, R, F>(
        (name, scope): (&'static str, Scope),
        (verb, path): (HttpVerb, &'static str),
        summary: &'static str,
        handler: impl Fn(Call, P) -> F + Copy + Send + Sync + 'static,
    ) -> Self
    where
        P: DeserializeOwned + JsonSchema + Send + 'static,
        R: Serialize + JsonSchema,
        F: Future<Output = Result<Reply<R>, ApiError>> + Send + 'static,
    {
        let run = move |mut call: Call, params: Params| {
            let params = params_of::<P>(&mut call, params);
            async move {
                let params = params?;
                handler(call, params).await?.written()
            }
            .boxed()
        };
        Self {
            name,
            summary,
            scope,
            verb,
            path,
            aliases: &[],
            status: 200,
            follows: false,
            of_contexts: false,
            of_caller: false,
            places: places_of::<P>(),
            keyed: false,
            goes_on: false,
            waits: false,
            params: SchemaGenerator::subschema_for::<P>,
            result: SchemaGenerator::subschema_for::<R>,
            run: Box::new(run),
        }
    }

    /// Gives it other names.
    pub(crate) fn also(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    /// Lets it take the time that its caller gives.
    pub(crate) fn waits(mut self) -> Self {
        self.waits = true;
        self
    }

    /// Lets REST stream its result.
    pub(crate) fn follows(mut self) -> Self {
        self.follows = true;
        self
    }

    /// Says that it is only about contexts.
    pub(crate) fn in_contexts(mut self) -> Self {
        self.of_contexts = true;
        self
    }

    /// Says that it is about the caller and the server.
    pub(crate) fn of_caller(mut self) -> Self {
        self.of_caller = true;
        self
    }

    /// Gives its successful responses the status 201.
    pub(crate) fn creates(mut self) -> Self {
        self.status = 201;
        self
    }

    /// Lets a repeated call with the same idempotency key create nothing again.
    pub(crate) fn keyed(mut self) -> Self {
        self.keyed = true;
        self
    }

    /// Lets it answer 202 if what it began goes on.
    pub(crate) fn goes_on(mut self) -> Self {
        self.goes_on = true;
        self
    }

    /// Refuses an idempotency key that it would ignore.
    fn check_key(&self, call: &Call) -> Result<(), ApiError> {
        if call.idempotency_key.is_none() || self.keyed || self.verb == HttpVerb::Get {
            return Ok(());
        }
        let message = format!("Idempotency-Key: {} takes none: leave it out", self.name);
        let hint =
            "job.create and job.run take one; an id makes batch.create and batch.add repeatable";
        Err(ApiError::invalid(message).hint(hint))
    }

    /// Schema of its parameters, an object.
    pub fn params(&self, generator: &mut SchemaGenerator) -> Schema {
        (self.params)(generator)
    }

    /// Schema of its result.
    pub fn result(&self, generator: &mut SchemaGenerator) -> Schema {
        (self.result)(generator)
    }

    /// Calls the method.
    ///
    /// # Errors
    /// If the key may not call it, a parameter is wrong, or the call fails.
    pub async fn call(&self, call: Call, mut params: Params) -> Result<Box<RawValue>, ApiError> {
        call.access.check(self.scope, self.name)?;
        self.check_key(&call)?;
        let watched = call.clone();
        let broker = call.client.broker().clone();
        let run = async {
            self.place(&call, &mut params).await?;
            (self.run)(call, params).await
        };
        // It is large, and would be copied.
        let run = Box::pin(watched.while_allowed(run));
        if self.waits {
            return unless_away(&broker, true, run).await;
        }
        let late = ApiError::new(Code::StorageError, "the store does not answer")
            .hint("repeat the call with the same id or Idempotency-Key");
        let run = tokio::time::timeout(STORE_TIMEOUT, run).map(|run| run.unwrap_or(Err(late)));
        unless_away(&broker, false, run).await
    }

    /// Gives a call without a place the context of its key, or that which a job's id names. Outside of contexts the caller
    /// needs the scope there.
    async fn place(&self, call: &Call, params: &mut Params) -> Result<(), ApiError> {
        if let Some(context) = call.access.context().filter(|_| selects(params, "spread")) {
            let message = format!(
                "spread: this key is for context {context} alone, and spread queues have several"
            );
            return Err(ApiError::new(Code::Forbidden, message));
        }
        let is_named = |params: &Params| self.places.iter().any(|name| selects(params, name));
        if self.places.contains(&"context") && !is_named(params) {
            let id = params
                .get("id")
                .and_then(|id| serde_json::from_str::<String>(id.get()).ok());
            let named = || id.and_then(|id| ContextKeys::named_in(&id));
            if let Some(context) = call.access.context().or_else(named) {
                let number = to_raw_value(&context.get());
                let failed =
                    |error: serde_json::Error| ApiError::new(Code::Internal, error.to_string());
                params.insert("context".to_owned(), number.map_err(failed)?);
            }
        }
        match self.of_contexts || self.of_caller || is_named(params) {
            true => Ok(()),
            false => call.outside(self.scope, self.name).await,
        }
    }

    /// Returns true if it needs no right outside of contexts, whatever its parameters are.
    pub(crate) fn is_of_caller(&self) -> bool {
        self.of_caller
    }
}

/// Returns the parameters of a method that select a place.
fn places_of<P: JsonSchema>() -> Vec<&'static str> {
    let schema = P::json_schema(&mut SchemaGenerator::default());
    let properties = schema.get("properties");
    let has = |name: &&str| properties.and_then(|all| all.get(name)).is_some();
    ["context", "spread"].into_iter().filter(has).collect()
}

/// Returns true if a parameter selects a place.
fn selects(params: &Params, name: &str) -> bool {
    match params.get(name).map(|given| given.get()) {
        None | Some("null") => false,
        // A context that is no number is an error, and not the same as none.
        Some("false") => name == "context",
        Some(_) => true,
    }
}

/// Calls a method on a store, as who may call all of them; in contexts as this actor.
///
/// # Errors
/// If a parameter is wrong, or the call fails.
pub async fn call_on(
    (client, own_actor): (&Client, Option<ActorId>),
    method: &Method,
    params: Params,
) -> Result<Box<RawValue>, ApiError> {
    let shared = Calls::new(client.clone(), own_actor);
    let call = Call::new(&shared, Access::All);
    tokio::select! {
        result = method.call(call, params) => result,
        never = shared.census.run(client) => never,
    }
}

/// Reads the parameters, and keeps their digest. The wait is no part of it, since it does not change the object.
fn params_of<P: DeserializeOwned>(call: &mut Call, mut params: Params) -> Result<P, ApiError> {
    let written = |params: &Params| {
        let failed = |error| ApiError::new(Code::Internal, format!("not written: {error}"));
        serde_json::to_string(params).map_err(failed)
    };
    let text = written(&params)?;
    params.remove("wait");
    call.digest = HEXLOWER.encode(&Sha256::digest(written(&params)?));
    parsed(&mut serde_json::Deserializer::from_str(&text))
}

/// Reads parameters. An error begins with the path of the field.
pub(crate) fn parsed<'de, P: serde::Deserialize<'de>>(
    from: impl Deserializer<'de, Error = serde_json::Error>,
) -> Result<P, ApiError> {
    read::from(from).map_err(ApiError::invalid)
}

impl fmt::Debug for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Method({})", self.name)
    }
}

/// Result of a method. A view that borrows is written at once.
pub(crate) struct Reply<R> {
    json: Result<Box<RawValue>, serde_json::Error>,
    of: std::marker::PhantomData<fn() -> R>,
}

impl<R: Serialize> Reply<R> {
    /// Returns a result.
    pub(crate) fn new(value: &R) -> Self {
        Self::borrowed(value)
    }

    /// Returns a result that was written from a borrowed form of `R`.
    pub(crate) fn borrowed(value: &(impl Serialize + ?Sized)) -> Self {
        Self {
            json: to_raw_value(value),
            of: std::marker::PhantomData,
        }
    }

    fn written(self) -> Result<Box<RawValue>, ApiError> {
        let failed = |error| ApiError::new(Code::Internal, format!("result not written: {error}"));
        self.json.map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_selected_by_more_than_null() {
        for (given, context, spread) in [
            ("null", false, false),
            ("false", true, false),
            ("true", true, true),
            ("7", true, true),
        ] {
            let given = || RawValue::from_string(given.to_owned()).unwrap();
            let names = ["context", "spread"].map(str::to_owned);
            let params = names.map(|name| (name, given())).into_iter().collect();
            let selected = ["context", "spread"].map(|name| selects(&params, name));
            assert_eq!(selected, [context, spread]);
        }
        assert!(!selects(&Params::new(), "context"));
    }
}
