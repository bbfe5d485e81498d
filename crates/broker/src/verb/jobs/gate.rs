//! gate: opens a gate of a context, for the jobs that wait for it.

use meshwork_macros::boxed;
use meshwork_model::keys::context::{ContextKeys, InvalidPrerequisite, Prerequisite};

use crate::broker::Broker;
use crate::error::Error;

impl Broker {
    /// Opens a gate of a context permanently, and queues the jobs that wait only for it. Returns true if the gate was
    /// closed. May be repeated. If the call breaks after the gate was opened, workers queue the jobs later.
    ///
    /// # Errors
    /// [`Error::NoContext`] if the broker has no context. [`Error::Prerequisite`] if the name is that of a job, a
    /// message or a flow, or is not valid. An error if the server refuses a call.
    #[boxed]
    pub async fn open_gate(&self, name: &str) -> Result<bool, Error> {
        let context = self.keys.context().ok_or(Error::NoContext)?;
        gate(context, name)?;
        let opened = redis::Cmd::sadd(context.gates(), name);
        let opened: usize = self.ask("open_gate", &opened).await?;
        // The blank marks an open gate, whatever a record of this name contains.
        let push = redis::Cmd::lpush(self.keys.unresolved(), format!(" {name}"));
        self.ask::<usize>("open_gate", &push).await?;
        while self.resolve_dependents().await? {}
        Ok(opened > 0)
    }
}

fn gate(context: &ContextKeys, name: &str) -> Result<(), InvalidPrerequisite> {
    match context.parse_prerequisite(name)? {
        Prerequisite::Gate(_) => Ok(()),
        Prerequisite::Job(_) | Prerequisite::Message(_) | Prerequisite::Flow(_) => {
            Err(InvalidPrerequisite {
                text: name.to_owned(),
                fault: "it ends by itself: a gate has any other name".to_owned(),
            })
        }
    }
}
