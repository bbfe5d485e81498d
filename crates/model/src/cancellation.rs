//! The `error` of cancelled jobs, by which a cancellation is distinguished from a failure.

/// The `error` of a job that was cancelled before it ran, or by force.
pub const CANCELLED: &str = "stopped";
/// The `error` of a job that was cancelled while it ran, in Hero's word.
pub(crate) const CANCELLED_RUN: &str = "stopped_by_request";
/// First words of the `error` of a cancelled job with a reason.
const CANCELLED_FOR: &str = "cancelled: ";
/// First words of the `error` of a job whose unique name, or whose slot of a schedule, a later job has taken.
const REPLACED: &str = "replaced by ";

/// Returns the `error` of a job that is cancelled for a reason.
#[must_use]
pub fn cancelled_for(reason: &str) -> String {
    match is_cancellation(reason) {
        true => reason.to_owned(),
        false => format!("{CANCELLED_FOR}{reason}"),
    }
}

/// Returns true if a cancellation writes this `error`.
#[must_use]
pub fn is_cancellation(error: &str) -> bool {
    let of_batch = error.starts_with("batch ") && error.ends_with(" was cancelled");
    let begins = |words: &str| error.starts_with(words);
    [CANCELLED, CANCELLED_RUN].contains(&error)
        || begins(CANCELLED_FOR)
        || begins(REPLACED)
        || of_batch
}
