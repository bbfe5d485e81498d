//! RESP, the Redis protocol: replies, their encoding, and the parser of requests. No sockets here.

mod reply;

pub use reply::Reply;
