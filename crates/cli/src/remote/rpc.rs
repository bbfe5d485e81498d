//! Calls of methods of the API on the store itself.

use meshwork::Client;
use meshwork_model::keys::context::ActorId;
use meshwork_server::api::{ApiError, call_on, find};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::exit_of;
use crate::error::CommandError;
use crate::exit::Exit;

/// Error of a method.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RpcError {
    #[error("there is no method {0:?}")]
    NoMethod(String),
    #[error("the parameters are no JSON object: {0}")]
    NoObject(serde_json::Error),
    #[error("{}", .0.message)]
    Failed(ApiError),
    #[error("the result cannot be read: {0}")]
    Result(serde_json::Error),
}

impl From<RpcError> for CommandError {
    fn from(error: RpcError) -> Self {
        let (exit, hint) = match &error {
            RpcError::NoMethod(_) => {
                let hint = "`meshwork rpc rpc.discover` lists the methods";
                (Exit::USAGE, Some(hint))
            }
            RpcError::NoObject(_) => (Exit::USAGE, None),
            RpcError::Failed(error) => (exit_of(error.code), error.hint),
            RpcError::Result(_) => (Exit::SYSTEM, None),
        };
        let made = Self::new(exit, error);
        match hint {
            Some(hint) => made.with_hint(hint),
            None => made,
        }
    }
}

/// Calls a method on the store, in contexts as an actor.
pub(crate) async fn on_store<A: DeserializeOwned>(
    store: (&Client, Option<ActorId>),
    method: &str,
    params: &impl Serialize,
) -> Result<A, CommandError> {
    let found = find(method).ok_or_else(|| RpcError::NoMethod(method.to_owned()))?;
    let params = serde_json::to_string(params).map_err(RpcError::NoObject)?;
    let params = serde_json::from_str(&params).map_err(RpcError::NoObject)?;
    let result = call_on(store, found, params).await;
    read(&result.map_err(RpcError::Failed)?)
}

/// Reads the result of a method.
pub(crate) fn read<A: DeserializeOwned>(result: &RawValue) -> Result<A, CommandError> {
    Ok(serde_json::from_str(result.get()).map_err(RpcError::Result)?)
}
