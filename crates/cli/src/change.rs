//! Changes of jobs: prints the result of each as one word on stdout, and failures on stderr.

use std::collections::BTreeMap;
use std::time::Duration;

use meshwork::Error as MeshworkError;
use meshwork_model::name::JobId;
use meshwork_model::route::Priority;
use meshwork_ops::change::{Action, Outcome};
use meshwork_ops::{OpError, Store};
use serde::Serialize;
use serde_json::{Value, json};

use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::{Out, note};
use crate::scope::Params;

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

/// Changes the jobs of these ids by the API. A refused job does not stop the others.
pub(crate) async fn by_api(
    app: &mut App,
    params: Params,
    ids: &[JobId],
    action: Action,
) -> Result<Exit, CommandError> {
    let mut exit = Exit::DONE;
    for id in ids {
        let changed = changed(app, params, id, action).await;
        exit = exit.or(tell_outcome(&mut app.out, id.as_str(), action, changed?)?);
    }
    Ok(exit)
}

/// Changes a job by the API. Errors about its state are those of the store.
pub(crate) async fn changed(
    app: &App,
    params: Params,
    id: &JobId,
    action: Action,
) -> Result<Result<Outcome, OpError>, CommandError> {
    let mut fields = params.of_job().with(json!({"id": id.as_str()}));
    let method = match action {
        Action::Cancel { force } => {
            fields.insert("force".to_owned(), force.into());
            "job.cancel"
        }
        Action::Retry => "job.retry",
        Action::RunNow => "job.run_now",
        Action::Set(change) => {
            let seconds = |time: Option<Duration>| json!(time.map(|it| it.as_secs_f64()));
            let priority = change.priority.map(Priority::as_str);
            fields.insert("priority".to_owned(), json!(priority));
            fields.insert("delay".to_owned(), seconds(change.delay));
            fields.insert("timeout".to_owned(), seconds(change.timeout));
            "job.set"
        }
        Action::Delete => "job.delete",
        Action::RetryLetter => "dead.retry",
        Action::DeleteLetter => "dead.delete",
    };
    let answer: Result<BTreeMap<String, Value>, _> = app.call(method, &fields).await;
    let error = match answer {
        Ok(answer) => {
            let word = answer.get("result").and_then(Value::as_str);
            let known = Outcome::ALL.into_iter().find(|it| Some(it.word()) == word);
            return Ok(Ok(known.unwrap_or(Outcome::Ended)));
        }
        Err(error) => error,
    };
    let (said, job) = (error.to_string(), || id.clone());
    let is = |known: MeshworkError| (said == known.to_string()).then_some(known);
    let missing = is(MeshworkError::JobNotFound { id: job() });
    if let Some(known) = missing.or_else(|| is(MeshworkError::NotDeadLettered { id: job() })) {
        return Ok(Err(known.into()));
    }
    let is_why = |it: &Outcome| action.refusal(*it).is_some_and(|why| said.ends_with(why));
    match Outcome::ALL.into_iter().find(is_why) {
        Some(outcome) => Ok(Ok(outcome)),
        None => Err(error),
    }
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
