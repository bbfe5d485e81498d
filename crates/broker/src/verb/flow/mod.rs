//! Flows of a context: their records, and the verbs of their steps. The caller decides what happens. A step claims its
//! flow under a lease, and each commit proves the claim by its token.

mod deploy;
mod read;
mod step;
mod submit;
mod sweep;

use meshwork_macros::boxed;
use meshwork_model::keys::context::{ContextKeys, FlowId};

pub use deploy::{Deployed, Deployment};
pub use read::{FlowFields, Nodes};
pub use step::{Answered, Approval, FlowClaim, FlowLease, Moves, Retried, StepDone, Stopped};
pub use submit::{FlowJob, NewFlow, Stored};
pub use sweep::PlainFlows;

use crate::broker::Broker;
use crate::context::{ContextStore, Database};
use crate::error::Error;

/// Greatest number of jobs or moves in one call.
pub const MAX_MOVES: usize = super::MAX_ITEMS;

/// Verbs of flows over a session of a context; cheap to clone.
#[derive(Debug, Clone)]
pub struct Flows {
    broker: Broker,
    keys: ContextKeys,
}

impl Flows {
    /// Creates the verbs over the session of a context; `None` for a session of Hero.
    #[must_use]
    pub fn of(broker: &Broker) -> Option<Self> {
        let keys = broker.keys().context()?.clone();
        let broker = broker.clone();
        Some(Self { broker, keys })
    }

    /// Returns the session.
    #[must_use]
    pub const fn broker(&self) -> &Broker {
        &self.broker
    }

    /// Returns the keys of the context.
    #[must_use]
    pub const fn keys(&self) -> &ContextKeys {
        &self.keys
    }

    fn part(&self, id: FlowId, part: &str) -> String {
        self.keys.flow_part(id, part)
    }

    /// Draws the number of a new flow; `None` if no number is left.
    ///
    /// # Errors
    /// The call to the server fails.
    #[boxed]
    pub async fn draw(&self) -> Result<Option<FlowId>, Error> {
        use meshwork_model::keys::context::Counter;
        let counter = self.keys.next_id(Counter::Flow);
        let prefix = format!("{}flow:", self.keys.prefix());
        // The connection uses the context's database.
        let store = ContextStore::of(&self.broker);
        let drawn = store.draw(Database::Node, &counter, &prefix).await?;
        Ok(drawn.map(FlowId))
    }
}
