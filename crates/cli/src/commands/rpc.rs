//! `meshwork rpc`: calls a method of the API on the store, without a server.

use meshwork::Client;
use meshwork_server::api::{ApiError, Code, Params, call_on, find};
use serde_json::Value;

use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::printable;
use crate::scope::ActorArgs;

/// Call a method of the API on the store, without a server
///
/// Prints the result as JSON. `meshwork rpc rpc.discover` describes all methods.
#[derive(Debug, clap::Args)]
pub(crate) struct Rpc {
    /// The method, as in `job.get`
    method: String,
    /// Its parameters, an object of JSON
    #[arg(default_value = "{}")]
    params: String,
    #[command(flatten)]
    actor: ActorArgs,
}

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

/// Returns the exit code of an error of the API.
fn exit_of(code: Code) -> Exit {
    match code {
        Code::InvalidParams | Code::MethodNotFound => Exit::USAGE,
        Code::NotFound => Exit::NO_JOB,
        Code::Timeout => Exit::NOT_ENDED,
        Code::StorageError => Exit::SERVER,
        Code::Internal => Exit::SYSTEM,
        _ => Exit::FAILED,
    }
}

impl Rpc {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let method = find(&self.method).ok_or(RpcError::NoMethod(self.method))?;
        let params: Params = serde_json::from_str(&self.params).map_err(RpcError::NoObject)?;
        let client = context.client().await?;
        // Other methods need no key file, which may be encrypted.
        let actor = match method.of_contexts || params.contains_key("context") {
            true => self.actor.identity().find(&client).await?,
            false => None,
        };
        let actor = actor.map(|me| me.id());
        let result = call_on((&client, actor), method, params).await;
        let result = result.map_err(RpcError::Failed)?;
        if context.out.is_json() {
            context.out.json(&result)?;
        } else {
            context.out.line(printable(result.get()))?;
        }
        Ok(Exit::DONE)
    }
}

/// Calls a method with these parameters.
pub(crate) async fn call(
    client: &Client,
    method: &str,
    params: &Value,
) -> Result<Value, CommandError> {
    let found = find(method).ok_or_else(|| RpcError::NoMethod(method.to_owned()))?;
    let params = serde_json::from_str(&params.to_string()).map_err(RpcError::NoObject)?;
    let result = call_on((client, None), found, params).await;
    let result = result.map_err(RpcError::Failed)?;
    Ok(serde_json::from_str(result.get()).map_err(RpcError::Result)?)
}
