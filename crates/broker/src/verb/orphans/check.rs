//! check_orphans: checks jobs to which no other script returns.

use meshwork_macros::boxed;
use std::time::Duration;

use meshwork_model::job::limits::MAX_LOST;

use crate::broker::Broker;
use crate::error::Error;
use crate::script::Verb;

/// Greatest number of jobs in a call.
const MOST: usize = 200;
/// Greatest number of entries of legacy lists that are searched in a call, except for the last search: about 2 ms.
const WALK: usize = 100_000;

/// The rule for pushing orphans again: open jobs on no list, or started without a lease by a worker that is dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rescue {
    /// Time for which a job of a type that does not migrate must look like an orphan. Default: 30 s. Maximum: 1 h. Any worker may
    /// lead, so the shortest time of the live workers that rescue foreign jobs holds for all.
    pub after: Duration,
    /// True to push jobs of foreign clients again too. Default: false.
    pub foreign: bool,
}

impl Rescue {
    /// Greatest `after`. Later times were recorded by a clock that was ahead.
    pub const MAX_AFTER: Duration = Duration::from_secs(3600);

    /// Time between two notes of a rule for other workers.
    pub const NOTE_EVERY: Duration = Duration::from_secs(10);
    /// Time for which such a note holds: two of them may fail.
    const NOTED_FOR: Duration = Duration::from_secs(35);

    pub(crate) fn after_ms(self) -> u64 {
        self.after.min(Self::MAX_AFTER).as_millis() as u64
    }
}

impl Default for Rescue {
    fn default() -> Self {
        let (after, foreign) = (Duration::from_secs(30), false);
        Self { after, foreign }
    }
}

/// The result of a check.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OrphanCheck {
    /// Number of jobs whose check was due.
    pub looked: usize,
    /// Ids of the jobs that were pushed again.
    pub pushed: Vec<String>,
    /// True if the call reached its bound; there may be more jobs.
    pub more: bool,
}

impl Broker {
    /// Checks watched jobs that are due.
    ///
    /// * A job that waits for others ends in error `timeout` when its time is over, and is notified of prerequisites
    ///   that a foreign worker ended.
    /// * A job that is `dispatched` and whose record names a legacy list that no longer contains it is pushed again:
    ///   the legacy worker that popped it is dead.
    /// * A job that such a worker started is pushed again long after its timeout. After [`MAX_LOST`] lost workers it
    ///   becomes a dead letter.
    /// * A job for an instance that is not alive goes to its fallback.
    /// * A job that no worker began within its start timeout ends in error `timeout`.
    /// * Jobs of foreign clients whose type does not migrate are recorded as stale, and not pushed again unless
    ///   [`Rescue::foreign`] is set.
    ///
    /// # Errors
    /// The server refuses the call; repeat it then.
    #[boxed]
    pub async fn check_orphans(&self) -> Result<OrphanCheck, Error> {
        let mut answer = self
            .scripts
            .call(Verb::CheckOrphans)
            .arg(self.clock.argument())
            .arg(MOST)
            .arg(MAX_LOST)
            .arg(WALK)
            .arg(self.rescue.after_ms())
            .arg(u8::from(self.rescue.foreign))
            .answer(&self.conn)
            .await?;
        Ok(OrphanCheck {
            looked: answer.next("looked")?,
            pushed: answer.texts("pushed")?,
            more: answer.flag("more")?,
        })
    }

    /// Notes the rule of this worker for whichever worker leads, if it rescues foreign jobs. Repeat it at least every
    /// [`Rescue::NOTE_EVERY`]. A shorter rule stays, unless its worker has not repeated its note for two intervals.
    ///
    /// # Errors
    /// The server refuses the call.
    #[boxed]
    pub async fn note_rescue(&self) -> Result<(), Error> {
        if !self.rescue.foreign {
            return Ok(());
        }
        let (now, age) = (self.now().await?, self.rescue.after_ms());
        let after = |time: Duration| now + time.as_millis() as u64;
        let (next, until) = (after(Rescue::NOTE_EVERY), after(Rescue::NOTED_FOR));
        // Two workers that read at once may both write: the one with the shorter rule repairs it at its next note.
        let noted = self.walk_state().await?.rescue;
        if noted.is_some_and(|(shorter, ends)| shorter < age && next < ends && ends <= until) {
            return Ok(());
        }
        let mut set = redis::cmd("HSET");
        set.arg(self.keys.walk());
        set.arg("rescue").arg(age);
        set.arg("rescue_until").arg(until);
        self.ask("sweep", &set).await
    }
}
