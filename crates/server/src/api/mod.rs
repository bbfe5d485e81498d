//! The API: one table of methods ([`table`]), called by REST and by JSON-RPC ([`http`]), and described
//! by two documents ([`docs`]).

mod access;
mod call;
mod census;
pub mod docs;
mod error;
mod hero;
mod http;
mod method;
mod methods;
mod params;
mod place;
mod table;

pub use access::{Access, KeyRing, new_key};
pub use call::Call;
pub use error::{ApiError, Code};
pub use hero::{Dialect, HERO, HeroMethod};
pub use http::{Api, ApiLimits, PROFILE};
pub use method::{HttpVerb, Method, Params, call_on};
pub use table::{METHODS, find};
