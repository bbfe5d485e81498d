//! The table of all commands, and the lookup for a request.

mod describe;

use std::{collections::HashMap, sync::LazyLock};

use bytes::Bytes;

use super::{Command, client, config, connection, info, pubsub, scripting, server, transaction};
use crate::{
    command::{Flags, Spec, data_commands},
    world::{Commands, SessionFn},
};

/// Greatest length of a command's name, with its subcommand.
const NAME_MAX: usize = 40;

/// Number of bytes of the arguments in the error for an unknown command, as in Redis.
const QUOTED_MAX: usize = 128;

static BY_NAME: LazyLock<HashMap<&'static [u8], &'static Spec>> =
    LazyLock::new(|| all().map(|spec| (spec.name.as_bytes(), spec)).collect());

static SESSION_FNS: LazyLock<HashMap<&'static str, SessionFn>> = LazyLock::new(|| {
    let commands = session_commands();
    commands
        .map(|command| (command.spec.name, command.run))
        .collect()
});

/// The table, for modules below this one that call commands.
pub(crate) static COMMANDS: Commands = Commands {
    find,
    session: |spec| SESSION_FNS.get(spec.name).copied(),
};

/// Returns all commands.
fn all() -> impl Iterator<Item = &'static Spec> {
    let session = session_commands().map(|command| &command.spec);
    data_commands().iter().chain(session)
}

fn session_commands() -> impl Iterator<Item = &'static Command> {
    let all = [
        client::SPECS,
        config::SPECS,
        connection::SPECS,
        describe::SPECS,
        info::SPECS,
        pubsub::SPECS,
        scripting::SPECS,
        server::SPECS,
        transaction::SPECS,
    ];
    all.into_iter().flatten()
}

/// Returns the entry of a request's command, or the error for the client.
pub(crate) fn find(args: &[Bytes]) -> Result<&'static Spec, String> {
    let name = args.first().map_or(&b""[..], |name| name);
    let unknown = || unknown_command(name, args.get(1..).unwrap_or_default());
    if name.contains(&b'|') {
        return Err(unknown());
    }
    let spec = by_name(&[name]).ok_or_else(unknown)?;
    match args.get(1) {
        Some(sub) if spec.flags.has(Flags::CONTAINER) => {
            by_name(&[spec.name.as_bytes(), b"|", sub]).ok_or_else(|| {
                let (sub, name) = (quoted(sub), spec.name.to_uppercase());
                format!("ERR unknown subcommand '{sub}'. Try {name} HELP.")
            })
        }
        _ => Ok(spec),
    }
}

fn by_name(parts: &[&[u8]]) -> Option<&'static Spec> {
    let mut name = [0; NAME_MAX];
    let mut len = 0;
    for part in parts {
        name.get_mut(len..len + part.len())?.copy_from_slice(part);
        len += part.len();
    }
    let name = &mut name[..len];
    name.make_ascii_lowercase();
    BY_NAME.get(&*name).copied()
}

fn unknown_command(name: &[u8], args: &[Bytes]) -> String {
    let mut beginning = Vec::new();
    for arg in args {
        if beginning.len() >= QUOTED_MAX {
            break;
        }
        let room = (QUOTED_MAX - beginning.len()).min(arg.len());
        beginning.push(b'\'');
        beginning.extend_from_slice(until_nul(&arg[..room]));
        beginning.extend_from_slice(b"' ");
    }
    let (name, beginning) = (quoted(name), String::from_utf8_lossy(&beginning));
    format!("ERR unknown command '{name}', with args beginning with: {beginning}")
}

/// Returns a name as errors show it.
fn quoted(name: &[u8]) -> String {
    let name = until_nul(name);
    String::from_utf8_lossy(&name[..name.len().min(QUOTED_MAX)]).into_owned()
}

/// Returns the text up to the first NUL, as Redis shows it.
fn until_nul(text: &[u8]) -> &[u8] {
    let end = text
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(text.len());
    &text[..end]
}

/// An entry of the table, for tests that try all commands.
#[derive(Debug, Clone, Copy)]
pub struct CommandInfo {
    /// Name in lower case; of a subcommand both words, as in `client|id`.
    pub name: &'static str,
    /// Number of arguments with the name, of a subcommand with both; negative: the least number.
    pub arity: i32,
    /// Positions of the keys, as in `COMMAND`: first, last, step.
    pub keys: (i32, i32, i32),
    /// True if the command only has subcommands.
    pub container: bool,
    /// True if scripts may not call it.
    pub noscript: bool,
    /// True if it may block.
    pub blocking: bool,
}

/// Returns the table of the commands.
#[must_use]
pub fn command_table() -> Vec<CommandInfo> {
    let info = |spec: &'static Spec| CommandInfo {
        name: spec.name,
        arity: spec.arity,
        keys: (spec.keys.first, spec.keys.last, spec.keys.step),
        container: spec.flags.has(Flags::CONTAINER),
        noscript: spec.flags.has(Flags::NOSCRIPT),
        blocking: spec.flags.has(Flags::BLOCKING),
    };
    all().map(info).collect()
}
