//! CLIENT: lists the clients, and changes their state.

use bytes::Bytes;

use super::Command;
use crate::{
    Protocol, Reply,
    command::{
        Flags, Keys, Outcome, Stop,
        args::{int, is_word, refuse, syntax_error, wrong_subcommand},
    },
    world::{Call, Client, Replies},
};

const FLAGS: Flags = Flags::NOSCRIPT.or(Flags::LOADING).or(Flags::STALE);
const ADMIN: Flags = FLAGS.or(Flags::ADMIN);
const NONE: Keys = Keys::NONE;

pub(super) const SPECS: &[Command] = &[
    Command::new("client", -2, Flags::CONTAINER, NONE, id),
    Command::new("client|getname", 2, FLAGS, NONE, getname),
    Command::new("client|id", 2, FLAGS, NONE, id),
    Command::new("client|info", 2, FLAGS, NONE, info),
    Command::new("client|kill", -3, ADMIN, NONE, kill),
    Command::new("client|list", -2, ADMIN, NONE, list),
    Command::new("client|no-evict", 3, ADMIN, NONE, no_evict),
    Command::new("client|no-touch", 3, ADMIN, NONE, no_touch),
    Command::new("client|reply", 3, FLAGS, NONE, reply),
    Command::new("client|setinfo", 4, FLAGS, NONE, setinfo),
    Command::new("client|setname", 3, FLAGS, NONE, setname),
    Command::new("client|unblock", -3, ADMIN, NONE, unblock),
];

fn id(call: &mut Call<'_>, _: &[Bytes]) -> Outcome {
    Ok(Reply::Int(i64::try_from(call.client).unwrap_or(i64::MAX)))
}

fn getname(call: &mut Call<'_>, _: &[Bytes]) -> Outcome {
    let name = call.me().name.clone();
    Ok(if name.is_empty() {
        Reply::Nil
    } else {
        Reply::Bulk(name)
    })
}

fn setname(call: &mut Call<'_>, args: &[Bytes]) -> Outcome {
    set_name(call.me(), &args[2])?;
    Ok(Reply::ok())
}

/// Sets the name of a client; an empty one removes it.
pub(super) fn set_name(client: &mut Client, name: &Bytes) -> Result<(), Stop> {
    printable(name).map_err(|()| {
        refuse("Client names cannot contain spaces, newlines or special characters.")
    })?;
    client.name = name.clone();
    Ok(())
}

fn printable(text: &[u8]) -> Result<(), ()> {
    if text.iter().all(u8::is_ascii_graphic) {
        Ok(())
    } else {
        Err(())
    }
}

fn setinfo(call: &mut Call<'_>, args: &[Bytes]) -> Outcome {
    let at = match args[2].to_ascii_lowercase().as_slice() {
        b"lib-name" => 0,
        b"lib-ver" => 1,
        _ => {
            let option = String::from_utf8_lossy(&args[2]);
            return Err(refuse(format_args!("Unrecognized option '{option}'")));
        }
    };
    printable(&args[3]).map_err(|()| {
        let option = String::from_utf8_lossy(&args[2]);
        let text = "cannot contain spaces, newlines or special characters.";
        refuse(format_args!("{option} {text}"))
    })?;
    call.me().library[at] = args[3].clone();
    Ok(Reply::ok())
}

fn on_or_off(arg: &[u8]) -> Result<bool, Stop> {
    match arg {
        on if is_word(on, "on") => Ok(true),
        off if is_word(off, "off") => Ok(false),
        _ => Err(syntax_error()),
    }
}

/// Clients are never evicted here: the flag is only shown in `CLIENT LIST`.
fn no_evict(call: &mut Call<'_>, args: &[Bytes]) -> Outcome {
    call.me().no_evict = on_or_off(&args[2])?;
    Ok(Reply::ok())
}

/// The time of a key's last use is not recorded here.
fn no_touch(_: &mut Call<'_>, args: &[Bytes]) -> Outcome {
    on_or_off(&args[2])?;
    Ok(Reply::ok())
}

fn reply(call: &mut Call<'_>, args: &[Bytes]) -> Outcome {
    let me = call.me();
    match &args[2] {
        on if is_word(on, "on") => {
            me.replies = Replies::On;
            return Ok(Reply::ok());
        }
        off if is_word(off, "off") => me.replies = Replies::Off,
        skip if is_word(skip, "skip") => {
            if me.replies != Replies::Off {
                me.replies = Replies::SkipNext;
            }
        }
        _ => return Err(syntax_error()),
    }
    Ok(Reply::Nothing)
}

fn unblock(call: &mut Call<'_>, args: &[Bytes]) -> Outcome {
    let answer = match &args[3..] {
        [] => Reply::NilArray,
        [word] if is_word(word, "timeout") => Reply::NilArray,
        [word] if is_word(word, "error") => {
            Reply::Error("UNBLOCKED client unblocked via CLIENT UNBLOCK".to_owned())
        }
        [_] => return Err(refuse("CLIENT UNBLOCK reason should be TIMEOUT or ERROR")),
        _ => return Err(wrong_subcommand(args)),
    };
    let id = int(&args[2])?;
    let unblocked = u64::try_from(id).is_ok_and(|id| call.world.waiters.answer(id, answer));
    Ok(Reply::Int(i64::from(unblocked)))
}

fn info(call: &mut Call<'_>, _: &[Bytes]) -> Outcome {
    let (id, now_ms) = (call.client, call.now_ms());
    Ok(Reply::Verbatim(
        call.world
            .clients
            .get(id)
            .map_or_else(String::new, |client| {
                line(client, call.world.waiters.has(id), now_ms)
            }),
    ))
}

fn list(call: &mut Call<'_>, args: &[Bytes]) -> Outcome {
    let ids = match &args[2..] {
        [] => call.world.clients.ids(),
        [word, kind] if is_word(word, "type") => of_kind(call, kind)?,
        [word, ids @ ..] if is_word(word, "id") && !ids.is_empty() => {
            let id = |id: &Bytes| int(id).map_err(|_| refuse("Invalid client ID"));
            let ids: Result<Vec<_>, _> = ids.iter().map(id).collect();
            ids?.into_iter()
                .filter_map(|id| u64::try_from(id).ok())
                .collect()
        }
        _ => return Err(syntax_error()),
    };
    let clients = ids.iter().filter_map(|id| call.world.clients.get(*id));
    let now_ms = call.now_ms();
    Ok(Reply::Verbatim(
        clients
            .map(|client| line(client, call.world.waiters.has(client.id), now_ms))
            .collect(),
    ))
}

/// Returns the clients of a kind: `normal` ones, or subscribed ones for `pubsub`. There are no others.
fn of_kind(call: &Call<'_>, kind: &[u8]) -> Result<Vec<u64>, Stop> {
    let listens = match kind.to_ascii_lowercase().as_slice() {
        b"normal" => Some(false),
        b"pubsub" => Some(true),
        b"master" | b"replica" | b"slave" => None,
        _ => {
            let kind = String::from_utf8_lossy(kind);
            return Err(refuse(format_args!("Unknown client type '{kind}'")));
        }
    };
    let clients = &call.world.clients;
    let wanted = |id: &u64| clients.get(*id).map(|c| !c.subscribed.is_empty()) == listens;
    Ok(clients
        .ids()
        .into_iter()
        .filter(|id| listens.is_some() && wanted(id))
        .collect())
}

/// Returns one client as a line of `CLIENT LIST`.
fn line(client: &Client, waits: bool, now_ms: u64) -> String {
    let mut flags = String::new();
    for (is, flag) in [
        (!client.subscribed.is_empty(), 'P'),
        (client.multi.is_some(), 'x'),
        (waits, 'b'),
        (client.is_over(), 'c'),
        (client.no_evict, 'e'),
    ] {
        flags.extend(is.then_some(flag));
    }
    if flags.is_empty() {
        flags.push('N');
    }
    let seconds = |since: u64| now_ms.saturating_sub(since) / 1_000;
    let queued = client.multi.as_ref().map(|queue| queue.commands.len());
    format!(
        "id={} addr={} laddr= fd=-1 name={} age={} idle={} flags={flags} db={} sub={} psub={} \
         ssub={} multi={} qbuf=0 qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 omem=0 \
         tot-mem=0 events=r cmd={} user=default redir=-1 resp={} lib-name={} lib-ver={}\n",
        client.id,
        client.address,
        String::from_utf8_lossy(&client.name),
        seconds(client.since_ms),
        seconds(client.last_ms),
        client.db,
        client.subscribed.channels.len(),
        client.subscribed.patterns.len(),
        client.subscribed.shard_channels.len(),
        queued.map_or_else(|| "-1".to_owned(), |queued| queued.to_string()),
        client.last_command,
        if client.protocol == Protocol::Resp3 {
            3
        } else {
            2
        },
        String::from_utf8_lossy(&client.library[0]),
        String::from_utf8_lossy(&client.library[1]),
    )
}

/// Conditions for a client to be killed.
#[derive(Default)]
struct Victims {
    id: Option<u64>,
    address: Option<Bytes>,
    of_kind: Option<Vec<u64>>,
    not_me: bool,
}

impl Victims {
    fn has(&self, client: &Client, me: u64) -> bool {
        self.id.is_none_or(|id| id == client.id)
            && self
                .address
                .as_ref()
                .is_none_or(|address| address == client.address.as_bytes())
            && self
                .of_kind
                .as_ref()
                .is_none_or(|ids| ids.contains(&client.id))
            && !(self.not_me && client.id == me)
    }
}

fn kill(call: &mut Call<'_>, args: &[Bytes]) -> Outcome {
    let old_form = args.len() == 3;
    let victims = if old_form {
        Victims {
            address: Some(args[2].clone()),
            ..Victims::default()
        }
    } else {
        victims(call, &args[2..])?
    };
    let clients = &call.world.clients;
    let found = clients.ids().into_iter().filter_map(|id| clients.get(id));
    let found: Vec<u64> = found
        .filter(|client| victims.has(client, call.client))
        .map(|client| client.id)
        .collect();
    for id in &found {
        call.world.waiters.forget(*id);
        if let Some(client) = call.world.clients.get_mut(*id) {
            client.end();
        }
    }
    match (old_form, found.len()) {
        (true, 0) => Err(refuse("No such client")),
        (true, _) => Ok(Reply::ok()),
        (false, killed) => Ok(Reply::Int(i64::try_from(killed).unwrap_or(i64::MAX))),
    }
}

fn victims(call: &Call<'_>, options: &[Bytes]) -> Result<Victims, Stop> {
    let mut victims = Victims {
        not_me: true,
        ..Victims::default()
    };
    let mut options = options.chunks_exact(2);
    for option in options.by_ref() {
        let value = &option[1];
        match option[0].to_ascii_lowercase().as_slice() {
            b"id" => {
                let id = int(value).ok().and_then(|id| u64::try_from(id).ok());
                let id = id.filter(|id| *id > 0);
                let wrong = || refuse("client-id should be greater than 0");
                victims.id = Some(id.ok_or_else(wrong)?);
            }
            b"type" => victims.of_kind = Some(of_kind(call, value)?),
            b"addr" => victims.address = Some(value.clone()),
            b"user" if &**value == b"default" => {}
            b"user" => {
                let user = String::from_utf8_lossy(value);
                return Err(refuse(format_args!("No such user '{user}'")));
            }
            b"skipme" if is_word(value, "yes") => victims.not_me = true,
            b"skipme" if is_word(value, "no") => victims.not_me = false,
            _ => return Err(syntax_error()),
        }
    }
    if options.remainder().is_empty() {
        Ok(victims)
    } else {
        Err(syntax_error())
    }
}
