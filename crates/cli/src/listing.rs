//! The newest jobs among all, with no more of them in memory than are asked for.

use std::collections::BTreeMap;

use meshwork::Client;
use meshwork::model::job::Job;
use meshwork::model::name::{JobId, ScriptType};
use meshwork::model::state::Status;

use crate::error::CommandError;

/// Stale jobs in one page.
const STALE_PAGE: usize = 1000;
/// The most stale jobs that are read: workers note about 10,000.
const MAX_STALE: usize = 100_000;

/// Which jobs are wanted.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) status: Option<Status>,
    pub(crate) script_type: Option<ScriptType>,
    /// Only its children.
    pub(crate) parent: Option<JobId>,
    pub(crate) limit: usize,
}

/// The newest of the wanted ones, first the newest.
pub(crate) struct Newest {
    pub(crate) jobs: Vec<Job>,
    /// Whether there are more.
    pub(crate) cut: bool,
}

impl Wanted {
    fn includes(&self, job: &Job) -> bool {
        let script_type = self.script_type.as_ref().map(ScriptType::as_str);
        let parent = self.parent.as_ref().map(JobId::as_str);
        self.status
            .is_none_or(|status| job.status() == Some(status))
            && script_type.is_none_or(|name| job.script_type.as_deref() == Some(name))
            && parent.is_none_or(|id| job.parent.as_deref() == Some(id))
    }
}

/// Among the children of a job: the last is the newest.
pub(crate) async fn newest_children(
    client: &Client,
    parent: &JobId,
    wanted: &Wanted,
) -> Result<Newest, CommandError> {
    let children = client.children(parent).await?.into_iter().rev();
    let mut jobs: Vec<_> = children.filter(|job| wanted.includes(job)).collect();
    let cut = jobs.len() > wanted.limit;
    jobs.truncate(wanted.limit);
    Ok(Newest { jobs, cut })
}

/// Returns the newest of the wanted stale jobs.
pub(crate) async fn stale(client: &Client, wanted: &Wanted) -> Result<Newest, CommandError> {
    let (mut jobs, mut from) = (Vec::new(), 0);
    loop {
        let page = client.stale(from).await?;
        let last = page.is_empty();
        from += STALE_PAGE;
        jobs.extend(page.into_iter().filter(|job| wanted.includes(job)));
        if last || jobs.len() > MAX_STALE {
            break;
        }
    }
    jobs.sort_by(|a, b| (&b.created_at, &b.id).cmp(&(&a.created_at, &a.id)));
    let cut = jobs.len() > wanted.limit;
    jobs.truncate(wanted.limit);
    Ok(Newest { jobs, cut })
}

/// Goes through all jobs, page by page.
pub(crate) async fn newest(client: &Client, wanted: &Wanted) -> Result<Newest, CommandError> {
    // By time and id: a page may bring a job again.
    let mut newest = BTreeMap::new();
    let (mut from, mut cut) = (0, false);
    loop {
        let page = client.list(from).await?;
        for job in page.jobs.into_iter().filter(|job| wanted.includes(job)) {
            newest.insert((job.created_at.clone(), job.id.clone()), job);
            if newest.len() > wanted.limit {
                newest.pop_first();
                cut = true;
            }
        }
        from = page.next;
        if from == 0 {
            let jobs = newest.into_values().rev().collect();
            return Ok(Newest { jobs, cut });
        }
    }
}
