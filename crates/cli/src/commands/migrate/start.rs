//! `meshwork migrate start`.

use std::time::Duration;

use meshwork_model::name::ScriptType;

use super::{Which, tell};
use crate::app::App;
use crate::args::parsers;
use crate::error::CommandError;
use crate::exit::Exit;

/// Push jobs of a type to its old list too, so that old workers take them as well
///
/// A job on both lists runs once: taking it off the old list locks it.
#[derive(Debug, clap::Args)]
pub(crate) struct Start {
    #[command(flatten)]
    which: Which,
    /// Old list: hero:job:actor_queue:TYPE, hero:job:ACTOR_ID or hero:work_queue:WORKER_ID; {worker_id} stands for the
    /// id of each job's worker [default: hero:job:actor_queue:TYPE]
    #[arg(long)]
    list: Option<String>,
    /// Time without a report from an old worker after which its job counts as lost, in seconds, 0.1 to 86400; after
    /// twice that time the job is requeued
    #[arg(long, value_name = "DURATION", default_value = "30", value_parser = parsers::age,
          allow_hyphen_values = true)]
    age: Duration,
}

impl Start {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let script_type: &ScriptType = &self.which.script_type;
        let keys = context.keys();
        let list = self
            .list
            .unwrap_or_else(|| keys.legacy_type_queue(script_type));
        let list = keys.legacy_list(&list)?;
        let client = context.client().await?;
        let started = client
            .broker()
            .start_migration(script_type, list, self.age)
            .await?;
        let words = format!(
            "`{script_type}` migrates: its jobs go to the canonical queues and to {}; next: \
             `meshwork migrate canonical-first --type {script_type}`",
            started.list.as_str()
        );
        tell(context, script_type, Some(&started), &[], &words)?;
        Ok(Exit::DONE)
    }
}
