//! Queues: their list, settings and changes.

use meshwork::Settings;
use meshwork::view::{QueueSettingsView, QueueView};

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
