//! Results of reading methods. Pages that are open at the same time share them, so that many viewers cost what one costs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::OnceCell;

use crate::api::{ApiError, Call, Code, Params, READ_JOBS, find};

/// Time for which a result is shared.
const FRESH: Duration = Duration::from_secs(1);
/// Time for which the list of contexts, and the queues of one, are shared: each reading of these scans its keys.
const SCANNED: Duration = Duration::from_secs(30);
/// Time that the store has to answer: a page has to say within three seconds that it does not.
const PATIENCE: Duration = Duration::from_millis(2500);
/// Greatest number of shared results.
const MOST: usize = 512;

/// Method, parameters, and what decides on the rights: scope, actor and context of the key.
type Key = (String, String, String);
type Answer = Arc<OnceCell<Result<Arc<str>, ApiError>>>;

/// Shared results.
#[derive(Debug, Default)]
pub(super) struct Reads(Mutex<HashMap<Key, (Instant, Answer)>>);

impl Reads {
    fn table(&self) -> MutexGuard<'_, HashMap<Key, (Instant, Answer)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets all results, after a change.
    pub(super) fn forget(&self) {
        self.table().clear();
    }

    /// Returns the result of a method as JSON.
    pub(super) async fn read(
        &self,
        call: Call,
        method: &str,
        params: Value,
    ) -> Result<Arc<str>, ApiError> {
        let (scope, actor, context) = (call.access.scope(), call.actor(), call.access.context());
        let rights = format!("{scope:?} {actor:?} {context:?}");
        let key = (method.to_owned(), params.to_string(), rights);
        let lasts = match method {
            "queue.list" if params.get("context").is_some() => SCANNED,
            "context.list" => SCANNED,
            _ => FRESH,
        };
        let context = params.get("context").and_then(Value::as_u64);
        if let Some(context) = context.filter(|_| lasts == SCANNED) {
            // A result that is kept for long must not outlive the permission.
            let context = u32::try_from(context).ok();
            call.clone().enter(context, READ_JOBS).await?;
        }
        let answer = self.answer(key.clone(), lasts);
        let result = answer
            .get_or_init(|| ask(call, method, params))
            .await
            .clone();
        if result.is_err() {
            // A failure is no result to keep for long.
            self.table().remove(&key);
        }
        result
    }

    fn answer(&self, key: Key, lasts: Duration) -> Answer {
        let now = Instant::now();
        let mut table = self.table();
        if let Some((_, answer)) = table.get(&key).filter(|(until, _)| *until > now) {
            return Arc::clone(answer);
        }
        if table.len() >= MOST {
            table.retain(|_, (until, _)| *until > now);
        }
        if table.len() >= MOST {
            table.clear();
        }
        let answer = Answer::default();
        table.insert(key, (now + lasts, Arc::clone(&answer)));
        answer
    }
}

/// Reads the result of a method, which nobody shares.
pub(super) async fn fresh<T: DeserializeOwned>(
    call: Call,
    method: &str,
    params: Value,
) -> Result<T, ApiError> {
    let text = ask(call, method, params).await?;
    parsed(method, &text)
}

/// Reads a result as far as a page needs it.
pub(super) fn parsed<T: DeserializeOwned>(method: &str, text: &str) -> Result<T, ApiError> {
    serde_json::from_str(text).map_err(|error| {
        let message = format!("result of {method} not read: {error}");
        ApiError::new(Code::Internal, message)
    })
}

async fn ask(call: Call, name: &str, params: Value) -> Result<Arc<str>, ApiError> {
    let late = || ApiError::new(Code::StorageError, "the store does not answer");
    let run = tokio::time::timeout(PATIENCE, run(call, name, params));
    run.await.unwrap_or_else(|_| Err(late()))
}

/// Calls a method of the API.
pub(super) async fn run(call: Call, name: &str, params: Value) -> Result<Arc<str>, ApiError> {
    let none = || ApiError::new(Code::Internal, format!("there is no method {name}"));
    let method = find(name).ok_or_else(none)?;
    let params = self::params(params)?;
    let result = method.call(call, params).await?;
    Ok(result.get().into())
}

/// Reads parameters from an object.
pub(super) fn params(params: Value) -> Result<Params, ApiError> {
    let unread = |error: serde_json::Error| ApiError::new(Code::Internal, error.to_string());
    serde_json::from_value(params).map_err(unread)
}
