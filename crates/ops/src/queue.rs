//! Queues: their list, settings and changes, and names that may be wrong.

use meshwork::spread::SpreadName;
use meshwork::view::{QueueSettingsView, QueueView};
use meshwork::{Client, Settings};
use meshwork_model::read::nearest;

use crate::error::OpError;
use crate::scope::Store;

/// Returns queues that a scan found as they are listed, with their settings now: without empty lists of priorities that have no
/// limit of their own, since every worker listens to several.
#[must_use]
pub fn listed(mut queues: Vec<QueueView>, now: &Settings) -> Vec<QueueView> {
    queues.retain(|queue| {
        let is_idle = queue.waiting + queue.running + queue.set_aside == 0;
        !(is_idle && queue.queue.contains(":prio:")) || now.limits.queues.contains_key(&queue.queue)
    });
    for queue in &mut queues {
        queue.settings = QueueSettingsView::new(&queue.queue, now.of(&queue.queue));
        queue.limit = now.limits.of(&queue.queue).filter(|_| !queue.legacy);
    }
    queues
}

/// Refuses a queue that does not exist: its name may be wrong.
///
/// # Errors
/// It does not exist, or a call to the server fails.
pub async fn need(client: &Client, list: &str) -> Result<(), OpError> {
    exists(client, list, false).await
}

/// Refuses to change a queue that does not exist yet, unless it is to be created.
///
/// # Errors
/// It does not exist, or a call to the server fails.
pub async fn refuse_unknown(client: &Client, list: &str, create: bool) -> Result<(), OpError> {
    match create {
        true => Ok(()),
        false => exists(client, list, true).await,
    }
}

/// Refuses to read a queue that does not exist. A spread queue exists by its parts, also outside of them.
///
/// # Errors
/// It does not exist, or a call to the server fails.
pub async fn need_to_read(store: &Store, list: &str) -> Result<(), OpError> {
    let refused = match need(&store.client, list).await {
        Err(refused @ OpError::NoQueue { .. }) => refused,
        result => return result,
    };
    let name = store.client.broker().keys().queue_name(list);
    match name.parse::<SpreadName>() {
        Ok(name) if store.node().spread(&name).await?.is_some() => Ok(()),
        _ => Err(refused),
    }
}

/// Refuses the queue of a filter that has found nothing, if it does not exist. A queue that has something needs no call.
pub(crate) async fn need_of_filter(
    store: &Store,
    queue: Option<&str>,
    has_found: bool,
) -> Result<(), OpError> {
    match queue.filter(|_| !has_found) {
        Some(queue) => need_to_read(store, &store.queue(queue)?).await,
        None => Ok(()),
    }
}

/// Returns an error with the name of a queue that does not exist, and with a similar one.
async fn exists(client: &Client, list: &str, is_change: bool) -> Result<(), OpError> {
    if client.is_used(list).await? {
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
    Err(OpError::NoQueue { name, is_change })
}
