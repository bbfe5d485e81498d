//! RESP, the Redis protocol: replies, their encoding, and the parser of requests. No sockets here.

mod decode;
mod encode;
mod number;
mod reply;
mod request;

pub use decode::{DecodeError, decode_reply};
pub use encode::{Protocol, encode_command, encode_reply};
pub(crate) use number::{double_text, parse_integer};
pub use reply::Reply;
pub(crate) use request::{ProtocolError, RequestParser, split_words};
