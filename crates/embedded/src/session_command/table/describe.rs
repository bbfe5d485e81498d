//! COMMAND: describes the commands to clients.

use bytes::Bytes;

use super::{super::Command, all, find};
use crate::{
    Reply,
    command::{
        Flags, Keys, Outcome, Spec,
        args::{is_word, refuse, syntax_error},
        glob_match,
    },
    world::Call,
};

const OPEN: Flags = Flags::LOADING.or(Flags::STALE);
const NONE: Keys = Keys::NONE;

pub(super) const SPECS: &[Command] = &[
    Command::new("command", -1, OPEN.or(Flags::CONTAINER), NONE, command),
    Command::new("command|count", 2, OPEN, NONE, command_count),
    Command::new("command|docs", -2, OPEN, NONE, command_docs),
    Command::new("command|getkeys", -4, OPEN, NONE, command_getkeys),
    Command::new("command|info", -2, OPEN, NONE, command_info),
    Command::new("command|list", -2, OPEN, NONE, command_list),
];

fn text(text: &str) -> Reply {
    Reply::Bulk(text.to_owned().into())
}

fn command(_: &mut Call<'_>, _: &[Bytes]) -> Outcome {
    let top = all().filter(|spec| !spec.name.contains('|'));
    Ok(Reply::Array(top.map(describe).collect()))
}

fn command_count(_: &mut Call<'_>, _: &[Bytes]) -> Outcome {
    Ok(Reply::count(
        all().filter(|spec| !spec.name.contains('|')).count(),
    ))
}

/// Returns no documentation; clients do without it.
fn command_docs(_: &mut Call<'_>, _: &[Bytes]) -> Outcome {
    Ok(Reply::Map(Vec::new()))
}

fn command_info(call: &mut Call<'_>, args: &[Bytes]) -> Outcome {
    let names = &args[2..];
    if names.is_empty() {
        return command(call, args);
    }
    Ok(Reply::Array(
        names
            .iter()
            .map(|name| by_name(name).map_or(Reply::Nil, describe))
            .collect(),
    ))
}

fn by_name(name: &[u8]) -> Option<&'static Spec> {
    all().find(|spec| spec.name.as_bytes().eq_ignore_ascii_case(name))
}

fn command_list(_: &mut Call<'_>, args: &[Bytes]) -> Outcome {
    let pattern = match &args[2..] {
        [] => None,
        [by, kind, pattern] if is_word(by, "filterby") && is_word(kind, "pattern") => {
            Some(pattern.to_ascii_lowercase())
        }
        [by, kind, _] if is_word(by, "filterby") => {
            if !is_word(kind, "module") && !is_word(kind, "aclcat") {
                return Err(syntax_error());
            }
            // There are neither modules nor categories.
            return Ok(Reply::Array(Vec::new()));
        }
        _ => return Err(syntax_error()),
    };
    let wanted = |name: &str| {
        pattern
            .as_ref()
            .is_none_or(|pattern| glob_match(pattern, name.as_bytes()))
    };
    let names = all().map(|spec| spec.name).filter(|name| wanted(name));
    Ok(Reply::Array(names.map(text).collect()))
}

fn command_getkeys(_: &mut Call<'_>, args: &[Bytes]) -> Outcome {
    let command = &args[2..];
    let spec = find(command).map_err(|_| refuse("Invalid command specified"))?;
    if spec.keys == Keys::NONE && !spec.flags.has(Flags::MOVABLE) {
        return Err(refuse("The command has no key arguments"));
    }
    if !spec.takes(command.len()) {
        return Err(refuse("Invalid number of arguments specified for command"));
    }
    if spec.flags.has(Flags::MOVABLE) {
        return Err(refuse("The keys of this command are not in fixed places"));
    }
    Ok(Reply::Array(
        spec.keys_in(command).cloned().map(Reply::Bulk).collect(),
    ))
}

/// Returns the description of a command in `COMMAND`, with its subcommands last.
fn describe(spec: &'static Spec) -> Reply {
    let flags = spec
        .flags
        .names()
        .map(|name| Reply::Status(name.to_owned()))
        .collect();
    let prefix = format!("{}|", spec.name);
    let subcommands = all()
        .filter(|sub| sub.name.starts_with(&prefix))
        .map(describe);
    let key = |place: i32| Reply::Int(place.into());
    Reply::Array(vec![
        text(spec.name),
        Reply::Int(spec.arity.into()),
        Reply::Set(flags),
        key(spec.keys.first),
        key(spec.keys.last),
        key(spec.keys.step),
        Reply::Set(Vec::new()),
        Reply::Array(Vec::new()),
        Reply::Array(Vec::new()),
        Reply::Array(subcommands.collect()),
    ])
}
