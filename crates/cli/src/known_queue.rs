//! Names of queues that may be wrong: a queue that does not exist is refused. Parts of a spread queue may be unused.

use meshwork::Client;
use meshwork_ops::{Store, queue};

use crate::app::App;
use crate::error::CommandError;

/// Refuses to change a queue that does not exist yet, unless it is to be created.
pub(crate) async fn refuse_unknown(
    context: &App,
    client: &Client,
    list: &str,
    create: bool,
) -> Result<(), CommandError> {
    let create = create || context.out.is_in_part();
    Ok(queue::refuse_unknown(client, list, create).await?)
}

/// Refuses a queue that does not exist.
pub(crate) async fn need(context: &App, client: &Client, list: &str) -> Result<(), CommandError> {
    match context.out.is_in_part() {
        true => Ok(()),
        false => Ok(queue::need(client, list).await?),
    }
}

/// Refuses a filter by a queue that does not exist.
pub(crate) async fn need_in(
    context: &App,
    store: &Store,
    queue: Option<&str>,
) -> Result<(), CommandError> {
    match queue {
        Some(queue) => need(context, &store.client, &store.queue(queue)?).await,
        None => Ok(()),
    }
}
