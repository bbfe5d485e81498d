//! add_child: stores a child of a running job, once.

use meshwork_macros::boxed;
use meshwork_model::job::{ChildDigest, NewJob, field};

use crate::conn::Conn;
use crate::script::Verb;
use crate::verb::jobs::enqueue::{named, parse_enqueued};
use crate::verb::{Claimed, Enqueued};

use crate::broker::Broker;
use crate::error::Error;

/// The result of submitting a child.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AddedChild {
    /// The result of any job: stored and queued, or refused by its queue. [`Enqueued::Exists`]: an earlier call of
    /// this number submitted the same child, which was not changed.
    Enqueued(Enqueued),
    /// An earlier call of this number submitted another child, with this digest; nothing was written.
    Differs(String),
    /// A job with this id exists that is no child of the parent; nothing was written.
    Taken,
    /// The parent is being cancelled; nothing was written.
    Stopping,
    /// This worker has lost the parent's lease; nothing was written.
    Stale,
}

impl Broker {
    /// Stores `job` as the child with this `number` of a running job, and pushes its id, if the fencing token is
    /// current, all in one step. The call may be repeated, also by a later run of the parent.
    ///
    /// # Errors
    /// The job is invalid: nothing was written. If the server refuses the call, the child may be stored. With
    /// [`Broker::acknowledge`], replicas may fail to confirm in time: the child is stored then.
    #[boxed]
    pub async fn add_child(
        &self,
        claimed: &Claimed,
        number: u32,
        job: &NewJob,
        digest: &ChildDigest,
    ) -> Result<AddedChild, Error> {
        job.check()?;
        self.check(job)?;
        let submit = async |conn: &Conn| {
            self.add_child_over(conn, claimed, (number, digest), job)
                .await
        };
        match &self.confirmed {
            None => submit(&self.conn).await,
            Some(confirmed) => {
                let what = || named(&[job.id.as_str()]);
                confirmed.write(&self.conn, submit, what).await
            }
        }
    }

    async fn add_child_over(
        &self,
        conn: &Conn,
        claimed: &Claimed,
        (number, digest): (u32, &ChildDigest),
        job: &NewJob,
    ) -> Result<AddedChild, Error> {
        let parent = &claimed.job;
        let mut call = self
            .scripts
            .call(Verb::AddChild)
            .key(claimed.key(&self.keys))
            .arg(self.clock.argument())
            .arg(&*self.who)
            .arg(&claimed.token)
            .arg(number)
            .arg(digest.as_str());
        let depth = parent.depth.saturating_add(1).to_string();
        let more = vec![
            (field::PARENT, parent.id.clone().into()),
            (field::DEPTH, depth.into()),
        ];
        self.push_job_with(&mut call, job, more);
        let answer: String = call.run(conn).await?;
        Ok(match answer.as_str() {
            "stale" => AddedChild::Stale,
            "stopping" => AddedChild::Stopping,
            "taken" => AddedChild::Taken,
            _ => match answer.strip_prefix("differs ") {
                Some(digest) => AddedChild::Differs(digest.to_owned()),
                None => AddedChild::Enqueued(parse_enqueued(answer)?),
            },
        })
    }
}
