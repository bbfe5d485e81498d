//! One call: which services there are, and what they are asked.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How long a call waits: far longer than it takes to take over what some killed workers in a row had.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);
/// The services.
pub(super) const SERVICES: [&str; 2] = ["embedding", "query"];

/// What a call asks, and what it is answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Call {
    pub(super) call: String,
}

/// The other service.
pub(super) fn other(service: &str) -> &'static str {
    SERVICES[usize::from(service == SERVICES[0])]
}

/// What a handler asks that was asked this.
pub(super) fn inner(call: &Call) -> Call {
    Call {
        call: format!("{}.inner", call.call),
    }
}

/// The correlation id of a call.
pub(super) fn correlation(number: usize) -> String {
    format!("{number:08x}-0000-4000-8000-000000000000")
}
