//! The job that a user names by the beginning of its id, as a table shows it.

use meshwork::Client;
use meshwork_model::name::JobId;

use crate::error::CommandError;

/// Shortest beginning of an id, in characters: a shorter one is a typo.
const SHORTEST: usize = 4;

/// Returns the whole id of a job. A table ends a cut id with `…`. An id of no job, and the beginning of none, is returned
/// as it is.
///
/// # Errors
/// Several jobs begin so, or a call to the server fails.
pub(crate) async fn whole_id(client: &Client, id: &JobId) -> Result<JobId, CommandError> {
    let broker = client.broker();
    let exists = broker.statuses(std::slice::from_ref(id)).await;
    let exists = exists.map_err(meshwork::Error::from)?;
    let beginning = id.as_str().trim_end_matches('…');
    if exists.first().is_some_and(Option::is_some) || beginning.chars().count() < SHORTEST {
        return Ok(id.clone());
    }
    let found = broker.ids_beginning(beginning, 2).await;
    let found = found.map_err(meshwork::Error::from)?;
    match &found[..] {
        [] => Ok(id.clone()),
        [one] => Ok(one.clone()),
        _ if found.contains(id) => Ok(id.clone()),
        [one, other, ..] => Err(CommandError::usage(format_args!(
            "several jobs begin with `{beginning}`, such as {one} and {other}: give more of the id"
        ))),
    }
}
