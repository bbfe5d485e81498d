//! Commands for the handshake, the selection of a database and the end of a connection.

use bytes::Bytes;

use super::{Command, client::set_name};
use crate::{
    Protocol, REDIS_VERSION, Reply,
    command::{
        Flags, Keys, Outcome, Stop,
        args::{int, is_word, refuse, syntax_error, wrong_arity},
    },
    store::DATABASES,
    world::{Call, Origin, Replies},
};

const FAST: Flags = Flags::FAST.or(Flags::LOADING).or(Flags::STALE);
const NOSCRIPT: Flags = FAST.or(Flags::NOSCRIPT);

pub(super) const SPECS: &[Command] = &[
    Command::new("auth", -2, NOSCRIPT, Keys::NONE, auth),
    Command::new("echo", 2, FAST, Keys::NONE, echo),
    Command::new("hello", -1, NOSCRIPT, Keys::NONE, hello),
    Command::new("ping", -1, Flags::FAST, Keys::NONE, ping),
    Command::new("quit", -1, NOSCRIPT, Keys::NONE, quit),
    Command::new("reset", 1, NOSCRIPT, Keys::NONE, reset),
    Command::new("select", 2, FAST, Keys::NONE, select),
];

fn ping(call: &mut Call<'_>, args: &[Bytes]) -> Outcome {
    if args.len() > 2 {
        return Err(wrong_arity(args));
    }
    let text = args.get(1).cloned();
    if call.origin != Origin::Script && call.me().only_listens() {
        let pong = Reply::Bulk(Bytes::from_static(b"pong"));
        return Ok(Reply::Array(vec![
            pong,
            Reply::Bulk(text.unwrap_or_default()),
        ]));
    }
    Ok(text.map_or_else(|| Reply::Status("PONG".to_owned()), Reply::Bulk))
}

fn echo(_: &mut Call<'_>, args: &[Bytes]) -> Outcome {
    Ok(Reply::Bulk(args[1].clone()))
}

fn select(call: &mut Call<'_>, args: &[Bytes]) -> Outcome {
    let index = int(&args[1])?;
    if i32::try_from(index).is_err() {
        let text = "value is out of range, value must between -2147483648 and 2147483647";
        return Err(refuse(text));
    }
    match usize::try_from(index) {
        Ok(index) if index < DATABASES => {
            call.db = index;
            Ok(Reply::ok())
        }
        _ => Err(refuse("DB index is out of range")),
    }
}

fn quit(call: &mut Call<'_>, _: &[Bytes]) -> Outcome {
    call.me().end();
    Ok(Reply::ok())
}

fn reset(call: &mut Call<'_>, _: &[Bytes]) -> Outcome {
    call.end_transaction();
    call.world.unsubscribe_all(call.client);
    (call.db, call.protocol) = (0, Protocol::Resp2);
    let me = call.me();
    me.name = Bytes::new();
    me.replies = Replies::On;
    me.no_evict = false;
    Ok(Reply::Status("RESET".to_owned()))
}

/// There is no password: every client that can reach the socket has all rights.
fn auth(_: &mut Call<'_>, args: &[Bytes]) -> Outcome {
    match args.len() {
        2 => Err(refuse(
            "AUTH <password> called without any password configured for the default user. \
             Are you sure your configuration is correct?",
        )),
        3 => authenticate(&args[1]).map(|()| Reply::ok()),
        _ => Err(syntax_error()),
    }
}

/// The default user accepts any password, as in a Redis server without one.
fn authenticate(user: &[u8]) -> Result<(), Stop> {
    if user == b"default" {
        return Ok(());
    }
    let text = "WRONGPASS invalid username-password pair or user is disabled.";
    Err(Stop::Error(text.to_owned()))
}

fn hello(call: &mut Call<'_>, args: &[Bytes]) -> Outcome {
    let mut protocol = call.protocol;
    if let Some(version) = args.get(1) {
        let version = int(version)
            .map_err(|_| refuse("Protocol version is not an integer or out of range"))?;
        protocol = match version {
            2 => Protocol::Resp2,
            3 => Protocol::Resp3,
            _ => {
                return Err(Stop::Error(
                    "NOPROTO unsupported protocol version".to_owned(),
                ));
            }
        };
    }
    let mut rest = args.get(2..).unwrap_or_default();
    loop {
        rest = match rest {
            [] => break,
            [word, user, _password, rest @ ..] if is_word(word, "auth") => {
                authenticate(user)?;
                rest
            }
            [word, name, rest @ ..] if is_word(word, "setname") => {
                set_name(call.me(), name)?;
                rest
            }
            [word, ..] => {
                let word = String::from_utf8_lossy(word);
                return Err(refuse(format_args!(
                    "Syntax error in HELLO option '{word}'"
                )));
            }
        };
    }
    call.protocol = protocol;
    let text = |text: &'static str| Reply::Bulk(Bytes::from_static(text.as_bytes()));
    let number = if protocol == Protocol::Resp3 { 3 } else { 2 };
    Ok(Reply::Map(vec![
        (text("server"), text("redis")),
        (text("version"), text(REDIS_VERSION)),
        (text("proto"), Reply::Int(number)),
        (
            text("id"),
            Reply::Int(i64::try_from(call.client).unwrap_or(i64::MAX)),
        ),
        (text("mode"), text("standalone")),
        (text("role"), text("master")),
        (text("modules"), Reply::Array(Vec::new())),
    ]))
}
