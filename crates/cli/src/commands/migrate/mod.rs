//! `meshwork migrate`.

mod advance;
mod bananas;
mod start;
mod status;

use meshwork_model::migration::Migration;
use meshwork_model::name::ScriptType;
use serde::Serialize;

use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::note;

/// Move a type from the old lists to the canonical queues, or import jobs of Bananas, without downtime
///
/// `start` pushes jobs to both, `canonical-first` lets Meshwork's workers claim from the old lists too, `finish` ends
/// the migration when the old lists are empty. `status` shows the progress. `bananas` is a separate command, for jobs
/// of Bananas. `meshwork export` and `meshwork import` move all jobs from one store to another.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum MigrateCommand {
    Status(status::StatusOf),
    Start(start::Start),
    CanonicalFirst(advance::CanonicalFirst),
    Finish(advance::Finish),
    Abort(advance::Abort),
    Bananas(bananas::OfBananas),
}

impl MigrateCommand {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        match self {
            Self::Status(status) => Box::pin(status.run(context)).await,
            Self::Start(start) => start.run(context).await,
            Self::CanonicalFirst(first) => first.run(context).await,
            Self::Finish(finish) => Box::pin(finish.run(context)).await,
            Self::Abort(abort) => abort.run(context).await,
            Self::Bananas(bananas) => Box::pin(bananas.run(context)).await,
        }
    }
}

/// Type to migrate.
#[derive(Debug, Clone, clap::Args)]
struct Which {
    /// Type of scripts to migrate
    #[arg(long = "type", value_name = "TYPE")]
    script_type: ScriptType,
}

/// Printed JSON after a step.
#[derive(Debug, Serialize)]
struct TypeStatus<'a> {
    #[serde(rename = "type")]
    script_type: &'a str,
    /// `off` without a migration.
    phase: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    list: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    age_s: Option<f64>,
    /// Reasons for which the migration cannot end yet.
    left: &'a [String],
}

/// Prints the phase of a type's migration, with an explanation.
fn tell(
    context: &mut App,
    script_type: &ScriptType,
    migration: Option<&Migration>,
    left: &[String],
    words: &str,
) -> Result<(), CommandError> {
    if context.out.is_json() {
        context.out.json(&TypeStatus {
            script_type: script_type.as_str(),
            phase: migration.map_or("off", |set| set.phase.as_str()),
            list: migration.map(|set| set.list.as_str()),
            age_s: migration.map(|set| set.age.as_secs_f64()),
            left,
        })?;
    } else {
        note(words);
        for one in left {
            note(format_args!("  {one}"));
        }
    }
    Ok(())
}
