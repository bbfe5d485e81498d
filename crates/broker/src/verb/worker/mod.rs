//! Workers: their registrations, requests to them, and the poll of an idle one.

pub(crate) mod control;
pub(crate) mod deregister;
pub(crate) mod look;
pub(crate) mod move_away;
pub(crate) mod register;
pub(crate) mod request;
pub(crate) mod workers;
