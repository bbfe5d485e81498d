//! enqueue: stores jobs and pushes their ids.

use meshwork_macros::boxed;
use meshwork_model::job::{NewJob, Until, When};
use meshwork_model::keys::hero::JobKeys;
use meshwork_model::name::JobId;
use meshwork_model::route::Route;
use meshwork_model::stored;

use crate::broker::Broker;
use crate::conn::Conn;
use crate::error::Error;
use crate::script::{Call, Verb};
use crate::verb::at_most;

/// The most jobs in one call of [`Broker::enqueue`].
pub const MAX_ENQUEUE: usize = 1000;

/// Greatest size of one call of the script, in bytes, unless a single job is larger. A larger call would block the
/// server for others.
pub(crate) const MAX_CALL_BYTES: usize = 4 * 1024 * 1024;

/// The result of enqueuing a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Enqueued {
    /// The job is stored, and queued unless it waits for others.
    Stored,
    /// A job with this id exists; it was not changed.
    Exists,
    /// Its queue has reached its greatest length; nothing was written.
    Full,
    /// Its queue is drained; nothing was written.
    Draining,
    /// The job has this many bytes, more than its queue allows; nothing was written.
    Large(u64),
    /// This prerequisite does not exist; nothing was written.
    Unknown(JobId),
    /// This other job has the unique name, and stays; nothing was written.
    Kept(JobId),
    /// This other job has the unique name, so the new one was refused; nothing was written.
    Taken(JobId),
    /// This part of a spread queue knows a later layout, of this generation; nothing was written.
    Stale(u64),
    /// This part of a spread queue has no unfinished job of the job's key; nothing was written.
    Elsewhere,
    /// Its batch refused the job; nothing was written.
    NotInBatch(BatchRefusal),
}

/// The reason why a batch refused a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchRefusal {
    /// The batch does not exist.
    Missing,
    /// The batch is sealed, and the submitter is no running job of it.
    Sealed,
    /// The batch has ended, or was cancelled.
    Ended,
    /// The batch has [`MAX_MEMBERS`](meshwork_model::batch::MAX_MEMBERS) jobs.
    Full,
}

impl Broker {
    /// Stores jobs as `dispatched` and pushes their ids to their queues (Hero: `HSET`, then `LPUSH`), both in one
    /// step for each job. An existing id is not changed, so that the call may be repeated after a broken connection.
    /// A job that waits for others is pushed by the script that ends the last of them. A job for an instance that is
    /// not alive goes to its fallback, if it has one.
    ///
    /// # Errors
    /// A job is invalid, or there are more than [`MAX_ENQUEUE`]: nothing was written. If the server refuses the call,
    /// a first part of the jobs may have been stored. With [`Broker::acknowledge`], replicas may fail to confirm in
    /// time: all jobs are stored then.
    #[boxed]
    pub async fn enqueue(&self, jobs: &[NewJob]) -> Result<Vec<Enqueued>, Error> {
        at_most("enqueue", MAX_ENQUEUE, jobs.len())?;
        for job in jobs {
            job.check()?;
            self.check(job)?;
        }
        match &self.confirmed {
            None => self.store(jobs, &self.conn).await,
            Some(confirmed) => {
                let store = async |conn: &Conn| self.store(jobs, conn).await;
                let ids: Vec<_> = jobs.iter().map(|job| job.id.as_str()).collect();
                confirmed.write(&self.conn, store, || named(&ids)).await
            }
        }
    }

    /// Checks the parts of a new job that depend on the layout. In a context, its id is the key of a job, and it
    /// waits for objects of the context or for gates.
    pub(crate) fn check(&self, job: &NewJob) -> Result<(), Error> {
        if let Some(context) = self.keys.context() {
            context.parse_job(job.id.as_str().as_bytes())?;
            for id in &job.depends_on {
                context.parse_prerequisite(id.as_str())?;
            }
        }
        Ok(())
    }

    async fn store(&self, jobs: &[NewJob], conn: &Conn) -> Result<Vec<Enqueued>, Error> {
        let mut enqueued = Vec::with_capacity(jobs.len());
        for chunk in chunks(jobs) {
            let mut call = self.scripts.call(Verb::Enqueue);
            call.push_arg(self.clock.argument());
            call.push_arg(&*self.who);
            for job in chunk {
                self.push_job(&mut call, job);
            }
            let answers: Vec<String> = call.run(conn).await?;
            for answer in answers {
                enqueued.push(parse_enqueued(answer)?);
            }
        }
        Ok(enqueued)
    }

    /// Pushes the keys and arguments of one job.
    pub(crate) fn push_job(&self, call: &mut Call<'_>, job: &NewJob) {
        self.push_job_with(call, job, Vec::new());
    }

    /// Does the same, with further fields of the record.
    pub(crate) fn push_job_with(
        &self,
        call: &mut Call<'_>,
        job: &NewJob,
        more: Vec<(&'static str, Vec<u8>)>,
    ) {
        call.push_key(self.keys.job_hash_key(&job.id));
        call.push_key(job.route.queue(&self.keys));
        call.push_arg(job.id.as_str());
        call.push_arg(job.route.script_type.as_str());
        let options = options(&self.keys, job);
        call.push_arg(options.len());
        for (name, value) in options {
            call.push_arg(name);
            call.push_arg(value);
        }
        for value in stored::values(&self.keys, job) {
            call.push_arg(value);
        }
        let mut options = stored::options(&self.keys, job);
        options.extend(more);
        call.push_arg(options.len() * 2);
        for (name, value) in &options {
            call.push_arg(*name);
            call.push_arg(value.as_slice());
        }
    }
}

/// Returns the options of a job, with their names in `lua/enqueue.lua`; usually none.
fn options(keys: &JobKeys, job: &NewJob) -> Vec<(&'static str, String)> {
    let Route {
        script_type,
        group,
        instance,
        ..
    } = &job.route;
    let mut options = Vec::new();
    if let Some(instance) = instance {
        options.push(("worker", instance.to_string()));
        if let Some(fallback) = job.fallback {
            let group = group.clone().unwrap_or_default();
            let presence = keys.presence_key(script_type, &group, instance);
            options.push(("presence", presence));
            options.push(("fallback", fallback.route(&job.route).queue(keys)));
        }
    }
    if !job.depends_on.is_empty() {
        let wait = job.prerequisite_timeout;
        options.extend(wait.map(|seconds| ("wait", (seconds * 1000).to_string())));
        options.push(("on_failure", job.on_failure.as_str().to_owned()));
        let after = stored::prerequisites(keys, job).into_iter();
        options.extend(after.map(|id| ("after", id)));
    }
    match job.when {
        Some(When::At(ms)) => options.push(("due", ms.to_string())),
        Some(When::In(ms)) => options.push(("delay", ms.to_string())),
        None => {}
    }
    let start = job.start_timeout_ms.map(|ms| ("start", ms.to_string()));
    let key = job.key.clone().map(|key| ("key", key));
    options.extend(start.into_iter().chain(key));
    if let Some(unique) = &job.unique {
        options.push(("unique", unique.scoped(script_type.as_str())));
        options.push(("policy", unique.policy.as_str().to_owned()));
        if let Until::For(ms) = unique.until {
            options.push(("window", ms.to_string()));
        }
    }
    if let Some(of) = &job.spread {
        options.push(("spread", of.name.to_string()));
        options.push(("generation", of.generation.to_string()));
        let key = of.key.clone().map(|key| ("partition", key));
        options.extend(key);
        options.extend(of.if_present.then(|| ("if_present", "1".to_owned())));
    }
    if let Some(of) = &job.batch {
        options.push(("batch", of.batch.to_string()));
        if let Some((member, token)) = &of.by {
            options.push(("member", member.to_string()));
            options.push(("token", token.clone()));
        }
    }
    options
}

/// Parses the answer about one job.
pub(crate) fn parse_enqueued(answer: String) -> Result<Enqueued, Error> {
    if let Some((word, more)) = answer.split_once(' ') {
        let id = || JobId::foreign(more.to_owned());
        let unreadable = || Error::Answer {
            verb: "enqueue",
            answer: answer.clone(),
        };
        return match word {
            "unknown" => Ok(Enqueued::Unknown(id())),
            "keep" => Ok(Enqueued::Kept(id())),
            "refuse" => Ok(Enqueued::Taken(id())),
            "batch" => match more {
                "missing" => Ok(Enqueued::NotInBatch(BatchRefusal::Missing)),
                "sealed" => Ok(Enqueued::NotInBatch(BatchRefusal::Sealed)),
                "ended" => Ok(Enqueued::NotInBatch(BatchRefusal::Ended)),
                "full" => Ok(Enqueued::NotInBatch(BatchRefusal::Full)),
                _ => Err(unreadable()),
            },
            "stale" => more.parse().map(Enqueued::Stale).map_err(|_| unreadable()),
            "large" => more.parse().map(Enqueued::Large).map_err(|_| unreadable()),
            _ => Err(unreadable()),
        };
    }
    match answer.as_str() {
        "draining" => Ok(Enqueued::Draining),
        "stored" => Ok(Enqueued::Stored),
        "exists" => Ok(Enqueued::Exists),
        "full" => Ok(Enqueued::Full),
        "elsewhere" => Ok(Enqueued::Elsewhere),
        _ => Err(Error::Answer {
            verb: "enqueue",
            answer,
        }),
    }
}

/// Describes jobs as the subject of a sentence, for errors.
pub(crate) fn named(ids: &[&str]) -> String {
    match ids {
        [one] => format!("job {one} is"),
        [first, .., last] => format!("{} jobs ({first} to {last}) are", ids.len()),
        [] => "no job is".to_owned(),
    }
}

/// Splits the jobs into pieces of at most [`MAX_CALL_BYTES`], each with at least one job.
fn chunks(jobs: &[NewJob]) -> Vec<&[NewJob]> {
    let mut chunks = Vec::new();
    let (mut from, mut bytes) = (0, 0);
    for (at, job) in jobs.iter().enumerate() {
        let size = job.script.len() + job.input.as_ref().map_or(0, Vec::len);
        if at > from && bytes + size > MAX_CALL_BYTES {
            chunks.push(&jobs[from..at]);
            (from, bytes) = (at, 0);
        }
        bytes += size;
    }
    if from < jobs.len() {
        chunks.push(&jobs[from..]);
    }
    chunks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_jobs_travel_apart() {
        let job = |size: usize| {
            let mut job = NewJob::new(
                "j".parse().unwrap(),
                Route::to("osis".parse().unwrap()),
                "1",
            );
            job.input = Some(vec![0; size]);
            job
        };
        let jobs = [
            job(1),
            job(MAX_CALL_BYTES * 2),
            job(1),
            job(1),
            job(MAX_CALL_BYTES - 4),
        ];
        let sizes: Vec<_> = chunks(&jobs).iter().map(|chunk| chunk.len()).collect();
        assert_eq!(sizes, [1, 1, 2, 1]);
        assert!(chunks(&[]).is_empty());
    }
}
