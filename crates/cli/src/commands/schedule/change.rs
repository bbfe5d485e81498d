//! `meshwork schedule pause`, `resume` and `remove`.

use meshwork::ScheduleHandle;
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

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
            let changed = match context.remote {
                Some(_) => by_api(context, verb, name).await,
                None => {
                    let client = scope.client(name, Some(verb), context).await?;
                    let changed = act(&client.schedule(name)?).await;
                    changed.map_err(CommandError::from)
                }
            };
            let result = match changed {
                Ok(()) => word,
                Err(error) if error.exit == Exit::NO_JOB => {
                    note(format_args!("error: {error}"));
                    exit = exit.or(Exit::NO_JOB);
                    "missing"
                }
                Err(error) => return Err(error),
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

async fn by_api(context: &App, verb: &str, name: &str) -> Result<(), CommandError> {
    let method = match verb {
        "remove" => "schedule.delete".to_owned(),
        verb => format!("schedule.{verb}"),
    };
    let _: Box<RawValue> = context.call(&method, &json!({"name": name})).await?;
    Ok(())
}
