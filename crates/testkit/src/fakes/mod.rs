//! Things that only pretend to be a server, for what no real server does on demand.

mod redis6;
mod silent;

pub use redis6::FakeRedis6;
pub use silent::FakeSilent;
