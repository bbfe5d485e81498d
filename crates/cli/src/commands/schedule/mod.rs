//! `meshwork schedule`.

mod add;
mod change;
mod list;
mod next;
mod run;
mod show;
mod view;

use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;

/// Run jobs repeatedly: by cron expressions, or at an interval
///
/// Any worker, of any type, can fire schedules. Each slot runs once, with any number of workers.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum ScheduleCommand {
    Add(Box<add::Add>),
    List(list::List),
    Show(show::Show),
    /// Pause schedules: none of their slots runs until they are resumed
    Pause(change::Names),
    /// Resume paused schedules with the first slot from now on
    Resume(change::Names),
    /// Delete schedules; jobs that they have started remain
    Remove(change::Names),
    Next(next::Next),
    Run(run::Run),
}

impl ScheduleCommand {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        match self {
            Self::Add(add) => add.run(context).await,
            Self::List(list) => list.run(context).await,
            Self::Show(show) => show.run(context).await,
            Self::Pause(names) => {
                names
                    .change(context, "paused", async |s| s.pause().await)
                    .await
            }
            Self::Resume(names) => {
                names
                    .change(context, "resumed", async |s| s.resume().await)
                    .await
            }
            Self::Remove(names) => {
                names
                    .change(context, "removed", async |s| s.remove().await)
                    .await
            }
            Self::Next(next) => next.run(context).await,
            Self::Run(run) => run.run(context).await,
        }
    }
}

/// Parses a schedule's name.
fn name(text: &str) -> Result<String, meshwork::model::name::NameError> {
    let name: meshwork::model::name::ScheduleName = text.parse()?;
    Ok(name.to_string())
}
