//! `meshwork job list`.

use meshwork::MAX_TEXT_SCAN;
use meshwork::view::JobSummary;
use meshwork_model::name::JobId;
use meshwork_ops::Store;

use crate::app::App;
use crate::args::filter::Select;
use crate::args::parsers;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::known_queue::need_in;
use crate::listing::{Cursor, First, Rank, Ranked};
use crate::out::note;
use crate::scope::Params;

/// List jobs, the newest first
///
/// Scans all jobs; memory is needed for the printed ones only.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct List {
    #[command(flatten)]
    select: Select,
    /// Only the children of this job, which it added with add_child()
    #[arg(long, value_name = "ID", value_parser = parsers::job_id, help_heading = "Filter")]
    parent: Option<JobId>,
    /// Greatest number of rows, 1 to 100000
    #[arg(long, value_name = "N", default_value_t = 100, allow_hyphen_values = true,
          value_parser = parsers::whole::<u32>(1..=100_000))]
    limit: u32,
    /// Continue after a list that was cut; the earlier command printed this word on stderr
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<Cursor>,
    /// Order of all jobs: created, ended or duration (of the last run), the newest or the longest first
    #[arg(long, value_name = "WORD", default_value = "created")]
    sort: Sort,
}

/// Order of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Sort {
    Created,
    Ended,
    Duration,
}

impl Sort {
    /// Returns the rank of a job; jobs without an end have none.
    fn rank(self) -> Rank {
        match self {
            Self::Created => |_, _| None,
            Self::Ended => |ended, _| ended,
            Self::Duration => |ended, started| Some(ended?.saturating_sub(started?)),
        }
    }

    /// Returns the word for the first jobs.
    const fn first(self) -> &'static str {
        match self {
            Self::Created => "newest",
            Self::Ended => "last ended",
            Self::Duration => "longest",
        }
    }
}

impl List {
    pub(super) async fn run(&self, context: &mut App, store: &Store) -> Result<Exit, CommandError> {
        let client = &store.client;
        need_in(context, store, self.select.queue()).await?;
        let mut filter = self.select.filter(store, false).await?;
        filter.parent = self.parent.clone();
        let mut first = self.first()?;
        let is_whole = first.scan(client, &filter).await?;
        self.tell_more(&first);
        if !is_whole {
            note(format_args!(
                "--text searched {MAX_TEXT_SCAN} jobs, and there are more: choose fewer by another option"
            ));
        }
        let jobs = first.into_jobs();
        let states = client.states_with_times(&jobs).await?;
        let rows = jobs.iter().zip(states);
        let rows = rows.map(|(job, (state, next))| {
            JobSummary::new(job, state, store.context_number()).with_next_run(next)
        });
        context.out.rows(rows)?;
        Ok(Exit::DONE)
    }

    /// Runs the command by the API.
    pub(super) async fn by_api(
        &self,
        context: &mut App,
        params: Params,
    ) -> Result<Exit, CommandError> {
        let mut fields = self.select.params()?;
        if let Some(parent) = &self.parent {
            fields.insert("parent".to_owned(), parent.as_str().into());
        }
        let mut first = self.first()?;
        let (jobs, _) = context
            .pages::<JobSummary<'_>>("job.list", params.with(fields.into()), ("jobs", usize::MAX))
            .await?;
        let jobs = jobs.into_iter();
        let chosen = jobs.filter(|job| self.select.has_tags(&job.about.tags));
        chosen.for_each(|job| first.add(job));
        self.tell_more(&first);
        context.out.rows(first.into_jobs())?;
        Ok(Exit::DONE)
    }

    /// Returns an empty list in the order of the options.
    fn first<J: Ranked>(&self) -> Result<First<J>, CommandError> {
        let cursor = self.cursor.clone();
        if cursor.is_some() && self.sort != Sort::Created {
            return Err(CommandError::usage(
                "--cursor continues a list by creation: leave --sort out, or give a greater --limit",
            ));
        }
        Ok(First::new((self.sort.rank(), self.limit as usize), cursor))
    }

    /// Says that there are more jobs.
    fn tell_more<J: Ranked>(&self, first: &First<J>) {
        let (what, limit) = (self.sort.first(), self.limit);
        match first.next().filter(|_| self.sort == Sort::Created) {
            Some(next) => note(format_args!(
                "the {what} {limit}; there are more (--limit), or continue with --cursor {next}"
            )),
            None if first.is_cut() => {
                note(format_args!("the {what} {limit}; there are more (--limit)"));
            }
            None => {}
        }
    }
}
