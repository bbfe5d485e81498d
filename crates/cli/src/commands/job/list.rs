//! `meshwork job list`.

use meshwork::MAX_TEXT_SCAN;
use meshwork::model::name::JobId;

use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::listing::{Cursor, Newest};
use crate::out::note;
use crate::record::Summary;
use crate::select::Select;
use crate::value;

/// List jobs, the newest first
///
/// Scans all jobs; memory is needed for the printed ones only.
#[derive(Debug, clap::Args)]
pub(crate) struct List {
    #[command(flatten)]
    select: Select,
    /// Only the children of this job, which it submitted with submit()
    #[arg(long, value_name = "ID", value_parser = value::job_id, help_heading = "Filter")]
    parent: Option<JobId>,
    /// Greatest number of rows, 1 to 100000
    #[arg(long, value_name = "N", default_value_t = 100, allow_hyphen_values = true,
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
    /// Continue after a list that was cut; the earlier command printed this word on stderr
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<Cursor>,
}

impl List {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let filter = self.select.filter(&context.keys())?;
        let client = context.client().await?;
        let mut filter = self.select.timed(filter, &client, false).await?;
        filter.parent = self.parent;
        let limit = self.limit;
        let newest = Newest::find(&client, &filter, limit as usize, self.cursor).await?;
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
        context.out.rows(newest.jobs.iter().map(Summary::from))?;
        Ok(Exit::DONE)
    }
}
