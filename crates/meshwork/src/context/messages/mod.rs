//! Messages between contexts: sent, taken up, delivered, answered, and kept.

pub(crate) mod answer;
#[cfg(feature = "scripts")]
pub(crate) mod arrived;
pub(crate) mod cancel;
pub(crate) mod coordinator;
pub(crate) mod damage;
pub(crate) mod deliver;
pub(crate) mod done;
pub(crate) mod foreign;
pub(crate) mod held;
pub(crate) mod inbox;
pub(crate) mod letters;
pub(crate) mod message;
pub(crate) mod origin;
pub(crate) mod outbox_watch;
pub(crate) mod outcome;
pub(crate) mod results;
pub(crate) mod retention;
pub(crate) mod route;
pub(crate) mod send;
pub(crate) mod served;
mod steps;
pub(crate) mod take_up;
pub(crate) mod topic;
pub(crate) mod transport;
