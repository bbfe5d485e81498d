//! The API: one table of methods ([`table`]), called by REST and by JSON-RPC ([`http`]), and described
//! by two documents ([`docs`]).

pub(crate) mod access;
mod away;
mod call;
mod census;
pub mod docs;
mod error;
mod hero;
pub(crate) mod holder;
pub(crate) mod http;
pub(crate) mod live;
mod method;
mod methods;
mod nonces;
mod place;
mod progress;
mod recent;
pub(crate) mod rights;
pub(crate) mod rpc;
mod table;
pub(crate) mod topic;

pub use access::{Access, KeyRing, new_key};
pub use call::Call;
pub(crate) use call::{Calls, Progress};
pub use error::{ApiError, Code};
pub use hero::{Dialect, HERO, HeroMethod};
pub use http::{Api, ApiLimits, PROFILE};
pub(crate) use meshwork_ops::job::READ as READ_JOBS;
pub(crate) use meshwork_ops::params::MAX_LIMIT;
pub use method::{HttpVerb, Method, Params, call_on};
pub use table::{METHODS, find};

#[cfg(test)]
mod tests;
