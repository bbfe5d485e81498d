//! Changes of jobs: prints the result of each as one word on stdout, and failures on stderr.

use meshwork::{Client, Error as MeshworkError};
use meshwork_model::name::JobId;
use serde::Serialize;

use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::{Out, note};

/// Result of a change of a job.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Change {
    /// The job has the requested state.
    Done(&'static str),
    /// The state of the job does not allow the change: the word to print, and a hint.
    Refused(&'static str, &'static str),
}

#[derive(Debug, Serialize)]
struct Line<'a> {
    id: &'a str,
    result: &'static str,
}

/// Changes all jobs. A refused job does not stop the others.
pub(crate) async fn change(
    context: &mut App,
    ids: &[JobId],
    act: impl AsyncFn(&Client, &JobId) -> Result<Change, MeshworkError>,
) -> Result<Exit, CommandError> {
    let client = context.client().await?;
    let mut exit = Exit::DONE;
    for id in ids {
        let changed = act(&client, id).await;
        exit = exit.or(tell(&mut context.out, id.as_str(), changed)?);
    }
    Ok(exit)
}

/// Prints the result for one job.
pub(crate) fn tell(
    out: &mut Out,
    id: &str,
    changed: Result<Change, MeshworkError>,
) -> Result<Exit, CommandError> {
    let (word, trouble, exit) = match changed {
        Ok(Change::Done(word)) => (word, None, Exit::DONE),
        Ok(Change::Refused(word, why)) => {
            let trouble = format!("error: job {id} {why}");
            (word, Some(trouble), Exit::FAILED)
        }
        Err(error) => {
            let (word, exit) = match &error {
                MeshworkError::JobNotFound { .. } => ("missing", Exit::NO_JOB),
                MeshworkError::NotDeadLettered { .. } => ("not_dead", Exit::FAILED),
                MeshworkError::CancelTimeout { .. } => ("cancelling", Exit::NOT_ENDED),
                _ => return Err(error.into()),
            };
            (word, Some(format!("error: {error}")), exit)
        }
    };
    if let Some(trouble) = trouble {
        note(trouble);
    }
    if out.is_json() {
        out.json(&Line { id, result: word })?;
    } else if exit == Exit::DONE {
        out.line(format_args!("{id} {word}"))?;
    }
    Ok(exit)
}
