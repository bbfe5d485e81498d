//! `meshwork job list`.

use std::str::FromStr;

use meshwork::model::name::{JobId, ScriptType};
use meshwork::model::state::Status;

use crate::context::Context;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::listing::{self, Wanted};
use crate::out::{Column, Table, note};
use crate::record::{Summary, status_of};
use crate::value;

/// List jobs, the newest first
#[derive(Debug, clap::Args)]
pub(crate) struct List {
    /// Only those of this status: dispatched, waiting_for_prerequisites, started, finished or error; or stale: open
    /// jobs on no list, or started without a lease longer ago than their timeout
    #[arg(long)]
    status: Option<Which>,
    /// Only those of this type
    #[arg(long = "type", value_name = "TYPE")]
    script_type: Option<ScriptType>,
    /// Only the children of this job: those that it submitted with submit()
    #[arg(long, value_name = "ID", value_parser = value::job_id)]
    parent: Option<JobId>,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 100, allow_hyphen_values = true,
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
}

/// A status, or `stale`, which no record says.
#[derive(Debug, Clone, Copy)]
enum Which {
    Is(Status),
    Stale,
}

impl FromStr for Which {
    type Err = <Status as FromStr>::Err;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "stale" => Ok(Self::Stale),
            _ => text.parse().map(Self::Is),
        }
    }
}

impl List {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, CommandError> {
        let client = context.client().await?;
        let Self {
            status,
            script_type,
            parent,
            limit,
        } = self;
        let wanted = Wanted {
            status: match status {
                Some(Which::Is(status)) => Some(status),
                _ => None,
            },
            script_type,
            parent,
            limit: limit as usize,
        };
        let newest = match (status, &wanted.parent) {
            (Some(Which::Stale), _) => listing::stale(&client, &wanted).await?,
            (_, Some(parent)) => listing::newest_children(&client, parent, &wanted).await?,
            _ => listing::newest(&client, &wanted).await?,
        };
        if newest.cut {
            note(format_args!("the newest {limit}; there are more (--limit)"));
        }
        if context.out.is_json() {
            for job in &newest.jobs {
                context.out.json(&Summary::from(job))?;
            }
            return Ok(Exit::DONE);
        }
        let names = ["id", "status", "type", "created", "attempts", "error"];
        let mut table = Table::new(names.map(|name| match name {
            "attempts" => Column::number(name),
            _ => Column::text(name),
        }));
        for job in &newest.jobs {
            let (attempts, error) = (
                job.attempt.to_string(),
                job.error.as_deref().unwrap_or_default(),
            );
            let script_type = job.script_type.as_deref().unwrap_or_default();
            table.row([
                &job.id,
                status_of(job),
                script_type,
                &job.created_at,
                &attempts,
                error,
            ]);
        }
        context.out.table(table)?;
        Ok(Exit::DONE)
    }
}
