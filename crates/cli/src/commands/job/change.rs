//! What stop, retry and delete have in common: several jobs one after the other, a word on each.

use meshwork::model::name::JobId;
use meshwork::{Client, Error as MeshworkError};
use serde::Serialize;

use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::out::note;

/// What became of a job.
#[derive(Debug, Clone, Copy)]
pub(super) enum Change {
    /// It is as it was asked for.
    Done(&'static str),
    /// It is in no state for that: the word, and what can be done.
    Refused(&'static str, &'static str),
}

#[derive(Debug, Serialize)]
struct Line<'a> {
    id: &'a str,
    result: &'static str,
}

/// Changes all jobs. One that cannot be changed does not hold up the others.
pub(super) async fn change(
    context: &mut Context,
    ids: &[JobId],
    act: impl AsyncFn(&Client, &JobId) -> Result<Change, MeshworkError>,
) -> Result<Exit, Error> {
    let client = context.client().await?;
    let mut exit = Exit::DONE;
    for id in ids {
        let (word, trouble, one) = match act(&client, id).await {
            Ok(Change::Done(word)) => (word, None, Exit::DONE),
            Ok(Change::Refused(word, why)) => {
                (word, Some(format!("error: job {id} {why}")), Exit::FAILED)
            }
            Err(error @ MeshworkError::NoJob { .. }) => {
                ("missing", Some(format!("error: {error}")), Exit::NO_JOB)
            }
            Err(error) => return Err(error.into()),
        };
        exit = exit.or(one);
        if let Some(trouble) = trouble {
            note(trouble);
        }
        if context.out.is_json() {
            context.out.json(&Line {
                id: id.as_str(),
                result: word,
            })?;
        } else if one == Exit::DONE {
            context.out.line(format_args!("{id} {word}"))?;
        }
    }
    Ok(exit)
}
