//! Bulk changes of jobs or dead letters: by ids, or all that match a filter. The matches are counted before any change.

use futures_util::StreamExt;
use meshwork::{Client, DeadCursor, Error as MeshworkError, JobFilter, MAX_TEXT_SCAN};
use meshwork_model::job::Job;
use meshwork_model::name::JobId;

use crate::app::App;
use crate::args::filter;
use crate::args::filter::Select;
use crate::args::parsers;
use crate::change::{Change, tell};
use crate::confirm::confirm;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::{Progress, note};

/// Greatest number of calls in flight.
const AT_ONCE: usize = 64;
/// Dead letters examined per page.
const DEAD_PAGE: usize = 1000;

/// Jobs by their ids or by a filter.
#[derive(Debug, Clone, clap::Args)]
#[command(group = clap::ArgGroup::new("which").required(true).multiple(true)
    .args(["ids", "all"]).args(filter::OPTIONS))]
pub(crate) struct Chosen {
    /// Ids of the jobs; or choose with --all or the options below
    #[arg(value_name = "ID", value_parser = parsers::job_id, conflicts_with = "all",
          conflicts_with_all = filter::OPTIONS)]
    pub(crate) ids: Vec<JobId>,
    /// All jobs
    #[arg(long, conflicts_with_all = filter::OPTIONS)]
    all: bool,
    #[command(flatten)]
    pub(crate) select: Select,
    /// Do not ask for confirmation
    #[arg(short, long)]
    yes: bool,
    /// List the chosen jobs only, and change nothing
    #[arg(long, conflicts_with = "ids")]
    pub(crate) dry_run: bool,
}

/// Kind of the jobs: all, or dead letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    Jobs,
    DeadLetters,
}

/// Change of jobs, in words.
#[derive(Clone, Copy)]
pub(crate) struct Verb {
    pub(crate) source: Source,
    /// Infinitive, as `retry`.
    pub(crate) verb: &'static str,
    /// Participle, as `retried`.
    pub(crate) done: &'static str,
    /// Returns true if the change applies to a job that matches the filter.
    pub(crate) fits: fn(&Job) -> bool,
}

impl Source {
    fn noun(self) -> &'static str {
        match self {
            Self::Jobs => "job",
            Self::DeadLetters => "dead letter",
        }
    }

    async fn one(self, client: &Client, id: &JobId) -> Result<Job, MeshworkError> {
        match self {
            Self::Jobs => client.summary(id).await,
            Self::DeadLetters => Ok(client.dead_letter(id).await?.job),
        }
    }
}

/// Iterates over all jobs that match a filter, page by page.
pub(crate) struct Pages<'a> {
    client: &'a Client,
    filter: &'a JobFilter,
    from: Option<From>,
    pub(crate) looked_at: usize,
}

enum From {
    Job(u64),
    Dead(Option<DeadCursor>),
}

impl<'a> Pages<'a> {
    pub(crate) fn new(client: &'a Client, filter: &'a JobFilter, source: Source) -> Self {
        let from = Some(match source {
            Source::Jobs => From::Job(0),
            Source::DeadLetters => From::Dead(None),
        });
        Self {
            client,
            filter,
            from,
            looked_at: 0,
        }
    }

    /// Returns the next page; none at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<Job>>, CommandError> {
        Ok(match self.from.take() {
            None => None,
            Some(From::Job(from)) => {
                let page = self.client.find(self.filter, from).await?;
                self.from = (page.next != 0).then_some(From::Job(page.next));
                self.looked_at += page.looked_at;
                Some(page.jobs)
            }
            Some(From::Dead(from)) => {
                let page = self.client.dead_letters(self.filter, from.as_ref()).await?;
                self.from = page.next.map(|next| From::Dead(Some(next)));
                self.looked_at += DEAD_PAGE;
                Some(page.letters.into_iter().map(|letter| letter.job).collect())
            }
        })
    }

    /// Returns true if a text search has reached its limit of scanned jobs.
    pub(crate) fn is_text_bound(&self) -> bool {
        self.filter.text.is_some() && self.from.is_some() && self.looked_at >= MAX_TEXT_SCAN
    }
}

impl Chosen {
    /// Applies `act` to each job. A refused job does not stop the others.
    pub(crate) async fn run(
        &self,
        context: &mut App,
        verb: Verb,
        act: impl AsyncFn(&Client, &Job) -> Result<Change, MeshworkError>,
    ) -> Result<Exit, CommandError> {
        if self.ids.is_empty() {
            return self.many(context, verb, act).await;
        }
        let client = context.client().await?;
        let mut exit = Exit::DONE;
        for id in &self.ids {
            let changed = match verb.source.one(&client, id).await {
                Ok(job) => act(&client, &job).await,
                Err(error) => Err(error),
            };
            exit = exit.or(tell(&mut context.out, id.as_str(), changed)?);
        }
        Ok(exit)
    }

    /// Applies `act` to all jobs that exist now and match the options.
    pub(crate) async fn many(
        &self,
        context: &mut App,
        verb: Verb,
        act: impl AsyncFn(&Client, &Job) -> Result<Change, MeshworkError>,
    ) -> Result<Exit, CommandError> {
        let filter = self.select.filter(&context.keys())?;
        let client = context.client().await?;
        let filter = self.select.timed(filter, &client, true).await?;
        let noun = verb.source.noun();
        let count = count(&client, &filter, verb).await?;
        if count == 0 {
            note(format_args!("there is no such {noun}"));
            return Ok(Exit::DONE);
        }
        if !self.dry_run {
            confirm(&format!("to {} {count} {noun}s", verb.verb), self.yes)?;
        }
        let mut progress = Progress::new(count);
        let (mut exit, mut seen, mut done) = (Exit::DONE, 0, 0);
        let mut pages = Pages::new(&client, &filter, verb.source);
        while let Some(page) = pages.next().await? {
            let fitting = page.iter().filter(|job| (verb.fits)(job));
            let mut changes = futures_util::stream::iter(fitting)
                .map(async |job| match self.dry_run {
                    true => (job, Ok(Change::Done("meant"))),
                    false => (job, act(&client, job).await),
                })
                .buffered(AT_ONCE);
            while let Some((job, changed)) = changes.next().await {
                let one = progress.aside(|| tell(&mut context.out, &job.id, changed))?;
                (exit, seen) = (exit.or(one), seen + 1);
                done += usize::from(one == Exit::DONE);
                progress.show(seen);
            }
        }
        drop(progress);
        let word = if self.dry_run { "meant" } else { verb.done };
        if verb.source == Source::Jobs && done == seen {
            note(format_args!("{done} {noun}s {word}"));
        } else {
            note(format_args!("{done} of {seen} {noun}s {word}"));
        }
        Ok(exit)
    }
}

/// Counts the matching jobs. A text search beyond its limit is refused, and nothing changes.
async fn count(client: &Client, filter: &JobFilter, verb: Verb) -> Result<usize, CommandError> {
    let (mut count, mut pages) = (0, Pages::new(client, filter, verb.source));
    let mut progress = Progress::scan();
    while let Some(page) = pages.next().await? {
        count += page.iter().filter(|job| (verb.fits)(job)).count();
        progress.show(pages.looked_at);
        if pages.is_text_bound() {
            return Err(CommandError::usage(format_args!(
                "--text searches at most {MAX_TEXT_SCAN} jobs, and there are more; nothing was changed: choose fewer \
                 by another option"
            )));
        }
    }
    Ok(count)
}
