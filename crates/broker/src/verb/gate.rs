//! gate: opening a gate of a context, for the jobs that wait for it.

use meshwork_model::keys::context::{ContextKeys, InvalidPrerequisite, Prerequisite};

use crate::{Broker, Error};

impl Broker {
    /// Opens a gate of a context, for good, and releases the jobs that wait for it and for nothing else. True if it was
    /// not open. May be repeated. If it breaks off when the gate is open, workers release the jobs later.
    ///
    /// # Errors
    /// [`Error::NoContext`] if the broker is of no context, [`Error::Prerequisite`] if the name is that of a job, a message
    /// or a flow, or none at all, and if the server does not take a call.
    pub async fn open_gate(&self, name: &str) -> Result<bool, Error> {
        let context = self.keys.context().ok_or(Error::NoContext)?;
        gate(context, name)?;
        let opened = redis::Cmd::sadd(context.gates(), name);
        let opened: usize = self.ask("open_gate", &opened).await?;
        // A blank: it is open, whatever a record of this name says.
        let told = redis::Cmd::lpush(self.keys.settle(), format!(" {name}"));
        self.ask::<usize>("open_gate", &told).await?;
        while self.settle().await? {}
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
