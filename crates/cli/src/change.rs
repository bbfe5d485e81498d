//! Changes of jobs: prints the result of each as one word on stdout, and failures on stderr.

use meshwork::Error as MeshworkError;
use meshwork_model::name::JobId;
use meshwork_ops::change::{Action, Outcome};
use meshwork_ops::{OpError, Store};
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

/// Changes the jobs of these ids. A refused job does not stop the others.
pub(crate) async fn by_ids(
    app: &mut App,
    store: &Store,
    ids: &[JobId],
    action: Action,
) -> Result<Exit, CommandError> {
    let change = meshwork_ops::change::Change::begin(store, action, ids).await?;
    let mut exit = Exit::DONE;
    for id in ids {
        let changed = change.by_id(id).await;
        exit = exit.or(tell_outcome(&mut app.out, id.as_str(), action, changed)?);
    }
    Ok(exit)
}

/// Prints the result of an action for one job.
pub(crate) fn tell_outcome(
    out: &mut Out,
    id: &str,
    action: Action,
    changed: Result<Outcome, OpError>,
) -> Result<Exit, CommandError> {
    let changed = match changed {
        Ok(outcome) => Ok(match action.refusal(outcome) {
            Some(why) => Change::Refused(outcome.word(), why),
            None => Change::Done(outcome.word()),
        }),
        Err(OpError::Jobs(error)) => Err(error),
        Err(error) => return Err(error.into()),
    };
    tell(out, id, changed)
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
