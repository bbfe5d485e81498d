//! Names of queues that may be wrong: a queue that does not exist is refused, with a similar name.

use meshwork::Client;
use meshwork_model::read::nearest;
use meshwork_ops::Store;

use crate::app::App;
use crate::error::CommandError;

/// Refuses to change a queue that does not exist yet, unless it is to be created.
pub(crate) async fn refuse_unknown(
    context: &App,
    client: &Client,
    list: &str,
    create: bool,
) -> Result<(), CommandError> {
    let error = |name: String| {
        format!(
            "the queue {name} does not exist yet; nothing was changed: correct its name, or give --create"
        )
    };
    match create {
        true => Ok(()),
        false => exists(context, client, list, error).await,
    }
}

/// Refuses a queue that does not exist.
pub(crate) async fn need(context: &App, client: &Client, list: &str) -> Result<(), CommandError> {
    let error = |name: String| {
        format!(
            "there is no queue {name}: no job was enqueued to it, no worker has listened to it, and it has no settings"
        )
    };
    exists(context, client, list, error).await
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

/// Returns an error with the name of a queue that does not exist, and with a similar one. A queue may be unused in a part.
async fn exists(
    context: &App,
    client: &Client,
    list: &str,
    error: fn(String) -> String,
) -> Result<(), CommandError> {
    if context.out.is_in_part() || client.is_used(list).await? {
        return Ok(());
    }
    let keys = client.broker().keys();
    let known = client.queues().await?;
    let names = known.iter().map(|info| keys.queue_name(&info.queue));
    let name = keys.queue_name(list);
    let name = match nearest(name, names) {
        Some(near) => format!("{name} (did you mean `{near}`?)"),
        None => name.to_owned(),
    };
    Err(CommandError::usage(error(name)).with_hint("`meshwork queue list` shows the queues"))
}
