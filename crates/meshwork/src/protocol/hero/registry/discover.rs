//! Discovery of live workers, and of the least busy one.

use meshwork_macros::boxed;
use std::collections::BTreeMap;
use std::time::Duration;

use meshwork_model::name::{Group, Instance, ScriptType};
use meshwork_model::route::Fallback;
use meshwork_model::worker_request::WorkerRequest;

use super::record::WorkerInfo;
use crate::{Client, Error, JobRequest};

impl Client {
    /// Returns the live workers of all systems, by type, group and instance. A worker of several types is included once
    /// per type. Reads all keys in pages.
    ///
    /// # Errors
    /// A call to the server fails.
    #[boxed]
    pub async fn workers(&self) -> Result<Vec<WorkerInfo>, Error> {
        let mut workers = BTreeMap::new();
        let mut from = 0;
        loop {
            let page = self.broker().workers(from).await?;
            workers.extend(page.workers);
            from = page.next;
            if from == 0 {
                break;
            }
        }
        let read = |(key, value): (String, String)| WorkerInfo::read(&key, &value);
        Ok(workers.into_iter().map(read).collect())
    }

    /// Makes a worker quiet or stops it. Waits up to `wait` until it has obeyed, usually within a third of its lease.
    /// `worker` is its name with the incarnation ([`WorkerInfo::worker`]), so another process never obeys. A stopping
    /// worker may still wait for its jobs until its shutdown timeout.
    ///
    /// # Errors
    /// [`Error::RequestTimeout`] if it does not comply in time, for example because it has ended; the request is
    /// withdrawn then. Or a call to the server fails.
    #[boxed]
    pub async fn request_worker(
        &self,
        worker: &str,
        request: WorkerRequest,
        wait: Duration,
    ) -> Result<(), Error> {
        let key = self.broker().keys().worker_request(worker, request);
        match self.broker().request_worker(&key, wait).await? {
            true => Ok(()),
            false => Err(Error::RequestTimeout {
                worker: worker.to_owned(),
                request,
                waited: wait,
            }),
        }
    }

    /// Returns the named worker of a group with the smallest share of used slots, by the last heartbeats, if it has a
    /// free slot. One of several such workers is chosen at random.
    ///
    /// # Errors
    /// A call to the server fails.
    #[boxed]
    pub async fn least_busy(
        &self,
        script_type: &ScriptType,
        group: &Group,
    ) -> Result<Option<WorkerInfo>, Error> {
        let workers = self.broker().native_workers(script_type, group).await?;
        let workers = workers
            .iter()
            .map(|(key, value)| WorkerInfo::read(key, value));
        let free = workers
            .filter(|worker| worker.named && !worker.quiet && worker.fault.is_none())
            .filter_map(|worker| Some((worker.load()?, rand::random::<u32>(), worker)))
            .filter(|(load, ..)| *load < 1.0);
        let least = free.min_by(|(a, x, _), (b, y, _)| a.total_cmp(b).then(x.cmp(y)));
        Ok(least.map(|(_, _, worker)| worker))
    }

    /// Sends a request to the least busy worker of its group, with a fallback to the group if that worker ends. If all
    /// are busy, or none has a name, the request goes to the group.
    ///
    /// # Errors
    /// A call to the server fails.
    #[boxed]
    pub async fn to_least_busy(
        &self,
        request: JobRequest,
        script_type: &ScriptType,
        group: &Group,
    ) -> Result<JobRequest, Error> {
        let request = request.group(group.clone());
        let least = self.least_busy(script_type, group).await?;
        let instance = least.and_then(|worker| worker.instance.parse::<Instance>().ok());
        Ok(match instance {
            Some(instance) => request.instance(instance).fallback(Fallback::Group),
            None => request,
        })
    }
}
