//! `meshwork rpc`: calls a method of the API on the store, or of a server.

use meshwork_server::api::{Params, call_on, find};
use serde_json::value::RawValue;

use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::printable;
use crate::remote::RpcError;
use crate::scope::ActorArgs;

/// Call a method of the API on the store, or of a server with --api
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

impl Rpc {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let params: Params = serde_json::from_str(&self.params).map_err(RpcError::NoObject)?;
        let result: Box<RawValue> = match context.remote {
            Some(_) => context.call(&self.method, &params).await?,
            None => {
                let method = find(&self.method).ok_or(RpcError::NoMethod(self.method))?;
                let client = context.client().await?;
                // Other methods need no key file, which may be encrypted.
                let actor = match method.of_contexts || params.contains_key("context") {
                    true => self.actor.identity().find(&client).await?,
                    false => None,
                };
                let actor = actor.map(|me| me.id());
                let result = call_on((&client, actor), method, params).await;
                result.map_err(RpcError::Failed)?
            }
        };
        if context.out.is_json() {
            context.out.json(&result)?;
        } else {
            context.out.line(printable(result.get()))?;
        }
        Ok(Exit::DONE)
    }
}
