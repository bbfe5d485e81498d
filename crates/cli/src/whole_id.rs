//! The job that a user names by the beginning of its id, as a table shows it.

use meshwork::Client;
use meshwork_broker::MAX_ITEMS;
use meshwork_model::name::JobId;
use meshwork_ops::job::beginning;

use crate::error::CommandError;

/// Returns the whole id of a job. A table ends a cut id with `…`. An id of no job, and the beginning of none, is returned
/// as it is.
///
/// # Errors
/// Several jobs begin so, or a call to the server fails.
pub(crate) async fn whole_id(client: &Client, id: &JobId) -> Result<JobId, CommandError> {
    let mut id = id.clone();
    complete(client, vec![&mut id]).await?;
    Ok(id)
}

/// Completes the ids of jobs as [`whole_id`]. Jobs that exist are looked for in one call for each 1,000.
///
/// # Errors
/// Several jobs begin as an id, or a call to the server fails.
pub(crate) async fn complete(
    client: &Client,
    mut ids: Vec<&mut JobId>,
) -> Result<(), CommandError> {
    for ids in ids.chunks_mut(MAX_ITEMS) {
        let given: Vec<JobId> = ids.iter().map(|id| JobId::clone(id)).collect();
        let found = client.broker().statuses(&given).await;
        let found = found.map_err(meshwork::Error::from)?;
        for (id, status) in ids.iter_mut().zip(found) {
            if status.is_none() {
                **id = beginning_with(client, id).await?;
            }
        }
    }
    Ok(())
}

/// Returns the only job that begins with this text, or the text.
async fn beginning_with(client: &Client, id: &JobId) -> Result<JobId, CommandError> {
    only(&beginning(client, id).await?, id)
}

/// Returns the only job that was found for an id, or the id if there is none.
///
/// # Errors
/// There are several.
pub(crate) fn only(found: &[JobId], id: &JobId) -> Result<JobId, CommandError> {
    match found {
        [] => Ok(id.clone()),
        [one] => Ok(one.clone()),
        _ if found.contains(id) => Ok(id.clone()),
        [one, other, ..] => Err(CommandError::usage(format_args!(
            "several jobs begin with `{}`, such as {one} and {other}: give more of the id",
            id.as_str().trim_end_matches('…')
        ))),
    }
}
