//! Queues: their list, settings and changes, and names that may be wrong.

use meshwork::spread::SpreadName;
use meshwork::view::{QueueSettingsView, QueueView};
use meshwork::{Client, Settings};
use meshwork_model::read::nearest;
use serde::{Deserialize, Serialize};

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

/// Queue with its jobs by state. Numbers of a spread queue are the sums of its parts, its settings those of the first part.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QueueState {
    /// List of the queue; name of a spread queue.
    pub queue: String,
    /// Number of its context, a part of a spread queue; null outside contexts, and for all parts together.
    pub context: Option<u32>,
    /// Number of jobs that wait in it, of all priorities.
    pub waiting: usize,
    /// Number of running jobs.
    pub running: usize,
    /// Number of jobs that wait for a slot of their concurrency key.
    pub set_aside: usize,
    /// Number of jobs that wait for a retry.
    pub retrying: usize,
    /// Number of delayed jobs that have never run.
    pub delayed: usize,
    /// Age of the counts of jobs that are in no list of the queue, in milliseconds.
    pub age_ms: u64,
    /// True if more may run or be delayed: the scan counts 2,000 running and 2,000 delayed jobs of all queues.
    pub partial: bool,
    /// Greatest number of jobs that may wait in it; null for no limit.
    pub limit: Option<u64>,
    /// Settings.
    #[serde(flatten)]
    pub settings: QueueSettingsView,
    /// True if it has settings.
    #[serde(skip)]
    pub is_set: bool,
    /// True for a spread queue: each part has the limits for itself. In a queue with one part they hold exactly.
    pub limits_per_part: bool,
    /// Parts of a spread queue, by context; null for another queue.
    pub parts: Option<Vec<Self>>,
}

impl QueueState {
    /// Returns true if nothing shows that the queue exists.
    #[must_use]
    pub fn is_bare(&self) -> bool {
        let jobs = self.waiting + self.running + self.set_aside + self.retrying + self.delayed;
        jobs == 0 && self.limit.is_none() && !self.is_set
    }

    /// Returns the state of a spread queue.
    #[must_use]
    pub fn of_parts(queue: String, parts: Vec<Self>) -> Self {
        let sum = |number: fn(&Self) -> usize| parts.iter().map(number).sum();
        let first = parts.first();
        Self {
            queue,
            context: None,
            waiting: sum(|part| part.waiting),
            running: sum(|part| part.running),
            set_aside: sum(|part| part.set_aside),
            retrying: sum(|part| part.retrying),
            delayed: sum(|part| part.delayed),
            age_ms: 0,
            partial: false,
            limit: first.and_then(|part| part.limit),
            settings: first.map(|part| part.settings.clone()).unwrap_or_default(),
            is_set: first.is_some_and(|part| part.is_set),
            limits_per_part: true,
            parts: Some(parts),
        }
    }
}
