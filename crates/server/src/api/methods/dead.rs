//! Methods of dead letters.

use meshwork::view::{DeadLetterView, JobView};
use meshwork::{DeadCursor, JobFilter};
use meshwork_model::api_key::Scope;
use meshwork_model::name::JobId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::job::{Changed, deleted, retried};
use crate::api::call::Call;
use crate::api::error::ApiError;
use crate::api::method::{HttpVerb, Method, Reply};
use crate::api::params::{self, parse_some};

/// Pages of the index that one call reads at most.
const MAX_PAGES: usize = 8;

/// The methods.
pub(in crate::api) fn methods() -> Vec<Method> {
    use HttpVerb::{Delete, Get, Post};
    use Scope::{Admin, User, Viewer};
    vec![
        Method::new(
            ("dead.list", Viewer),
            (Get, "/v1/dead"),
            "List dead letters, the newest first",
            list,
        ),
        Method::new(
            ("dead.get", Viewer),
            (Get, "/v1/dead/{id}"),
            "Read a dead letter",
            get,
        ),
        Method::new(
            ("dead.retry", User),
            (Post, "/v1/dead/{id}/retry"),
            "Run the job of a dead letter again",
            retry,
        ),
        Method::new(
            ("dead.delete", Admin),
            (Delete, "/v1/dead/{id}"),
            "Delete a dead letter with its job",
            delete,
        ),
    ]
}

/// A page of dead letters.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "DeadListParams")]
struct ListParams {
    /// Only jobs of this type.
    #[serde(rename = "type")]
    script_type: Option<String>,
    /// Only letters of this kind of failure.
    reason: Option<String>,
    /// Greatest number of letters, 1 to 1000. Default: 100. A page may have fewer, although more follow.
    limit: Option<usize>,
    /// `next` of the page before.
    cursor: Option<String>,
}

/// Page of dead letters.
#[derive(Debug, Serialize, JsonSchema)]
struct DeadLetters<'a> {
    /// The letters, the newest first.
    letters: Vec<DeadLetterView<'a>>,
    /// Cursor of the next page; null after the last one.
    next: Option<String>,
}

/// The id of a dead letter.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "DeadParams")]
struct IdParams {
    /// Id of the job.
    id: String,
}

async fn list(call: Call, params: ListParams) -> Result<Reply<DeadLetters<'static>>, ApiError> {
    let limit = params::limit(params.limit)?;
    let filter = JobFilter {
        script_type: parse_some("type", params.script_type.as_deref())?,
        reason: params.reason,
        ..JobFilter::default()
    };
    let mut cursor = params.cursor.as_deref().map(read).transpose()?;
    let mut letters = Vec::new();
    for _ in 0..MAX_PAGES {
        let page = call.client.dead_letters(&filter, cursor.as_ref()).await?;
        letters.extend(page.letters);
        cursor = page.next;
        if cursor.is_none() || letters.len() >= limit {
            break;
        }
    }
    if letters.len() > limit {
        letters.truncate(limit);
        cursor = letters
            .last()
            .map(|it| DeadCursor::at(it.at_ms, &it.job.id));
    }
    Ok(Reply::borrowed(&DeadLetters {
        letters: letters.iter().map(DeadLetterView::from).collect(),
        next: cursor.as_ref().map(ToString::to_string),
    }))
}

pub(super) fn read(cursor: &str) -> Result<DeadCursor, ApiError> {
    let read = cursor.split_once('/');
    let read = read.and_then(|(at, id)| Some(DeadCursor::at(at.parse().ok()?, id)));
    read.ok_or_else(|| ApiError::invalid("cursor: give `next` of the page before"))
}

async fn get(call: Call, params: IdParams) -> Result<Reply<JobView<'static>>, ApiError> {
    let letter = call.client.dead_letter(&JobId::foreign(params.id)).await?;
    Ok(Reply::borrowed(&JobView::from(&letter.job)))
}

async fn retry(call: Call, params: IdParams) -> Result<Reply<Changed>, ApiError> {
    let id = JobId::foreign(params.id);
    let letter = call.client.dead_letter(&id).await?;
    retried(&id, call.client.retry_dead_letter(&letter.job).await?)
}

async fn delete(call: Call, params: IdParams) -> Result<Reply<Changed>, ApiError> {
    let id = JobId::foreign(params.id);
    let letter = call.client.dead_letter(&id).await?;
    deleted(&id, call.client.delete_dead_letter(&letter.job).await?)
}
