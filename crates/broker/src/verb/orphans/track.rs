//! track_orphans: puts suspected orphans, and jobs that a set has lost, under watch.

use meshwork_macros::boxed;
use meshwork_model::name::{JobId, ScriptType};

use crate::broker::Broker;
use crate::error::Error;
use crate::script::Verb;
use crate::verb::{MAX_ITEMS, at_most};

/// Greatest number of watched jobs that are suspected orphans and whose type does not migrate. At most half of them
/// are jobs of foreign clients. Each is checked every [`crate::Rescue::after`], 200 in a call; more would delay the
/// checks of all watched jobs.
const MOST_SUSPECTS: usize = 10_000;

/// An open job that may be an orphan.
#[derive(Debug, Clone)]
pub struct Suspect {
    /// The job.
    pub id: JobId,
    /// Type of the job. A job without a type is only recorded as stale, because its queue is unknown.
    pub script_type: Option<ScriptType>,
    /// Queue of the job. Default: that of its type.
    pub queue: Option<String>,
}

impl Broker {
    /// Puts jobs under [`Broker::check_orphans`]. A watched job that is on no list, or whose worker is dead, is pushed again.
    /// Returns the number of newly watched jobs. Jobs that are delayed or have a lease are skipped; so are jobs of foreign
    /// clients, and those of flows, that have ended or wait for others. Jobs of Meshwork's clients that have ended, or wait
    /// for others, are watched if their sets lack them.
    ///
    /// # Errors
    /// There are more than [`MAX_ITEMS`], or the server refuses the call.
    #[boxed]
    pub async fn track_orphans(&self, jobs: &[Suspect]) -> Result<usize, Error> {
        at_most("track_orphans", MAX_ITEMS, jobs.len())?;
        let mut call = self
            .scripts
            .call(Verb::TrackOrphans)
            .arg(self.clock.argument());
        call.push_arg(self.rescue.after_ms());
        call.push_arg(MOST_SUSPECTS);
        call.push_arg(u8::from(self.rescue.foreign));
        for job in jobs {
            let script_type = job.script_type.as_ref();
            let queue = job
                .queue
                .clone()
                .or_else(|| Some(self.keys.work_queue_type(script_type?)));
            call.push_key(self.keys.job_hash_key(&job.id));
            call.push_key(queue.unwrap_or_else(|| self.keys.work_prefix()));
            call.push_arg(job.id.as_str());
            call.push_arg(script_type.map_or("", ScriptType::as_str));
        }
        call.run(&self.conn).await
    }
}
