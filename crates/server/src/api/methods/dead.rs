//! Methods of dead letters.

use meshwork::view::{DeadLetterView, JobView};
use meshwork::{DeadCursor, DeadLetter, JobFilter};
use meshwork_model::api_key::Scope;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::job::{CHANGE, Changed, DELETE, IdParams, Needs, READ, deleted, retried};
use super::queue::list_of;
use crate::api::call::Call;
use crate::api::error::ApiError;
use crate::api::method::{HttpVerb, Method, Reply};
use crate::api::params::{self, Page, parse_some};
use crate::api::place::Place;

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
pub(super) struct ListParams {
    /// Only jobs of this type.
    #[serde(rename = "type")]
    script_type: Option<String>,
    /// Only jobs of this queue.
    queue: Option<String>,
    /// Only letters of this kind of failure.
    reason: Option<String>,
    /// Context of the jobs; none for jobs outside contexts.
    context: Option<u32>,
    /// True for the letters in all parts of the spread queue `queue`, or of all spread queues. Parts follow each other.
    #[serde(default)]
    spread: bool,
    /// Greatest number of letters, 1 to 1000. Default: 100. A page may have fewer, although more follow.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<usize>,
    /// `next` of the page before.
    cursor: Option<String>,
}

/// Page of dead letters.
#[derive(Debug, Serialize, JsonSchema)]
struct DeadLetters<'a> {
    /// The letters, the newest first.
    letters: Vec<ListedLetter<'a>>,
    /// Cursor of the next page; null after the last one.
    next: Option<String>,
}

/// Dead letter of a page.
#[derive(Debug, Serialize, JsonSchema)]
struct ListedLetter<'a> {
    /// Number of its context, a part with `spread`; null outside contexts.
    part: Option<u32>,
    /// The letter.
    #[serde(flatten)]
    letter: DeadLetterView<'a>,
}

async fn list(call: Call, params: ListParams) -> Result<Reply<DeadLetters<'static>>, ApiError> {
    let (letters, next) = params.read(call, READ).await?;
    let letters = letters.iter().map(|(letter, call)| ListedLetter {
        part: call.context_number(),
        letter: DeadLetterView::from(letter),
    });
    Ok(Reply::borrowed(&DeadLetters {
        letters: letters.collect(),
        next,
    }))
}

impl ListParams {
    /// Refuses a call that names all letters.
    pub(super) fn check_filter(&self) -> Result<(), ApiError> {
        let given = [&self.script_type, &self.queue, &self.reason];
        match given.iter().any(|it| it.is_some()) {
            true => Ok(()),
            false => Err(ApiError::invalid("give a filter: type, queue or reason")),
        }
    }

    /// Reads a page of letters for a caller with this permission, each with the call in its context.
    pub(super) async fn read(
        &self,
        call: Call,
        needs: Needs,
    ) -> Result<Page<(DeadLetter, Call)>, ApiError> {
        let limit = params::limit(self.limit)?;
        let place = Place {
            context: self.context,
            spread: self.spread,
        };
        let placed = call.enter_all(place, self.queue.as_deref(), needs).await?;
        let read = async |call: Call, cursor: Option<String>, limit| {
            let (letters, next) = self.read_in(&call, cursor, limit).await?;
            let letters = letters.into_iter().map(|letter| (letter, call.clone()));
            Ok((letters.collect(), next))
        };
        placed.page(self.cursor.as_deref(), limit, read).await
    }

    async fn read_in(
        &self,
        call: &Call,
        cursor: Option<String>,
        limit: usize,
    ) -> Result<Page<DeadLetter>, ApiError> {
        let queue = self.queue.as_deref();
        let filter = JobFilter {
            script_type: parse_some("type", self.script_type.as_deref())?,
            queue: queue.map(|name| list_of(call, name)).transpose()?,
            reason: self.reason.clone(),
            ..JobFilter::default()
        };
        let mut cursor = cursor.as_deref().map(read).transpose()?;
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
        Ok((letters, cursor.as_ref().map(ToString::to_string)))
    }
}

pub(super) fn read(cursor: &str) -> Result<DeadCursor, ApiError> {
    let read = cursor.split_once('/');
    let read = read.and_then(|(at, id)| Some(DeadCursor::at(at.parse().ok()?, id)));
    read.ok_or_else(params::wrong_cursor)
}

async fn get(call: Call, params: IdParams) -> Result<Reply<JobView<'static>>, ApiError> {
    let (call, id) = params.open(call, READ).await?;
    let letter = call.client.dead_letter(&id).await?;
    Ok(Reply::borrowed(&JobView::from(&letter.job)))
}

async fn retry(call: Call, params: IdParams) -> Result<Reply<Changed>, ApiError> {
    let (call, id) = params.open(call, CHANGE).await?;
    let letter = call.client.dead_letter(&id).await?;
    let done = call.client.retry_dead_letter(&letter.job).await?;
    call.noted("retry job", id.as_str()).await?;
    retried(&id, done)
}

async fn delete(call: Call, params: IdParams) -> Result<Reply<Changed>, ApiError> {
    let (call, id) = params.open(call, DELETE).await?;
    let letter = call.client.dead_letter(&id).await?;
    // The entry comes first, so that an interrupted call cannot delete without an entry.
    call.noted("delete job", id.as_str()).await?;
    deleted(&id, call.client.delete_dead_letter(&letter.job).await?)
}
