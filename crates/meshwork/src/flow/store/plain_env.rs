//! Environment of plain clients' jobs that a worker starts before a step has taken their flow up.

use std::sync::Arc;

use meshwork_broker::flow::Flows;
use meshwork_broker::{Broker, Error};
use meshwork_model::context::Flow;
use meshwork_model::job::Job;
use meshwork_model::keys::context::FlowId;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::adopt::{merged, read};

/// Greatest number of pages of one scan, of 1,000 keys each, so that a scan delays jobs little. In a larger context,
/// only jobs that start after a step has taken the flow up get its environment.
const PAGES: usize = 2;
/// Greatest number of flows that one scan reads.
const MOST: usize = 100;

/// Finds the flows of plain clients. Jobs that start during a scan share its result.
#[derive(Debug)]
pub(crate) struct PlainEnv {
    flows: Flows,
    last: Mutex<Option<(Instant, Vec<Arc<Flow>>)>>,
}

impl PlainEnv {
    /// Returns `None` outside of contexts.
    pub(crate) fn of(broker: &Broker) -> Option<Self> {
        let flows = Flows::of(broker)?;
        let last = Mutex::default();
        Some(Self { flows, last })
    }

    /// Returns the job with the environment of its flow.
    ///
    /// # Errors
    /// A call to the server fails.
    pub(crate) async fn complete(&self, job: &Arc<Job>) -> Result<Arc<Job>, Error> {
        if !job.foreign || job.flow.is_some() {
            return Ok(Arc::clone(job));
        }
        let Some(flow) = self.flow_of(job).await? else {
            return Ok(Arc::clone(job));
        };
        let mut job = Job::clone(job);
        job.env_vars = merged(&flow, &job.env_vars).into();
        Ok(Arc::new(job))
    }

    async fn flow_of(&self, job: &Job) -> Result<Option<Arc<Flow>>, Error> {
        let Ok(key) = self.flows.keys().parse_job(job.id.as_bytes()) else {
            return Ok(None);
        };
        let has = |flow: &Flow| flow.caller_id == key.caller && flow.jobs.contains(&key.id);
        let found = self.look().await?.into_iter().find(|flow| has(flow));
        if found.is_some() {
            return Ok(found);
        }
        // A step may have taken the flow up since the claim.
        let mut fields = self.flows.job_fields(&[key], &["mw_flow"]).await?;
        let number = fields.pop().and_then(|mut fields| fields.pop().flatten());
        let number = number.and_then(|text| String::from_utf8(text).ok()?.parse().ok());
        match number {
            Some(id) => self.read(id).await,
            None => Ok(None),
        }
    }

    async fn read(&self, id: FlowId) -> Result<Option<Arc<Flow>>, Error> {
        let record = self.flows.record(id).await?;
        Ok(read(&self.flows, id, &record).ok().map(Arc::new))
    }

    /// Returns the flows that no step has taken up, from a scan that began after this call.
    async fn look(&self) -> Result<Vec<Arc<Flow>>, Error> {
        let since = Instant::now();
        let mut last = self.last.lock().await;
        if let Some((began, flows)) = &*last
            && *began >= since
        {
            return Ok(flows.clone());
        }
        let (began, mut found, mut page) = (Instant::now(), Vec::new(), 0);
        for _ in 0..PAGES {
            let swept = self.flows.sweep(page).await?;
            page = swept.next;
            for id in swept.found {
                if found.len() < MOST {
                    found.extend(self.read(id).await?);
                }
            }
            if page == 0 {
                break;
            }
        }
        *last = Some((began, found.clone()));
        Ok(found)
    }
}
