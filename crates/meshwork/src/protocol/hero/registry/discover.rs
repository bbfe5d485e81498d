//! Discovery: which workers are there, and which of them has the most room.

use std::collections::BTreeMap;
use std::time::Duration;

use meshwork_model::name::{Group, Instance, ScriptType};
use meshwork_model::route::Fallback;
use meshwork_model::worker_request::WorkerRequest;

use super::said::WorkerInfo;
use crate::{Client, Error, JobRequest};

impl Client {
    /// The live workers, ours and those of others, by type, group and instance. A worker of several types is
    /// there once per type. It goes through all keys in pages.
    ///
    /// # Errors
    /// If the server does not take a call.
    pub async fn workers(&self) -> Result<Vec<WorkerInfo>, Error> {
        let mut workers = BTreeMap::new();
        let mut from = 0;
        loop {
            let page = self.broker().actors(from).await?;
            workers.extend(page.actors);
            from = page.next;
            if from == 0 {
                break;
            }
        }
        let read = |(key, value): (String, String)| WorkerInfo::read(&key, &value);
        Ok(workers.into_iter().map(read).collect())
    }

    /// Requests that a worker becomes quiet or stops, and waits up to `wait` until it has obeyed, which takes a third of its
    /// lease at most. `worker` is its name with the incarnation ([`WorkerInfo::worker`]); another process never obeys. A
    /// worker that stops is not gone yet: it may wait for its jobs as long as its shutdown timeout allows.
    ///
    /// # Errors
    /// [`Error::NotObeyed`] if it does not obey in time, as when it is gone; the request is withdrawn then. If the server does
    /// not take a call.
    pub async fn request_worker(
        &self,
        worker: &str,
        request: WorkerRequest,
        wait: Duration,
    ) -> Result<(), Error> {
        let key = self.broker().keys().worker_request(worker, request);
        match self.broker().request_worker(&key, wait).await? {
            true => Ok(()),
            false => Err(Error::NotObeyed {
                worker: worker.to_owned(),
                request,
                waited: wait,
            }),
        }
    }

    /// Of the named workers of a group that have a free slot by what they last said, the one whose slots are
    /// used least; of several such, one by chance.
    ///
    /// # Errors
    /// If the server does not take a call.
    pub async fn least_busy(
        &self,
        script_type: &ScriptType,
        group: &Group,
    ) -> Result<Option<WorkerInfo>, Error> {
        let actors = self.broker().our_actors(script_type, group).await?;
        let workers = actors
            .iter()
            .map(|(key, value)| WorkerInfo::read(key, value));
        let free = workers
            .filter(|worker| worker.named && !worker.quiet)
            .filter_map(|worker| Some((worker.load()?, rand::random::<u32>(), worker)))
            .filter(|(load, ..)| *load < 1.0);
        let least = free.min_by(|(a, x, _), (b, y, _)| a.total_cmp(b).then(x.cmp(y)));
        Ok(least.map(|(_, _, worker)| worker))
    }

    /// The request, for the least busy worker of its group, with a fallback to the group should that worker
    /// go away. Where all are busy, or none has a name, it goes to the group: whoever is free first takes it.
    ///
    /// # Errors
    /// If the server does not take a call.
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
