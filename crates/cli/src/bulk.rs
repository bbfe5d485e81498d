//! Bulk changes of jobs or dead letters: by ids, or all that match a filter. The matches are counted before any change.

use std::collections::BTreeSet;

use futures_util::{StreamExt, stream};
use meshwork::view::JobSummary;
use meshwork::{JobFilter, MAX_TEXT_SCAN};
use meshwork_model::job::Job;
use meshwork_model::name::JobId;
use meshwork_model::number::counted;
use meshwork_model::state::{State, Status};
use meshwork_ops::Store;
use meshwork_ops::change::{Action, Change, Outcome};
use meshwork_ops::walk::{Source, Walk};

use crate::app::App;
use crate::args::filter;
use crate::args::filter::Select;
use crate::args::parsers;
use crate::change::{by_api, by_ids, tell_outcome};
use crate::confirm::confirm;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::known_queue::need_in;
use crate::out::{Progress, note};
use crate::scope::Params;

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

/// Change of jobs, in words.
#[derive(Clone, Copy)]
pub(crate) struct Verb {
    pub(crate) action: Action,
    /// Infinitive, as `retry`.
    pub(crate) verb: &'static str,
    /// Participle, as `retried`.
    pub(crate) done: &'static str,
    /// Returns true if the change applies to a job that matches the filter.
    pub(crate) fits: Fits,
}

/// Judges a job by its status, and by a request to stop it.
pub(crate) type Fits = fn(Option<Status>, bool) -> bool;

impl Verb {
    fn fits(self, job: &Job) -> bool {
        (self.fits)(job.status(), job.stop.is_some())
    }

    fn source(self) -> Source {
        match self.action {
            Action::RetryLetter | Action::DeleteLetter => Source::DeadLetters,
            _ => Source::Jobs,
        }
    }

    fn noun(self) -> &'static str {
        match self.source() {
            Source::Jobs => "job",
            Source::DeadLetters => "dead letter",
        }
    }
}

impl Chosen {
    /// Changes each job. A refused job does not stop the others.
    pub(crate) async fn run(
        &self,
        app: &mut App,
        store: &Store,
        verb: Verb,
    ) -> Result<Exit, CommandError> {
        match self.ids[..] {
            [] => self.many(app, store, verb).await,
            ref ids => by_ids(app, store, ids, verb.action).await,
        }
    }

    /// Changes all jobs that exist now and match the options.
    pub(crate) async fn many(
        &self,
        app: &mut App,
        store: &Store,
        verb: Verb,
    ) -> Result<Exit, CommandError> {
        need_in(app, store, self.select.queue()).await?;
        let filter = self.select.filter(store, true).await?;
        let noun = verb.noun();
        let count = count(store, &filter, verb).await?;
        if count == 0 {
            note(format_args!("there is no such {noun}"));
            return Ok(Exit::DONE);
        }
        let change = match self.dry_run {
            true => None,
            false => {
                confirm(
                    &format!("to {} {}", verb.verb, counted(count, noun)),
                    self.yes,
                )?;
                Some(Change::begin(store, verb.action, &[]).await?)
            }
        };
        let mut progress = Progress::new(count);
        let mut walk = Walk::new(&store.client, &filter, verb.source());
        let (mut exit, mut seen, mut done) = (Exit::DONE, 0, 0);
        while let Some(page) = walk.next().await? {
            let fitting = page.iter().filter(|job| verb.fits(job));
            let mut changes = match &change {
                Some(change) => change.each(fitting).boxed_local(),
                None => stream::iter(fitting.map(|job| (job, Ok(Outcome::Meant)))).boxed_local(),
            };
            while let Some((job, changed)) = changes.next().await {
                let show = || tell_outcome(&mut app.out, &job.id, verb.action, changed);
                let one = progress.aside(show)?;
                (exit, seen) = (exit.or(one), seen + 1);
                done += usize::from(one == Exit::DONE);
                progress.show(seen);
            }
        }
        drop(progress);
        let word = if self.dry_run { "meant" } else { verb.done };
        if verb.source() == Source::Jobs && done == seen {
            note(format_args!("{} {word}", counted(done, noun)));
        } else {
            note(format_args!("{done} of {} {word}", counted(seen, noun)));
        }
        Ok(exit)
    }

    /// Runs the command by the API.
    pub(crate) async fn by_api(
        &self,
        app: &mut App,
        params: Params,
        verb: Verb,
    ) -> Result<Exit, CommandError> {
        if !self.ids.is_empty() {
            return by_api(app, params, &self.ids, verb.action).await;
        }
        let fields = params.with(self.select.params()?.into());
        let noun = verb.noun();
        let (method, field) = match verb.source() {
            Source::Jobs => ("job.list", "jobs"),
            Source::DeadLetters => ("dead.list", "letters"),
        };
        let found = app.pages::<JobSummary<'_>>(method, fields, (field, usize::MAX));
        let (mut found, _) = found.await?;
        found.retain(|job| {
            let status = Status::ALL.into_iter().find(|it| it.as_str() == job.status);
            let is_stopping = job.state == State::Cancelling.as_str();
            self.select.has_tags(&job.about.tags) && (verb.fits)(status, is_stopping)
        });
        // A page may repeat a job.
        let ids: BTreeSet<_> = found.into_iter().map(|job| job.id.into_owned()).collect();
        if ids.is_empty() {
            note(format_args!("there is no such {noun}"));
            return Ok(Exit::DONE);
        }
        let count = counted(ids.len(), noun);
        if self.dry_run {
            for id in &ids {
                tell_outcome(&mut app.out, id, verb.action, Ok(Outcome::Meant))?;
            }
            note(format_args!("{count} meant"));
            return Ok(Exit::DONE);
        }
        confirm(&format!("to {} {count}", verb.verb), self.yes)?;
        let ids: Vec<_> = ids.into_iter().map(JobId::foreign).collect();
        let exit = by_api(app, params, &ids, verb.action).await?;
        if exit == Exit::DONE {
            note(format_args!("{count} {}", verb.done));
        }
        Ok(exit)
    }
}

/// Counts the matching jobs. A text search beyond its limit is refused, and nothing changes.
async fn count(store: &Store, filter: &JobFilter, verb: Verb) -> Result<usize, CommandError> {
    let (mut count, mut walk) = (0, Walk::new(&store.client, filter, verb.source()));
    let mut progress = Progress::scan();
    while let Some(page) = walk.next().await? {
        count += page.iter().filter(|job| verb.fits(job)).count();
        progress.show(walk.looked_at);
        if walk.is_text_bound() {
            return Err(CommandError::usage(format_args!(
                "--text searches at most {MAX_TEXT_SCAN} jobs, and there are more; nothing was changed: choose fewer \
                 by another option"
            )));
        }
    }
    Ok(count)
}
