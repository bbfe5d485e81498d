//! `meshwork job list`.

use meshwork::MAX_TEXT_SCAN;
use meshwork::view::JobSummary;
use meshwork_model::job::Job;
use meshwork_model::name::JobId;
use meshwork_model::state::Status;
use meshwork_model::time;
use meshwork_ops::Store;

use crate::app::App;
use crate::args::filter::Select;
use crate::args::parsers;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::known_queue::need_in;
use crate::listing::{Cursor, First, Rank};
use crate::out::note;

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
            Self::Created => |_| None,
            Self::Ended => ended,
            Self::Duration => |job| Some(ended(job)?.saturating_sub(job.started_ms?)),
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

/// Returns the time of a job's end, in milliseconds since 1970.
fn ended(job: &Job) -> Option<u64> {
    let is_ended = job.status().is_some_and(Status::is_final);
    time::parse_iso(&job.updated_at).filter(|_| is_ended)
}

impl List {
    pub(super) async fn run(&self, context: &mut App, store: &Store) -> Result<Exit, CommandError> {
        let client = &store.client;
        need_in(context, store, self.select.queue()).await?;
        let mut filter = self.select.filter(store, false).await?;
        filter.parent = self.parent.clone();
        let (limit, cursor) = (self.limit, self.cursor.clone());
        if cursor.is_some() && self.sort != Sort::Created {
            return Err(CommandError::usage(
                "--cursor continues a list by creation: leave --sort out, or give a greater --limit",
            ));
        }
        let order = (self.sort.rank(), limit as usize);
        let first = First::find(client, &filter, order, cursor).await?;
        let what = self.sort.first();
        match first.next().filter(|_| self.sort == Sort::Created) {
            Some(next) => note(format_args!(
                "the {what} {limit}; there are more (--limit), or continue with --cursor {next}"
            )),
            None if first.is_cut() => {
                note(format_args!("the {what} {limit}; there are more (--limit)"));
            }
            None => {}
        }
        if first.incomplete {
            note(format_args!(
                "--text searched {MAX_TEXT_SCAN} jobs, and there are more: choose fewer by another option"
            ));
        }
        let (states, number) = (client.states(&first.jobs).await?, store.context_number());
        let rows = first.jobs.iter().zip(states);
        context
            .out
            .rows(rows.map(|(job, state)| JobSummary::new(job, state, number)))?;
        Ok(Exit::DONE)
    }
}
