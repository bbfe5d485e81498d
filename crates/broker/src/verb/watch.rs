//! watch: look after jobs to which no other script comes back.

use std::time::Duration;

use meshwork_model::job::limits::MAX_LOST;

use crate::script::Verb;
use crate::{Broker, Error};

/// The most jobs looked at in one call.
const MOST: usize = 200;
/// The most entries of old lists walked over in one call, but for the last walk: about 2 ms.
const WALK: usize = 100_000;

/// When an orphan is pushed again: an open job on no list, or one that was started without a lease by a worker that
/// is gone. All workers of a namespace need the same rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rescue {
    /// For how long a job of a type that does not migrate has to look like an orphan. Default: 30 s. Maximum: 1 h.
    pub after: Duration,
    /// Whether jobs of other clients are pushed again too. Default: no.
    pub foreign: bool,
}

impl Rescue {
    /// The longest `after`: what is looked at later was noted by a clock that was ahead.
    pub const MAX_AFTER: Duration = Duration::from_secs(3600);

    pub(super) fn after_ms(self) -> u64 {
        self.after.min(Self::MAX_AFTER).as_millis() as u64
    }
}

impl Default for Rescue {
    fn default() -> Self {
        let (after, foreign) = (Duration::from_secs(30), false);
        Self { after, foreign }
    }
}

/// What came of a look.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Watched {
    /// How many jobs were due to be looked at.
    pub looked: usize,
    /// The ids of those that had to be pushed again.
    pub pushed: Vec<String>,
    /// The call stopped at its bound; there may be more.
    pub more: bool,
}

impl Broker {
    /// Looks at the jobs under watch that are due. A job that waits for others ends in error `timeout` when
    /// its time is over, and learns of prerequisites that a worker of another make ended. A job that stands
    /// on an old list too and is still `dispatched`, but on that list no more, is pushed again: the old
    /// worker that popped it is gone. So is one that such a worker started, when its timeout has long
    /// passed; with the loss that makes [`MAX_LOST`] it becomes a dead letter. A job for an instance that is
    /// not present goes to its fallback. Jobs of other clients whose type does not migrate are noted as stale, and
    /// left unless [`Rescue::foreign`] says otherwise.
    ///
    /// # Errors
    /// If the server does not take the call; repeat it then.
    pub async fn watch(&self) -> Result<Watched, Error> {
        let mut answer = self
            .scripts
            .call(Verb::Watch)
            .arg(self.clock.argument())
            .arg(MOST)
            .arg(MAX_LOST)
            .arg(WALK)
            .arg(self.rescue.after_ms())
            .arg(u8::from(self.rescue.foreign))
            .answer(&self.conn)
            .await?;
        let looked = answer.next("looked")?;
        Ok(Watched {
            looked,
            more: looked >= MOST,
            pushed: answer.texts("pushed")?,
        })
    }
}
