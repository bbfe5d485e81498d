//! Dead letters: lists of them, groups of the same failure, and one letter.

use meshwork::view::{DeadGroup, DeadGroups, DeadLetterView};
use meshwork::{DeadCursor, DeadLetter, JobFilter};
use meshwork_broker::{JobSet, MAX_ITEMS};
use meshwork_model::job::Job;
use meshwork_model::outcome::DEAD_REASONS;
use meshwork_model::time;
use serde::{Deserialize, Serialize, Serializer};

use crate::change::{self, Action, ChangedJobs};
use crate::error::OpError;
use crate::job::{IdParams, JobAnswer, READ};
use crate::params::{self, Page, moment, parse_some};
use crate::queue::need_of_filter;
use crate::scope::{Needs, Place, Store};
use crate::with::{Paging, With};

/// Pages of the index that a call of [`list`] reads at most.
const MAX_PAGES: usize = 8;

/// A page of dead letters.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename = "DeadListParams")]
pub struct Filters {
    /// Only jobs of this type.
    #[serde(rename = "type")]
    script_type: Option<String>,
    /// Only jobs of this queue.
    queue: Option<String>,
    /// Only letters of this kind of failure.
    reason: Option<String>,
    /// Only jobs of this group.
    group: Option<String>,
    /// Only jobs of this concurrency key.
    key: Option<String>,
    /// Only jobs with this label.
    tag: Option<String>,
    /// Only jobs of this batch.
    batch: Option<String>,
    /// Only jobs whose error contains this text.
    error: Option<String>,
    /// Only jobs that contain this text in their id, script, input, result or error.
    text: Option<String>,
    /// Only jobs that died at this time or later (RFC 3339).
    since: Option<String>,
    /// Only jobs that died before this time (RFC 3339).
    until: Option<String>,
}

/// Page of dead letters.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeadLetters {
    /// The letters, the newest first.
    #[serde(serialize_with = "listed")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<DeadLetterView<'static>>"))]
    pub letters: Vec<(DeadLetter, Store)>,
    /// Cursor of the next page; null after the last one.
    pub next: Option<String>,
}

fn listed<S: Serializer>(letters: &[(DeadLetter, Store)], to: S) -> Result<S::Ok, S::Error> {
    let letters = letters.iter();
    to.collect_seq(
        letters.map(|(letter, store)| DeadLetterView::new(letter, store.context_number())),
    )
}

/// Filters of dead letters, with their place and a page.
pub type ListParams = With<Place, With<Paging, Filters>>;

impl Filters {
    /// Refuses a change that names all letters.
    fn check_filter(&self) -> Result<(), OpError> {
        let given = [
            &self.script_type,
            &self.queue,
            &self.reason,
            &self.group,
            &self.key,
            &self.tag,
            &self.batch,
            &self.error,
            &self.text,
            &self.since,
            &self.until,
        ];
        match given.iter().any(|it| it.is_some()) {
            true => Ok(()),
            false => Err(OpError::invalid(
                "give a filter, such as type, queue or reason",
            )),
        }
    }

    fn filter(&self, store: &Store) -> Result<JobFilter, OpError> {
        let queue = self.queue.as_deref();
        let tag = parse_some("tag", self.tag.as_deref())?;
        let at = |name: &str, text: Option<&str>| text.map(|it| moment(name, it)).transpose();
        Ok(JobFilter {
            script_type: parse_some("type", self.script_type.as_deref())?,
            queue: queue.map(|name| store.queue(name)).transpose()?,
            reason: self.reason.as_deref().map(known_reason).transpose()?,
            group: parse_some("group", self.group.as_deref())?,
            key: self.key.clone(),
            tags: tag.into_iter().collect(),
            batch: parse_some("batch", self.batch.as_deref())?,
            error_contains: self.error.clone(),
            text: self.text.clone(),
            since_ms: at("since", self.since.as_deref())?,
            until_ms: at("until", self.until.as_deref())?,
            ..JobFilter::default()
        })
    }
}

/// Reads a page of letters for a caller with this permission, each with the store of its place.
async fn read(
    store: Store,
    params: &ListParams,
    needs: Needs,
) -> Result<Page<(DeadLetter, Store)>, OpError> {
    let With {
        beside: paging,
        own,
    } = &params.own;
    let limit = paging.limit()?;
    let queue = own.queue.as_deref();
    let placed = store.enter_all(params.beside, queue, needs).await?;
    let read = async |store: Store, cursor: Option<String>, limit| {
        let is_first = cursor.is_none();
        let cursor = cursor.as_deref().map(position).transpose()?;
        let filter = own.filter(&store)?;
        let (letters, next) = newest(&store, &filter, (cursor, limit), MAX_PAGES).await?;
        if is_first && !params.beside.spread {
            need_of_filter(&store, queue, !letters.is_empty()).await?;
        }
        let letters = letters.into_iter().map(|letter| (letter, store.clone()));
        Ok::<_, OpError>((letters.collect(), next.map(|next| next.to_string())))
    };
    placed.page(paging.cursor.as_deref(), limit, read).await
}

/// Reads a reason.
pub(crate) fn known_reason(text: &str) -> Result<String, OpError> {
    match DEAD_REASONS.contains(&text) {
        true => Ok(text.to_owned()),
        false => Err(OpError::invalid(format!(
            "reason: {text:?} is none: give one of {}",
            DEAD_REASONS.join(", ")
        ))),
    }
}

/// Reads a cursor.
///
/// # Errors
/// No page gave it.
pub fn position(cursor: &str) -> Result<DeadCursor, OpError> {
    let read = cursor.split_once('/').filter(|(_, id)| !id.is_empty());
    let read = read.and_then(|(at, id)| Some(DeadCursor::at(at.parse().ok()?, id)));
    read.ok_or_else(params::wrong_cursor)
}

/// Reads dead letters, the newest first: up to `limit` after a cursor, in at most `most` pages of the index. Returns the
/// cursor of the rest, if more match, or the pages were too few to tell.
///
/// # Errors
/// A call to the server fails.
pub async fn newest(
    store: &Store,
    filter: &JobFilter,
    (mut cursor, limit): (Option<DeadCursor>, usize),
    most: usize,
) -> Result<(Vec<DeadLetter>, Option<DeadCursor>), OpError> {
    let mut letters = Vec::new();
    for _ in 0..most {
        let page = store.client.dead_letters(filter, cursor.as_ref()).await?;
        letters.extend(page.letters);
        cursor = page.next;
        // One more tells whether there are more.
        if cursor.is_none() || letters.len() > limit {
            break;
        }
    }
    if letters.len() > limit {
        letters.truncate(limit);
        let last = letters.last();
        cursor = last.map(|it| DeadCursor::at(it.at_ms, &it.job.id));
    }
    Ok((letters, cursor))
}

/// Lists dead letters, the newest first.
///
/// # Errors
/// A parameter is wrong, the caller may not read them, or a call to the server fails.
pub async fn list(store: Store, params: ListParams) -> Result<DeadLetters, OpError> {
    let (letters, next) = read(store, &params, READ).await?;
    Ok(DeadLetters { letters, next })
}

/// Dead letter with its whole record.
#[derive(Debug, Serialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "DeadLetter")
)]
pub struct Letter {
    /// Time of its death (RFC 3339).
    pub died_at: String,
    /// The job.
    #[serde(flatten)]
    pub job: JobAnswer,
}

/// Reads a dead letter.
///
/// # Errors
/// There is none, or the caller may not read it.
pub async fn get(store: Store, params: IdParams) -> Result<Letter, OpError> {
    let (store, id) = params.open(store, READ).await?;
    let DeadLetter { at_ms, job } = store.client.dead_letter(&id).await?;
    Ok(Letter {
        died_at: time::iso(at_ms),
        job: JobAnswer::ended(job, &store),
    })
}

/// Changes the jobs of a page of dead letters.
///
/// # Errors
/// As for [`list`], or no filter is given.
pub async fn change_many(
    store: Store,
    params: ListParams,
    action: Action,
) -> Result<ChangedJobs, OpError> {
    let (letters, next) = read(store, &params, action.needs()).await?;
    params.check_filter()?;
    let letters = letters.into_iter();
    let jobs: Vec<(Job, Store)> = letters.map(|(letter, store)| (letter.job, store)).collect();
    change::page((jobs, next), action).await
}

/// A part of the dead letters.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename = "DeadGroupsParams")]
pub struct GroupsParams {
    /// Context of the jobs; none for jobs outside contexts.
    context: Option<u32>,
    /// `next` of the part before.
    cursor: Option<String>,
}

/// A part of the dead letters, in groups.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "DeadGroups")
)]
pub struct Groups {
    /// The groups, the largest first.
    pub groups: Vec<DeadGroup>,
    /// Number of letters that were looked at.
    pub looked_at: u64,
    /// Number of all letters.
    pub stored: u64,
    /// Cursor of the next part; null after the last one.
    pub next: Option<String>,
}

/// Groups the next 1,000 dead letters by their failures.
///
/// # Errors
/// As for [`list`].
pub async fn groups(store: Store, params: GroupsParams) -> Result<Groups, OpError> {
    let store = store.enter(params.context, READ).await?;
    let cursor = params.cursor.as_deref().map(position).transpose()?;
    grouped(&store, &JobFilter::default(), cursor, MAX_ITEMS).await
}

/// Groups dead letters after a cursor, by pages of the index: up to about `most` that match.
///
/// # Errors
/// A call to the server fails.
pub async fn grouped(
    store: &Store,
    filter: &JobFilter,
    mut cursor: Option<DeadCursor>,
    most: usize,
) -> Result<Groups, OpError> {
    let (mut groups, mut looked_at) = (DeadGroups::default(), 0);
    loop {
        let page = store.client.dead_letters(filter, cursor.as_ref()).await?;
        page.letters.iter().for_each(|letter| groups.add(letter));
        looked_at += page.letters.len();
        cursor = page.next;
        if cursor.is_none() || looked_at >= most {
            break;
        }
    }
    let stored = store.client.broker().set_length(JobSet::Dead).await?;
    Ok(Groups {
        groups: groups.largest_first(),
        looked_at: looked_at as u64,
        stored,
        next: cursor.as_ref().map(ToString::to_string),
    })
}
