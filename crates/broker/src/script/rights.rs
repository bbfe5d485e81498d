//! Checks of rights in scripts: before it writes anything, a script asks the server whether its user may send each of
//! its commands. A right that is missing then leaves nothing half done, and is never taken for a fault of a key.

use std::collections::BTreeSet;

use super::constants::quoted;
use super::{Layout, Protocol, Verb};
use crate::commands::{self, BANANAS_COMMANDS, LACKS, NOOBLE_COMMANDS};

/// Returns the commands in a script of this protocol, as examples (see [`commands::example`]). A command may be an argument,
/// as in `pushed('LPUSH', …)`, so that each text in capitals counts.
pub(super) fn commands(schema: Protocol, script: &str) -> BTreeSet<&'static str> {
    // A script that ends an imported job notifies Bananas only if the user may.
    let besides: &[&'static str] = match schema {
        Protocol::Hero | Protocol::Context => &[],
        Protocol::Bananas => &BANANAS_COMMANDS,
        Protocol::Nooble => &NOOBLE_COMMANDS,
    };
    let mut found = BTreeSet::new();
    for line in script.lines() {
        let line = line.split("--").next().unwrap_or_default();
        let mut rest = line;
        while let Some(at) = rest.find('\'') {
            let (text, after) = rest[at..].split_at(quoted(&rest[at..]));
            let word = text.trim_matches('\'');
            if word.bytes().all(|byte| byte.is_ascii_uppercase()) {
                // A user may have the channels of some jobs only.
                let example = commands::example(besides, word);
                found.extend(example.filter(|it| !it.starts_with("publish")));
            }
            rest = after;
        }
    }
    found
}

/// Returns the commands without which a script fails.
pub(crate) fn needed(verb: Verb, layout: Layout) -> BTreeSet<&'static str> {
    commands(verb.protocol(), verb.source(layout))
}

/// Returns the key with which the check is made: one that each user of these scripts may use.
fn key(schema: Protocol) -> &'static str {
    match schema {
        Protocol::Nooble => "KEYS[1]",
        _ => "LEASES",
    }
}

/// Returns the arguments of `redis.acl_check_cmd` for an example: up to its last key if the key comes first, else all.
fn arguments(example: &str, key: &str) -> String {
    let words: Vec<_> = example.split(' ').collect();
    let last = words.iter().rposition(|word| *word == "K").unwrap_or(0);
    let words = match words.get(1) {
        Some(&"K") => &words[..=last],
        _ => &words[..],
    };
    let word = |word: &&str| match *word {
        "K" => key.to_owned(),
        word => format!("'{word}'"),
    };
    words.iter().map(word).collect::<Vec<_>>().join(", ")
}

/// Returns a line of Lua that runs `otherwise` if the user lacks one of these commands; `lacks` has their names there.
/// The embedded engine has no users.
pub(super) fn check(schema: Protocol, commands: &BTreeSet<&str>, otherwise: &str) -> String {
    if commands.is_empty() {
        return String::new();
    }
    let calls = commands.iter().map(|it| arguments(it, key(schema)));
    let calls: Vec<_> = calls.collect();
    let all: Vec<_> = calls.iter().map(|call| format!("may({call})")).collect();
    let tables: Vec<_> = calls.iter().map(|call| format!("{{{call}}}")).collect();
    format!(
        "local may = redis.acl_check_cmd if may and not ({}) then local lacks = '' for _, c in ipairs({{{}}}) do if not \
         may(unpack(c)) then lacks = lacks .. ' ' .. c[1] end end {otherwise} end",
        all.join(" and "),
        tables.join(", "),
    )
}

/// Returns the error that the scripts return, as Lua.
pub(super) fn error() -> String {
    format!("{{err = 'NOPERM {LACKS}' .. string.sub(lacks, 2)}}")
}
