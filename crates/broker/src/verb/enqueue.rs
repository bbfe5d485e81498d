//! enqueue: store jobs and push their ids.

use meshwork_model::job::NewJob;
use meshwork_model::name::JobId;
use meshwork_model::route::Route;

use super::at_most;
use crate::conn::Conn;
use crate::script::{Call, Verb};
use crate::{Broker, Error};

/// The most jobs in one call of [`Broker::enqueue`].
pub const MAX_ENQUEUE: usize = 1000;

/// What one call of the script carries at most, in bytes, unless a single job is larger: a larger one
/// would hold up everybody else on the server.
const MAX_CALL_BYTES: usize = 4 * 1024 * 1024;

/// What became of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Enqueued {
    /// It is stored, and queued unless it waits for others.
    Stored,
    /// There was a job of that id already, which was left as it is.
    Exists,
    /// Its queue holds as many as it may; nothing was written.
    Full,
    /// It is to wait for a job that is not there; nothing was written.
    Unknown(JobId),
}

impl Broker {
    /// Stores jobs as `dispatched` and pushes their ids to their queues (seed 2: `HSET`, then `LPUSH`),
    /// both in one step per job. A job whose id exists is left alone, so that the call may be repeated
    /// after a broken connection. A job that waits for others is pushed by the script that ends the last of
    /// them; a job for one instance that has a fallback goes there if the instance is not present.
    ///
    /// # Errors
    /// If a job is invalid or there are more than [`MAX_ENQUEUE`]: nothing was written then. If the server
    /// does not take the call, any first part of the jobs may have been stored. With
    /// [`Broker::acknowledge`], if replicas do not confirm in time: all are stored then.
    pub async fn enqueue(&self, jobs: &[NewJob]) -> Result<Vec<Enqueued>, Error> {
        at_most("enqueue", MAX_ENQUEUE, jobs.len())?;
        for job in jobs {
            job.check()?;
        }
        match &self.confirmed {
            None => self.store(jobs, &self.conn).await,
            Some(confirmed) => {
                let store = async |conn: &Conn| self.store(jobs, conn).await;
                confirmed.write(&self.conn, store, || named(jobs)).await
            }
        }
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
                enqueued.push(told(answer)?);
            }
        }
        Ok(enqueued)
    }

    /// The keys and arguments of one job.
    fn push_job(&self, call: &mut Call<'_>, job: &NewJob) {
        call.push_key(self.keys.job_hash_key(&job.id));
        call.push_key(job.route.queue(&self.keys));
        let Route {
            script_type,
            group,
            instance,
            ..
        } = &job.route;
        let worker = instance.as_ref().map_or("", |instance| instance.as_str());
        let (presence, fallback) = match (job.fallback, instance) {
            (Some(fallback), Some(instance)) => (
                self.keys
                    .presence_key(script_type, &group.clone().unwrap_or_default(), instance),
                fallback.route(&job.route).queue(&self.keys),
            ),
            _ => (String::new(), String::new()),
        };
        call.push_arg(job.id.as_str());
        call.push_arg(script_type.as_str());
        call.push_arg(worker);
        call.push_arg(job.timeout * 1000);
        call.push_arg(job.on_failure.as_str());
        call.push_arg(presence);
        call.push_arg(fallback);
        let prerequisites = job.prerequisites();
        call.push_arg(prerequisites.len());
        for id in prerequisites {
            call.push_arg(id.as_str());
        }
        let fields = job.fields();
        call.push_arg(fields.len() * 2);
        for (name, value) in &fields {
            call.push_arg(*name);
            call.push_arg(value.as_slice());
        }
    }
}

/// Reads the answer about one job.
fn told(answer: String) -> Result<Enqueued, Error> {
    if let Some(id) = answer.strip_prefix("unknown ") {
        return Ok(Enqueued::Unknown(JobId::foreign(id.to_owned())));
    }
    match answer.as_str() {
        "stored" => Ok(Enqueued::Stored),
        "exists" => Ok(Enqueued::Exists),
        "full" => Ok(Enqueued::Full),
        _ => Err(Error::Answer {
            verb: "enqueue",
            answer,
        }),
    }
}

/// The jobs for people.
fn named(jobs: &[NewJob]) -> String {
    match jobs {
        [one] => format!("job {} is", one.id),
        [first, .., last] => format!("{} jobs ({} to {}) are", jobs.len(), first.id, last.id),
        [] => "no job is".to_owned(),
    }
}

/// The jobs in pieces of at most [`MAX_CALL_BYTES`], each at least one job long.
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
