//! Helpers of the tests that talk to an engine in this process.

use bytes::Bytes;
use futures_util::FutureExt as _;
use meshwork_embedded::{Protocol, Reply, Session, encode_reply};

/// A command as its words.
pub(crate) fn words(command: &str) -> Vec<Bytes> {
    command
        .split(' ')
        .map(|word| Bytes::copy_from_slice(word.as_bytes()))
        .collect()
}

/// A reply as RESP2, with `|` for the ends of lines.
pub(crate) fn shown(reply: &Reply) -> String {
    let mut out = Vec::new();
    encode_reply(reply, Protocol::Resp2, &mut out);
    String::from_utf8(out).unwrap().replace("\r\n", "|")
}

/// Runs a command that does not wait, and shows its reply.
pub(crate) fn run(session: &mut Session, command: &str) -> String {
    let args = words(command);
    let reply = session.call(&args).now_or_never();
    shown(&reply.unwrap_or_else(|| panic!("{command} waits")))
}

/// The messages that lie ready for a session.
pub(crate) fn pushed(session: &mut Session) -> Vec<String> {
    std::iter::from_fn(|| session.try_push())
        .map(|push| shown(&push))
        .collect()
}
