//! `meshwork schedule pause`, `resume` and `remove`.

use meshwork::ScheduleHandle;
use serde::Serialize;

use super::FlowScope;
use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::note;

/// Names of schedules.
#[derive(Debug, clap::Args)]
pub(crate) struct Names {
    /// Names of the schedules
    #[arg(required = true, value_name = "NAME", value_parser = super::name)]
    names: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Line<'a> {
    name: &'a str,
    result: &'static str,
}

impl Names {
    /// Changes all schedules. A missing one does not stop the others.
    pub(crate) async fn change(
        self,
        scope: &FlowScope,
        context: &mut App,
        (verb, word): (&'static str, &'static str),
        act: impl AsyncFn(&ScheduleHandle) -> Result<(), meshwork::Error>,
    ) -> Result<Exit, CommandError> {
        let mut exit = Exit::DONE;
        for name in &self.names {
            let client = scope.client(name, Some(verb), context).await?;
            let result = match act(&client.schedule(name)?).await {
                Ok(()) => word,
                Err(error @ meshwork::Error::NoSchedule { .. }) => {
                    note(format_args!("error: {error}"));
                    exit = exit.or(Exit::NO_JOB);
                    "missing"
                }
                Err(error) => return Err(error.into()),
            };
            if context.out.is_json() {
                context.out.json(&Line { name, result })?;
            } else if result == word {
                context.out.line(format_args!("{name} {word}"))?;
            }
        }
        Ok(exit)
    }
}
