//! The newest jobs among all, with no more of them in memory than are asked for.

use std::collections::BTreeMap;

use meshwork::Client;
use meshwork::model::job::Job;
use meshwork::model::name::{JobId, ScriptType};
use meshwork::model::state::Status;

use crate::error::Error;

/// Which jobs are wanted.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) status: Option<Status>,
    pub(crate) script_type: Option<ScriptType>,
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
        self.status
            .is_none_or(|status| job.status() == Some(status))
            && script_type.is_none_or(|name| job.script_type.as_deref() == Some(name))
    }
}

/// Among the children of a job: the last is the newest.
pub(crate) async fn newest_children(
    client: &Client,
    parent: &JobId,
    wanted: &Wanted,
) -> Result<Newest, Error> {
    let children = client.children(parent).await?.into_iter().rev();
    let mut jobs: Vec<_> = children.filter(|job| wanted.includes(job)).collect();
    let cut = jobs.len() > wanted.limit;
    jobs.truncate(wanted.limit);
    Ok(Newest { jobs, cut })
}

/// Goes through all jobs, page by page.
pub(crate) async fn newest(client: &Client, wanted: &Wanted) -> Result<Newest, Error> {
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
