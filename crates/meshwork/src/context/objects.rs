//! Rights to the objects that scripts of a context store.

use futures_util::future::BoxFuture;
use meshwork_model::access::{Object, Operation};
use meshwork_model::keys::context::ActorId;

use super::ContextHandle;
use crate::client::ObjectAccess;

impl ObjectAccess for ContextHandle {
    fn allow<'a>(
        &'a self,
        caller: &'a str,
        operation: Operation,
    ) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let actor: Result<ActorId, _> = caller.parse();
            let actor =
                actor.map_err(|error| format!("the caller of the job is no actor: {error}"))?;
            let allowed = Self::allow(self, actor, Object::Stored, operation).await;
            allowed.map(drop).map_err(|error| error.to_string())
        })
    }
}
