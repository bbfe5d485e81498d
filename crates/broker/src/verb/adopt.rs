//! adopt: take jobs of other clients under watch.

use meshwork_model::name::{JobId, ScriptType};

use super::{MAX_ITEMS, at_most};
use crate::script::Verb;
use crate::{Broker, Error};

/// The most suspected orphans under watch whose type does not migrate, of which half may be jobs of other clients: each
/// is looked at every [`crate::Rescue::after`], 200 in a call, and more would delay the looks at all jobs under watch.
const MOST_SUSPECTS: usize = 10_000;

/// An open job that may be an orphan.
#[derive(Debug, Clone)]
pub struct Adopted {
    /// The job.
    pub id: JobId,
    /// Its type. Without one the job is only noted as stale, since nobody knows its queue.
    pub script_type: Option<ScriptType>,
    /// The queue where it belongs. Default: that of its type.
    pub queue: Option<String>,
}

impl Broker {
    /// Takes jobs under [`Broker::watch`], so that one that stands on no list, or whose worker is gone, is pushed
    /// again. Returns how many were not watched before; ended, delayed and waiting jobs and those under a lease are
    /// none.
    ///
    /// # Errors
    /// If there are more than [`MAX_ITEMS`], or the server does not take the call.
    pub async fn adopt(&self, jobs: &[Adopted]) -> Result<usize, Error> {
        at_most("adopt", MAX_ITEMS, jobs.len())?;
        let mut call = self.scripts.call(Verb::Adopt).arg(self.clock.argument());
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
