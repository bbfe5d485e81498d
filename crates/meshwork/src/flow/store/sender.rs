//! The signer of the messages of flows, and what the job of a place that waits for a message records.

use meshwork_model::keys::context::JobKey;

use super::results::ResultSlot;
use crate::context::{ContextHandle, Identity};

/// Field of the job of such a place: the message that was sent for it. Empty before that.
pub(super) const SENT: &str = "mw_sent";
/// The same: the time at which the place was released, in milliseconds since 1970.
pub(super) const SINCE: &str = "mw_since";

/// Signs the messages of flows: a context, and an actor who may send from there.
#[derive(Debug, Clone)]
pub(crate) struct Sender {
    pub(crate) context: ContextHandle,
    pub(crate) me: Identity,
}

/// A place that waits, as its job has it.
pub(super) struct Waiting<'a> {
    pub(super) at: ResultSlot,
    pub(super) key: JobKey,
    pub(super) sent: Option<&'a str>,
    pub(super) since: u64,
}
