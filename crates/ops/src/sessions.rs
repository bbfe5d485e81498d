//! Open sessions in contexts, and the context of a call.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use meshwork::Client;
use meshwork::context::{ActorId, Caller, ContextHandle, ContextLayout};

use crate::error::OpError;

/// Greatest number of open sessions in contexts. Beyond it all are closed, and opened again when they are used.
const MOST_SESSIONS: usize = 64;

/// Place of a session: context, layout and actor.
type Key = (u32, ContextLayout, u32);

/// Open sessions in contexts, which all calls share.
#[derive(Debug, Default)]
pub struct Sessions(Mutex<HashMap<Key, Client>>);

impl Sessions {
    fn known(&self) -> MutexGuard<'_, HashMap<Key, Client>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a session for the jobs of a context. Permissions are not checked.
    pub(crate) async fn open(
        &self,
        client: &Client,
        context: &ContextHandle,
        actor: ActorId,
    ) -> Result<Client, OpError> {
        let key = (context.id().get(), context.keys().layout(), actor.0);
        if let Some(found) = self.known().get(&key).cloned() {
            return Ok(found);
        }
        let opened = client.in_context(context.keys().clone(), actor).await?;
        let mut known = self.known();
        if known.len() >= MOST_SESSIONS {
            known.clear();
        }
        known.insert(key, opened.clone());
        Ok(opened)
    }
}

/// Context of a call, after a check of the permission.
#[derive(Debug)]
pub struct Entered {
    /// The context.
    pub context: ContextHandle,
    /// The caller there.
    pub caller: Caller,
}
