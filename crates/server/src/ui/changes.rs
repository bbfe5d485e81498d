//! The methods that buttons call.

/// Methods that buttons call, each with the text after its success.
const ACTIONS: [(&str, &str); 22] = [
    (
        "job.cancel",
        "The job is cancelled. A running one gets a request to stop.",
    ),
    ("job.retry", "The job is queued again."),
    (
        "job.run_now",
        "The job does not wait for its time any more.",
    ),
    ("job.delete", "The job is deleted."),
    ("queue.pause", "The queue is paused."),
    ("queue.resume", "The queue is open again."),
    ("queue.drain", "The queue refuses new jobs."),
    (
        "queue.purge",
        "Waiting jobs of the queue are deleted, up to 10,000.",
    ),
    ("queue.limit", "The limits of the queue are changed."),
    ("worker.quiet", "The worker claims no more jobs."),
    (
        "worker.stop",
        "The worker shuts down after its running jobs.",
    ),
    ("dead.retry", "The job is queued again."),
    ("dead.delete", "The dead letter is deleted."),
    ("schedule.run", "A job of the schedule is queued."),
    ("schedule.pause", "The schedule is paused."),
    ("schedule.resume", "The schedule fires again."),
    ("schedule.delete", "The schedule is deleted."),
    ("flow.approve", "The approval is given."),
    ("flow.reject", "The approval is refused."),
    ("flow.cancel", "The flow gets a request to stop."),
    ("flow.retry", "The flow runs again."),
    ("flow.delete", "The flow is deleted."),
];

/// Returns the text after the success of a method.
pub(super) fn done(method: &str) -> Option<&'static str> {
    let action = ACTIONS.iter().find(|(name, _)| *name == method);
    action.map(|(_, text)| *text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{HttpVerb, find};

    #[test]
    fn each_button_has_a_method_that_changes_something() {
        for (name, _) in ACTIONS {
            let method = find(name).unwrap_or_else(|| panic!("{name}"));
            assert_ne!(method.verb, HttpVerb::Get, "{name}");
        }
    }
}
