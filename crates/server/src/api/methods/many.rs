//! Changes of many jobs: of a page of those that a filter finds, also in all parts of spread queues.

use std::collections::BTreeMap;

use futures_util::{StreamExt, TryStreamExt};
use meshwork::{Cancelled, Deleted, Retried};
use meshwork_model::api_key::Scope;
use meshwork_model::job::Job;
use schemars::JsonSchema;
use serde::Serialize;

use super::job::{CHANGE, DELETE};
use super::{dead, job_list};
use crate::api::call::Call;
use crate::api::error::ApiError;
use crate::api::method::{HttpVerb, Method, Reply};
use crate::api::params::Page;

/// Greatest number of jobs that a call changes at once.
const AT_ONCE: usize = 64;

/// The methods.
pub(in crate::api) fn methods() -> Vec<Method> {
    use HttpVerb::Post;
    use Scope::{Admin, User};
    vec![
        Method::new(
            ("job.cancel_many", User),
            (Post, "/v1/jobs/cancel"),
            "Cancel the open jobs of a page of `job.list`; running ones get a request to stop",
            cancel,
        ),
        Method::new(
            ("dead.retry_many", User),
            (Post, "/v1/dead/retry"),
            "Run the jobs of a page of dead letters again",
            retry,
        ),
        Method::new(
            ("dead.delete_many", Admin),
            (Post, "/v1/dead/delete"),
            "Delete a page of dead letters with their jobs",
            delete,
        ),
    ]
}

/// Jobs that a call changed.
#[derive(Debug, Serialize, JsonSchema)]
struct ChangedJobs {
    /// The jobs of the page; without those that had ended before a cancel.
    jobs: Vec<ChangedJob>,
    /// Cursor of the next page; null after the last one.
    next: Option<String>,
}

/// Result for one job.
#[derive(Debug, Serialize, JsonSchema)]
struct ChangedJob {
    /// Id of the job.
    id: String,
    /// Number of its context, a part with `spread`; null outside contexts.
    part: Option<u32>,
    /// State after the call: `cancelled`, `stopping`, `ended`, `queued` or `deleted`; or why the job was not changed:
    /// `unfinished`, `running`, `of_flow` or `missing`.
    result: &'static str,
}

async fn cancel(call: Call, params: job_list::ListParams) -> Result<Reply<ChangedJobs>, ApiError> {
    let (mut found, next) = params.read(call, CHANGE).await?;
    params.check_filter()?;
    found.retain(|(found, _)| found.job.is_cancellable());
    let found = found.into_iter().map(|(found, call)| (found.job, call));
    let page = (found.collect(), next);
    let act = async |job: Job, call: Call| {
        Ok(match call.client.cancel_found(&job, false).await? {
            Cancelled::Cancelled => "cancelled",
            Cancelled::Stopping => "stopping",
            Cancelled::Ended => "ended",
            Cancelled::Missing => "missing",
        })
    };
    changed(page, "cancel jobs", act).await
}

async fn retry(call: Call, params: dead::ListParams) -> Result<Reply<ChangedJobs>, ApiError> {
    let page = letters(call, params, CHANGE).await?;
    let act = async |job: Job, call: Call| {
        Ok(match call.client.retry_dead_letter(&job).await? {
            Retried::Queued => "queued",
            Retried::Unfinished => "unfinished",
            Retried::OfFlow => "of_flow",
            Retried::Missing => "missing",
        })
    };
    changed(page, "retry jobs", act).await
}

async fn delete(call: Call, params: dead::ListParams) -> Result<Reply<ChangedJobs>, ApiError> {
    let page = letters(call, params, DELETE).await?;
    let act = async |job: Job, call: Call| {
        Ok(match call.client.delete_dead_letter(&job).await? {
            Deleted::Deleted => "deleted",
            Deleted::Running => "running",
            Deleted::OfFlow => "of_flow",
            Deleted::Missing => "missing",
        })
    };
    changed(page, "delete jobs", act).await
}

async fn letters(
    call: Call,
    params: dead::ListParams,
    needs: super::job::Needs,
) -> Result<Page<(Job, Call)>, ApiError> {
    let (letters, next) = params.read(call, needs).await?;
    params.check_filter()?;
    let letters = letters.into_iter().map(|(letter, call)| (letter.job, call));
    Ok((letters.collect(), next))
}

/// Changes the jobs of a page. The audit trail of each context has an entry first, so that an interrupted call cannot change
/// jobs without one.
async fn changed<F>(
    (jobs, next): Page<(Job, Call)>,
    what: &str,
    act: impl Fn(Job, Call) -> F,
) -> Result<Reply<ChangedJobs>, ApiError>
where
    F: Future<Output = Result<&'static str, ApiError>>,
{
    let contexts = jobs.iter().map(|(_, call)| (call.context_number(), call));
    let contexts: BTreeMap<_, _> = contexts.collect();
    for call in contexts.into_values() {
        call.noted(what, "").await?;
    }
    let changes = jobs.into_iter().map(|(job, call)| {
        let (id, part) = (job.id.clone(), call.context_number());
        let act = act(job, call);
        async move {
            let result = act.await?;
            Ok::<_, ApiError>(ChangedJob { id, part, result })
        }
    });
    let changes = futures_util::stream::iter(changes).buffered(AT_ONCE);
    let jobs = changes.try_collect().await?;
    Ok(Reply::new(&ChangedJobs { jobs, next }))
}
