//! Replies and commands as bytes on the wire.

use super::{Reply, number::double_text};

/// The version of the protocol that a connection speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    /// RESP2, the initial protocol of a connection.
    #[default]
    Resp2,
    /// RESP3, selected by `HELLO 3`.
    Resp3,
}

/// Appends `reply` to `out` in the format of `protocol`.
pub fn encode_reply(reply: &Reply, protocol: Protocol, out: &mut Vec<u8>) {
    let resp3 = protocol == Protocol::Resp3;
    match reply {
        Reply::Nil | Reply::NilArray if resp3 => out.extend_from_slice(b"_\r\n"),
        Reply::Nil => out.extend_from_slice(b"$-1\r\n"),
        Reply::NilArray => out.extend_from_slice(b"*-1\r\n"),
        Reply::Status(text) => line(b'+', text, out),
        Reply::Error(text) => line(b'-', text, out),
        Reply::Int(value) => header(b':', value, out),
        Reply::Bulk(bytes) => bulk(bytes, out),
        Reply::Array(items) => aggregate(b'*', items, protocol, out),
        Reply::Set(items) => aggregate(if resp3 { b'~' } else { b'*' }, items, protocol, out),
        Reply::Push(items) => aggregate(if resp3 { b'>' } else { b'*' }, items, protocol, out),
        Reply::Map(pairs) => {
            if resp3 {
                header(b'%', &pairs.len(), out);
            } else {
                header(b'*', &(pairs.len() * 2), out);
            }
            for (key, value) in pairs {
                encode_reply(key, protocol, out);
                encode_reply(value, protocol, out);
            }
        }
        Reply::Double(value) if resp3 => line(b',', &double_text(*value), out),
        Reply::Double(value) => bulk(double_text(*value).as_bytes(), out),
        Reply::Bool(value) if resp3 => line(b'#', if *value { "t" } else { "f" }, out),
        Reply::Bool(value) => header(b':', &u8::from(*value), out),
        Reply::Verbatim(text) if resp3 => {
            header(b'=', &(text.len() + VERBATIM_FORMAT.len()), out);
            out.extend_from_slice(VERBATIM_FORMAT.as_bytes());
            out.extend_from_slice(text.as_bytes());
            out.extend_from_slice(b"\r\n");
        }
        Reply::Verbatim(text) => bulk(text.as_bytes(), out),
        Reply::BigNumber(digits) if resp3 => line(b'(', digits, out),
        Reply::BigNumber(digits) => bulk(digits.as_bytes(), out),
        Reply::Nothing => {}
    }
}

/// Appends a command to `out`, in the format of clients and of the append-only file.
pub fn encode_command<A: AsRef<[u8]>>(args: &[A], out: &mut Vec<u8>) {
    header(b'*', &args.len(), out);
    for arg in args {
        bulk(arg.as_ref(), out);
    }
}

/// Prefix of verbatim text in RESP3: its format and a colon.
pub(super) const VERBATIM_FORMAT: &str = "txt:";

fn header(kind: u8, value: &impl std::fmt::Display, out: &mut Vec<u8>) {
    use std::io::Write as _;
    out.push(kind);
    write!(out, "{value}\r\n").expect("a Vec takes every write");
}

/// Appends a line, in which line breaks become spaces, as in Redis.
fn line(kind: u8, text: &str, out: &mut Vec<u8>) {
    out.push(kind);
    out.extend(text.bytes().map(|byte| {
        if matches!(byte, b'\r' | b'\n') {
            b' '
        } else {
            byte
        }
    }));
    out.extend_from_slice(b"\r\n");
}

fn bulk(bytes: &[u8], out: &mut Vec<u8>) {
    header(b'$', &bytes.len(), out);
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

fn aggregate(kind: u8, items: &[Reply], protocol: Protocol, out: &mut Vec<u8>) {
    header(kind, &items.len(), out);
    for item in items {
        encode_reply(item, protocol, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(reply: &Reply) -> (String, String) {
        let text = |protocol| {
            let mut out = Vec::new();
            encode_reply(reply, protocol, &mut out);
            String::from_utf8(out).unwrap()
        };
        (text(Protocol::Resp2), text(Protocol::Resp3))
    }

    #[test]
    fn kinds_of_resp3_degrade_as_in_redis() {
        for (reply, two, three) in [
            (Reply::Nil, "$-1\r\n", "_\r\n"),
            (Reply::NilArray, "*-1\r\n", "_\r\n"),
            (Reply::ok(), "+OK\r\n", "+OK\r\n"),
            (
                Reply::Error("ERR a\r\nb".into()),
                "-ERR a  b\r\n",
                "-ERR a  b\r\n",
            ),
            (Reply::Int(-7), ":-7\r\n", ":-7\r\n"),
            (Reply::Bool(true), ":1\r\n", "#t\r\n"),
            (Reply::Double(1.5), "$3\r\n1.5\r\n", ",1.5\r\n"),
            (
                Reply::Verbatim("a".into()),
                "$1\r\na\r\n",
                "=5\r\ntxt:a\r\n",
            ),
            (
                Reply::Set(vec![Reply::Int(1)]),
                "*1\r\n:1\r\n",
                "~1\r\n:1\r\n",
            ),
            (
                Reply::Push(vec![Reply::Int(1)]),
                "*1\r\n:1\r\n",
                ">1\r\n:1\r\n",
            ),
            (
                Reply::Map(vec![(Reply::Int(1), Reply::Nil)]),
                "*2\r\n:1\r\n$-1\r\n",
                "%1\r\n:1\r\n_\r\n",
            ),
        ] {
            assert_eq!(both(&reply), (two.to_owned(), three.to_owned()));
        }
    }
}
