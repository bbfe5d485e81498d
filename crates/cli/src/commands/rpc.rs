//! `meshwork rpc`: calls a method of the API on the store, or of a server.

use meshwork_server::api::{Params, find};
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
        if context.remote.is_none() {
            let method = find(&self.method);
            let method = method.ok_or_else(|| RpcError::NoMethod(self.method.clone()))?;
            // Other methods need no key file, which may be encrypted.
            if method.of_contexts || params.contains_key("context") {
                let client = context.client().await?;
                let me = self.actor.identity().find(&client).await?;
                context.actor = me.map(|me| me.id());
            }
        }
        let result: Box<RawValue> = context.call(&self.method, &params).await?;
        if context.out.is_json() {
            context.out.json(&result)?;
        } else {
            context.out.line(printable(result.get()))?;
        }
        Ok(Exit::DONE)
    }
}
