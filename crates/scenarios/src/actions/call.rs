//! One call: the services and the arguments.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Timeout of a call: far longer than other workers need to take over the actions of several killed workers.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);
/// The services.
pub(super) const SERVICES: [&str; 2] = ["embedding", "query"];

/// Arguments of a call, and its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Call {
    pub(super) call: String,
}

/// Returns the other service.
pub(super) fn other(service: &str) -> &'static str {
    SERVICES[usize::from(service == SERVICES[0])]
}

/// Returns the call that a handler makes for this one.
pub(super) fn inner(call: &Call) -> Call {
    Call {
        call: format!("{}.inner", call.call),
    }
}

/// Returns the correlation id of a call.
pub(super) fn correlation(number: usize) -> String {
    format!("{number:08x}-0000-4000-8000-000000000000")
}
