//! adopt: take jobs of other clients under watch.

use meshwork_model::name::{JobId, ScriptType};

use super::{MAX_ITEMS, at_most};
use crate::script::Verb;
use crate::{Broker, Error};

impl Broker {
    /// Takes jobs that other clients wrote under [`Broker::watch`], each as one of the type given, so that
    /// one that stands on no list, or whose worker is gone, is pushed again. Returns how many were not
    /// watched before; ended and waiting jobs, those of our own clients and those under a lease are none.
    ///
    /// # Errors
    /// If there are more than [`MAX_ITEMS`], or the server does not take the call.
    pub async fn adopt(&self, jobs: &[(JobId, ScriptType)]) -> Result<usize, Error> {
        at_most("adopt", MAX_ITEMS, jobs.len())?;
        let mut call = self.scripts.call(Verb::Adopt).arg(self.clock.argument());
        for (id, script_type) in jobs {
            call.push_key(self.keys.job_hash_key(id));
            call.push_key(self.keys.work_queue_type(script_type));
            call.push_arg(id.as_str());
            call.push_arg(script_type.as_str());
        }
        call.run(&self.conn).await
    }
}
