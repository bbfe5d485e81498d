//! Filters for lists of jobs and for changes of many jobs.

use meshwork_macros::boxed;
use std::collections::HashMap;
use std::str::FromStr;

use meshwork_broker::{DeadLetter, MAX_ITEMS};
use meshwork_model::job::{Job, Tag};
use meshwork_model::name::{BatchId, Group, JobId, RoutingKey, ScriptType};
use meshwork_model::state::{State, Status};
use meshwork_model::time;

use super::Client;
use crate::Error;

/// Number of whole records in memory during a text search; each may have an input of 16 MiB.
const TEXT_RECORDS: usize = 8;

/// State by which a filter selects jobs.
///
/// [`JobFilter`] has an example.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobState {
    /// The job is in this state.
    Is(State),
    /// The record of the job has this status.
    Recorded(Status),
    /// The job is open and on no list, or it was started without a lease longer ago than its timeout; see
    /// [`Client::stale`].
    Stale,
}

impl JobState {
    /// Returns true if a job may be in this state, whether it is delayed or not.
    fn may_be(self, job: &Job) -> bool {
        match self {
            Self::Stale => true,
            Self::Recorded(wanted) => job.status() == Some(wanted),
            Self::Is(wanted) => [false, true]
                .map(|is_delayed| job.state(is_delayed))
                .contains(&Some(wanted)),
        }
    }
}

impl FromStr for JobState {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "stale" {
            return Ok(Self::Stale);
        }
        let found = State::ALL.into_iter().find(|state| state.as_str() == text);
        found.map(Self::Is).ok_or_else(|| {
            let words = State::ALL.map(State::as_str).join(", ");
            format!("{text:?} is no state of a job: give {words} or stale")
        })
    }
}

/// Selects jobs or dead letters. Default: all.
///
/// ```
/// use meshwork::{Client, JobFilter, JobState, JobStatus};
///
/// #[meshwork::job(key = "{customer}")]
/// struct Pay { customer: String }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), meshwork::Error> {
/// let client = Client::in_memory();
/// client.enqueue(Pay { customer: "ada".into() }).await?;
/// let filter = JobFilter {
///     status: Some(JobState::Is(JobStatus::Queued)),
///     key: Some("ada".into()),
///     ..JobFilter::default()
/// };
/// // The next page begins at `found.next`.
/// let found = client.find(&filter, 0).await?;
/// assert_eq!(found.jobs.len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct JobFilter {
    /// Only jobs of this type.
    pub script_type: Option<ScriptType>,
    /// Only jobs of this group.
    pub group: Option<Group>,
    /// Only jobs of this route: the group of this name, or no group for `default`.
    pub route: Option<RoutingKey>,
    /// Only jobs of this queue, named in full, with its priority if it has one.
    pub queue: Option<String>,
    /// Only jobs in this state.
    pub status: Option<JobState>,
    /// Only jobs of this concurrency key.
    pub key: Option<String>,
    /// Only jobs with each of these tags.
    pub tags: Vec<Tag>,
    /// Only jobs of this batch.
    pub batch: Option<BatchId>,
    /// Only children of this job.
    pub parent: Option<JobId>,
    /// Only dead letters with this reason, one of
    /// [`DEAD_REASONS`](meshwork_model::outcome::DEAD_REASONS).
    pub reason: Option<String>,
    /// Only jobs whose error contains this text.
    pub error_contains: Option<String>,
    /// Only jobs that contain this text in their id, script, input, result or error. This reads whole records: bound
    /// the number of jobs with [`MAX_TEXT_SCAN`].
    pub text: Option<String>,
    /// Only jobs that were created, or died, at this time or later, in milliseconds since 1970. Jobs without a readable
    /// time of creation do not match.
    pub since_ms: Option<u64>,
    /// Only jobs that were created, or died, before this time, in milliseconds since 1970. Jobs without a readable time
    /// of creation do not match.
    pub until_ms: Option<u64>,
}

/// Greatest number of jobs that a text search should read, since it reads whole records.
pub const MAX_TEXT_SCAN: usize = 100_000;

/// A page of matching jobs.
///
/// [`JobFilter`] has an example.
#[derive(Debug, Clone, Default)]
pub struct FoundJobs {
    /// Jobs in no order, without script, input, result and logs.
    pub jobs: Vec<Job>,
    /// Number of jobs that were compared with the filter.
    pub looked_at: usize,
    /// Cursor of the next page; 0 after the last one.
    pub next: u64,
}

fn is(wanted: Option<&str>, is: Option<&str>) -> bool {
    wanted.is_none() || wanted == is
}

impl JobFilter {
    /// Returns true if a record matches, without regard to text, delay and time.
    fn includes_record(&self, job: &Job, list: &str) -> bool {
        self.status.is_none_or(|state| state.may_be(job))
            && is(
                self.script_type.as_ref().map(ScriptType::as_str),
                job.script_type.as_deref(),
            )
            && is(self.group.as_ref().map(Group::as_str), job.group.as_deref())
            && self.includes_route(job)
            && is(self.key.as_deref(), job.key.as_deref())
            && (self.tags.iter()).all(|tag| job.tags.iter().any(|has| has == tag.as_str()))
            && is(
                self.batch.as_ref().map(BatchId::as_str),
                job.batch.as_deref(),
            )
            && is(
                self.parent.as_ref().map(JobId::as_str),
                job.parent.as_deref(),
            )
            && is(self.reason.as_deref(), job.dead.as_deref())
            && is(self.queue.as_deref(), Some(list))
            && self.error_contains.as_ref().is_none_or(|text| {
                let error = job.error.as_deref().unwrap_or_default();
                error.contains(text)
            })
    }

    fn includes_route(&self, job: &Job) -> bool {
        let group = job.group.as_deref().filter(|group| *group != "default");
        match &self.route {
            None => true,
            Some(route) if route.is_default() => group.is_none(),
            Some(route) => group == Some(route.as_str()),
        }
    }

    /// Returns true if a time matches.
    fn includes_time(&self, at_ms: Option<u64>) -> bool {
        (self.since_ms.is_none() && self.until_ms.is_none())
            || at_ms.is_some_and(|at| {
                self.since_ms.is_none_or(|since| at >= since)
                    && self.until_ms.is_none_or(|until| at < until)
            })
    }
}

/// Returns true if a complete record contains a text.
fn contains(job: &Job, text: &str, with_payloads: bool) -> bool {
    let in_bytes = |bytes: &[u8]| {
        let text = text.as_bytes();
        text.is_empty() || bytes.windows(text.len()).any(|part| part == text)
    };
    let in_payloads = || {
        in_bytes(&job.script)
            || in_bytes(job.input.as_deref().unwrap_or_default())
            || in_bytes(job.output.as_deref().unwrap_or_default())
    };
    job.id.contains(text)
        || job.error.as_deref().unwrap_or_default().contains(text)
        || with_payloads && in_payloads()
}

impl Client {
    /// Returns a page of the jobs that match `filter`. Begin with `from` 0, and continue at `next` until it is 0. A
    /// page may be empty, and a job may be returned twice.
    ///
    /// # Errors
    /// A call to the server fails.
    #[boxed]
    pub async fn find(&self, filter: &JobFilter, from: u64) -> Result<FoundJobs, Error> {
        let (mut jobs, next) = match (filter.status, &filter.parent) {
            (Some(JobState::Stale), _) => {
                let jobs = self.stale(from as usize).await?;
                // Jobs may be deleted meanwhile, so only an empty page is the last one.
                let next = if jobs.is_empty() {
                    0
                } else {
                    from + MAX_ITEMS as u64
                };
                (jobs, next)
            }
            (_, Some(parent)) => (self.children(parent).await?, 0),
            _ => {
                let page = self.list(from).await?;
                (page.jobs, page.next)
            }
        };
        let looked_at = jobs.len();
        jobs.retain(|job| {
            filter.includes_record(job, &self.broker.queue_of(job))
                && filter.includes_time(time::parse_iso(&job.created_at))
        });
        self.keep_delayed(filter, &mut jobs).await?;
        self.keep_text(filter, &mut jobs, |job| job).await?;
        Ok(FoundJobs {
            jobs,
            looked_at,
            next,
        })
    }

    /// Keeps the dead letters that match `filter`, without regard to their time.
    pub(super) async fn keep_letters(
        &self,
        filter: &JobFilter,
        letters: &mut Vec<DeadLetter>,
    ) -> Result<(), Error> {
        letters.retain(|letter| {
            filter.includes_record(&letter.job, &self.broker.queue_of(&letter.job))
        });
        self.keep_text(filter, letters, |letter| &letter.job).await
    }

    /// Keeps the dispatched jobs that wait for a time, or those that do not, if the filter distinguishes them.
    async fn keep_delayed(&self, filter: &JobFilter, jobs: &mut Vec<Job>) -> Result<(), Error> {
        let Some(JobState::Is(wanted @ (State::Delayed | State::Queued))) = filter.status else {
            return Ok(());
        };
        let mut states = self.states(jobs).await?.into_iter();
        jobs.retain(|_| states.next().flatten() == Some(wanted));
        Ok(())
    }

    /// Returns the states of jobs, in order; `None` for a status that another client wrote and that is no word of a
    /// record.
    ///
    /// # Errors
    /// A call to the server fails.
    pub async fn states(&self, jobs: &[Job]) -> Result<Vec<Option<State>>, Error> {
        let found = self.states_with_times(jobs).await?.into_iter();
        Ok(found.map(|(state, _)| state).collect())
    }

    /// Returns the states of jobs as [`Self::states`], each with the time of the next run of a delayed job, in milliseconds
    /// since 1970.
    ///
    /// # Errors
    /// A call to the server fails.
    #[boxed]
    pub async fn states_with_times(
        &self,
        jobs: &[Job],
    ) -> Result<Vec<(Option<State>, Option<u64>)>, Error> {
        let may_be_delayed = |job: &&Job| job.status() == Some(Status::Dispatched);
        let ids: Vec<_> = jobs
            .iter()
            .filter(may_be_delayed)
            .map(Job::job_id)
            .collect();
        let mut delayed = HashMap::new();
        for chunk in ids.chunks(MAX_ITEMS) {
            let times = match self.broker.next_runs(chunk).await {
                Err(error) if error.is_wrong_type() => {
                    tracing::warn!(%error, "it is unknown which jobs are delayed");
                    break;
                }
                times => times?,
            };
            let found = chunk.iter().zip(times);
            delayed.extend(found.filter_map(|(id, time)| Some((id.as_str().to_owned(), time?))));
        }
        let of = |job: &Job| {
            let time = delayed.get(&job.id).copied();
            (job.state(time.is_some()), time)
        };
        Ok(jobs.iter().map(of).collect())
    }

    /// Keeps the jobs whose records contain the filter's text.
    async fn keep_text<T>(
        &self,
        filter: &JobFilter,
        found: &mut Vec<T>,
        job: impl Fn(&T) -> &Job,
    ) -> Result<(), Error> {
        let Some(text) = &filter.text else {
            return Ok(());
        };
        let ids: Vec<_> = found.iter().map(|one| job(one).job_id()).collect();
        let mut wanted = self.text_matches(&ids, text, true).await?.into_iter();
        found.retain(|_| wanted.next().unwrap_or(false));
        Ok(())
    }

    /// Returns for each job whether its id or error contains a text; with `payloads`, also its script, input or result.
    /// Reads whole records, a few at a time.
    ///
    /// # Errors
    /// A call to the server fails.
    #[boxed]
    pub async fn text_matches(
        &self,
        ids: &[JobId],
        text: &str,
        payloads: bool,
    ) -> Result<Vec<bool>, Error> {
        let mut matches = Vec::with_capacity(ids.len());
        for chunk in ids.chunks(TEXT_RECORDS) {
            let records = self.broker.inspect_many(chunk).await?.into_iter();
            let is_match = |job: Job| contains(&job, text, payloads);
            matches.extend(records.map(|record| record.is_some_and(is_match)));
        }
        Ok(matches)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_have_one_word_each() {
        let state = |text: &str| text.parse::<JobState>();
        for wanted in State::ALL {
            assert_eq!(state(wanted.as_str()), Ok(JobState::Is(wanted)));
        }
        assert_eq!(state("stale"), Ok(JobState::Stale));
        for word in ["dispatched", "error", "started", "done", "lost"] {
            let error = state(word).unwrap_err();
            assert!(
                error.contains(word) && error.contains("queued, delayed"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_cancelled_job_has_not_failed() {
        let of = |error: &str, dead: Option<&str>| {
            let mut job = Job::from_fields("j", []);
            job.status = "error".to_owned();
            (job.error, job.dead) = (Some(error.to_owned()), dead.map(str::to_owned));
            job
        };
        let (cancelled, failed) = (JobState::Is(State::Cancelled), JobState::Is(State::Failed));
        for error in [
            "stopped",
            "stopped_by_request",
            "cancelled: too late",
            "replaced by j2",
            "batch b was cancelled",
        ] {
            let job = of(error, None);
            assert!(cancelled.may_be(&job) && !failed.may_be(&job), "{error}");
            let dead = of(error, Some("failed"));
            assert!(failed.may_be(&dead) && !cancelled.may_be(&dead), "{error}");
        }
        let job = of("prerequisite a did not finish", None);
        assert!(failed.may_be(&job) && !cancelled.may_be(&job));
    }

    #[test]
    fn a_route_is_a_group_and_default_is_none() {
        let routed = |route: &str| JobFilter {
            route: Some(route.parse().unwrap()),
            ..JobFilter::default()
        };
        let mut one = Job::from_fields("j", []);
        one.group = Some("gpu".to_owned());
        assert!(routed("gpu").includes_record(&one, "l"));
        assert!(!routed("cpu").includes_record(&one, "l"));
        assert!(!routed("default").includes_record(&one, "l"));
        one.group = None;
        assert!(routed("default").includes_record(&one, "l"));
        assert!(!routed("gpu").includes_record(&one, "l"));
    }

    #[test]
    fn times_are_from_since_until_before_until() {
        let filter = JobFilter {
            since_ms: Some(10),
            until_ms: Some(20),
            ..JobFilter::default()
        };
        let included: Vec<_> = [9, 10, 19, 20]
            .map(|at| filter.includes_time(Some(at)))
            .into();
        assert_eq!(included, [false, true, true, false]);
        assert!(!filter.includes_time(None) && JobFilter::default().includes_time(None));
    }
}
