//! `meshwork job list`.

use std::cmp::Reverse;

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
use crate::listing::{Cursor, Newest};
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
    /// Order of the printed jobs: created, ended or duration (of the last run), the newest or the longest first
    #[arg(long, value_name = "WORD", default_value = "created")]
    sort: Sort,
}

/// Order of a list.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Sort {
    Created,
    Ended,
    Duration,
}

impl Sort {
    /// Sorts the jobs; those without an end come last.
    fn apply(self, jobs: &mut [Job]) {
        let ended = |job: &Job| {
            let is_ended = job.status().is_some_and(Status::is_final);
            time::parse_iso(&job.updated_at).filter(|_| is_ended)
        };
        let took = |job: &Job| Some(ended(job)?.saturating_sub(job.started_ms?));
        match self {
            Self::Created => {}
            Self::Ended => jobs.sort_by_key(|job| Reverse(ended(job))),
            Self::Duration => jobs.sort_by_key(|job| Reverse(took(job))),
        }
    }
}

impl List {
    pub(super) async fn run(&self, context: &mut App, store: &Store) -> Result<Exit, CommandError> {
        let client = &store.client;
        let mut filter = self.select.filter(store, false).await?;
        filter.parent = self.parent.clone();
        let (limit, cursor) = (self.limit, self.cursor.clone());
        let mut newest = Newest::find(client, &filter, limit as usize, cursor).await?;
        if let Some(next) = newest.next() {
            note(format_args!(
                "the newest {limit}; there are more (--limit), or continue with --cursor {next}"
            ));
        }
        if newest.incomplete {
            note(format_args!(
                "--text searched {MAX_TEXT_SCAN} jobs, and there are more: choose fewer by another option"
            ));
        }
        self.sort.apply(&mut newest.jobs);
        let (states, number) = (client.states(&newest.jobs).await?, store.context_number());
        let rows = newest.jobs.iter().zip(states);
        context
            .out
            .rows(rows.map(|(job, state)| JobSummary::new(job, state, number)))?;
        Ok(Exit::DONE)
    }
}
