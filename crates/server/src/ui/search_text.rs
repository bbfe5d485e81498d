//! Search for a text in all jobs of some states: a page that grows while the jobs are read, and ends when it is left.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONNECTION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use maud::{Markup, html};
use meshwork_broker::JobSet;
use meshwork_model::name::JobId;
use tokio::sync::OwnedSemaphorePermit;

use super::caller::Caller;
use super::selection::{Selection, Step, WAITING, Walk};
use super::text::{cell_of, number};
use super::views::{JobRow, found_line};
use crate::api::http::life::Life;
use crate::api::{ApiError, Code, READ_JOBS};

/// Greatest number of searches at once.
pub(super) const AT_ONCE: usize = 2;
/// Greatest number of records of a search.
const MOST_READ: u64 = 100_000;
/// Greatest number of jobs that are shown.
const MOST_FOUND: u64 = 500;
/// Time of a step, and of the pause after it.
const STEP: Duration = Duration::from_millis(5);
/// Records of the first step, of the largest and of the smallest one.
const FIRST_STEP: usize = 32;
const LARGEST_STEP: usize = 500;
const SMALLEST_STEP: usize = 8;
/// Shortest pause between two lines of progress.
const PROGRESS_EVERY: Duration = Duration::from_millis(300);

/// States that are searched, with their labels. Dead letters are among the ended jobs. Jobs that wait for other jobs are
/// in no list: all records are read for them, so they are searched on request only.
pub(super) const STATES: [(&str, &str); 5] = [
    ("ended", "Ended"),
    ("running", "Running"),
    ("queued", "Queued"),
    ("delayed", "Delayed"),
    (WAITING, "Waiting for other jobs"),
];

/// Returns the states of an address; all that have lists if it names none.
pub(super) fn states(caller: &Caller) -> Vec<&'static str> {
    let all = STATES.iter().map(|(state, _)| *state);
    let chosen = all.clone().filter(|state| caller.query(state).is_some());
    let chosen: Vec<_> = chosen.collect();
    match chosen.is_empty() {
        true => all.filter(|state| *state != WAITING).collect(),
        false => chosen,
    }
}

/// A search under way.
#[derive(Debug)]
pub(super) struct Search {
    caller: Arc<Caller>,
    text: String,
    /// Walks over the lists of the states, the last one first.
    walks: Vec<Walk>,
    step: usize,
    stored: u64,
    read: u64,
    found: u64,
    said: Option<Instant>,
    _slot: OwnedSemaphorePermit,
}

impl Search {
    /// Begins a search.
    pub(super) async fn begin(caller: &Arc<Caller>, text: &str) -> Result<Self, ApiError> {
        let slot = Arc::clone(&caller.shared.searches).try_acquire_owned();
        let slot = slot.map_err(|_| {
            let message = format!("{AT_ONCE} searches are under way: try again later");
            ApiError::new(Code::TooManyRequests, message)
        })?;
        let states = states(caller);
        let mut walks = Vec::new();
        for state in states.iter().rev() {
            walks.push(Walk::begin(caller, &Selection::of_state(state)).await?);
        }
        Ok(Self {
            caller: Arc::clone(caller),
            text: text.to_owned(),
            walks,
            step: FIRST_STEP,
            stored: stored(caller, &states).await?,
            read: 0,
            found: 0,
            said: None,
            _slot: slot,
        })
    }

    /// Reads the next records. Returns what the page shows of them; `None` at the end.
    async fn next(&mut self) -> Result<Option<Markup>, ApiError> {
        if self.read >= MOST_READ || self.found >= MOST_FOUND {
            return Ok(None);
        }
        let Some(walk) = self.walks.last_mut() else {
            return Ok(None);
        };
        let began = Instant::now();
        let Some(Step { jobs, read }) = walk.next(&self.caller, self.step).await? else {
            self.walks.pop();
            return Ok(Some(html! {}));
        };
        let matches = self.matches(&jobs).await?;
        self.read += read as u64;
        self.found += matches.iter().filter(|is_match| **is_match).count() as u64;
        let took = began.elapsed();
        let fits = self.step as f64 * STEP.as_secs_f64() / took.as_secs_f64().max(0.0001);
        self.step = (fits as usize).clamp(SMALLEST_STEP, LARGEST_STEP);
        let found = jobs.iter().zip(matches).filter(|(_, is_match)| *is_match);
        let says = self.said.is_none_or(|at| at.elapsed() >= PROGRESS_EVERY);
        if says {
            self.said = Some(Instant::now());
        }
        let shown = html! {
            @for (job, _) in found { (found_line(&self.caller, job)) }
            @if says { (self.progress()) }
        };
        // Others get at least half of the server's time.
        tokio::time::sleep(took).await;
        Ok(Some(shown))
    }

    async fn matches(&self, jobs: &[JobRow]) -> Result<Vec<bool>, ApiError> {
        let call = self
            .caller
            .call()
            .enter(self.caller.context, READ_JOBS)
            .await?;
        let ids: Vec<_> = jobs
            .iter()
            .map(|job| JobId::foreign(job.id.clone()))
            .collect();
        let hides = self.caller.shared.options.hide_payloads;
        Ok(call.client.text_matches(&ids, &self.text, !hides).await?)
    }

    fn progress(&self) -> Markup {
        html! {
            p.progress {
                (number(self.read)) " of " (number(self.stored.max(self.read))) ", " (number(self.found)) " found"
            }
        }
    }

    /// The last lines of the page.
    fn end(&self, result: Result<(), ApiError>) -> Markup {
        html! {
            (self.progress())
            @match result {
                Err(error) => p.flash.bad role="alert" { (cell_of(&error.message, 2000)) },
                Ok(()) if self.found >= MOST_FOUND => p.note { "The search ends with " (number(MOST_FOUND)) " jobs: look for a longer text." },
                Ok(()) if self.read >= MOST_READ => p.note { "The search ends after " (number(MOST_READ)) " jobs." },
                Ok(()) => p.note { "The search has ended." },
            }
        }
    }
}

/// Number of jobs in the lists of these states.
async fn stored(caller: &Caller, states: &[&str]) -> Result<u64, ApiError> {
    let call = caller.call().enter(caller.context, READ_JOBS).await?;
    let broker = call.client.broker();
    let mut count = 0;
    for state in states {
        let sets: &[JobSet] = match *state {
            "running" => &[JobSet::Running],
            "delayed" => &[JobSet::Delayed],
            "ended" => &[JobSet::Ended, JobSet::Dead],
            // Their number is not known.
            WAITING => &[],
            _ => {
                let list = caller.queues().await?;
                count += list.queues.iter().map(|queue| queue.waiting).sum::<u64>();
                &[]
            }
        };
        for set in sets {
            count += broker
                .set_length(*set)
                .await
                .map_err(meshwork::Error::from)?;
        }
    }
    Ok(count)
}

/// Writes a page whose middle grows while the search reads.
pub(super) fn answer(search: Search, page: (String, String), life: Life) -> Response {
    let (head, tail) = page;
    let first = stream::once(std::future::ready(Ok::<_, Infallible>(Bytes::from(head))));
    let state = Some((search, life, tail));
    let rest = stream::unfold(state, |state| async move {
        let (mut search, life, tail) = state?;
        let result = tokio::select! {
            _ = life.end() => Ok(None),
            next = search.next() => next,
        };
        let (markup, next) = match result {
            Ok(Some(markup)) => (markup.0, Some((search, life, tail))),
            Ok(None) => (search.end(Ok(())).0 + tail.as_str(), None),
            Err(error) => (search.end(Err(error)).0 + tail.as_str(), None),
        };
        Some((Ok(Bytes::from(markup)), next))
    });
    let headers = [
        (
            CONTENT_TYPE,
            HeaderValue::from_static("text/html; charset=utf-8"),
        ),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (CONNECTION, HeaderValue::from_static("close")),
    ];
    let body = Body::from_stream(futures_util::StreamExt::chain(first, rest));
    (headers, [("x-accel-buffering", "no")], body).into_response()
}
