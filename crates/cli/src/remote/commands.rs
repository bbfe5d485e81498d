//! Commands with `--api`: each works by the API, needs no store, or says what to do instead.

use crate::error::CommandError;

/// Place in which a command works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Works {
    /// By the API, too.
    ByApi,
    /// Without a store, whatever is given.
    Anywhere,
    /// At the store alone, with the remedy.
    AtStore(&'static str),
}

use Works::{Anywhere, AtStore, ByApi};

/// Remedy for a command that reads or changes the store itself.
const STORE: Works =
    AtStore("it works on the store itself: give --redis, or run it where the store is");
/// Commands by the beginning of their names. The longest one counts.
const COMMANDS: &[(&str, Works)] = &[
    ("action", STORE),
    ("actor", STORE),
    ("actor list", ByApi),
    ("actor show", ByApi),
    ("bananas", STORE),
    ("bananas-worker", STORE),
    ("batch", ByApi),
    ("completions", Anywhere),
    ("config", Anywhere),
    ("context", STORE),
    ("context list", ByApi),
    ("context show", ByApi),
    (
        "dashboard",
        AtStore("open the URL of the API in a browser: it leads to the dashboard"),
    ),
    ("dead", ByApi),
    ("doctor", STORE),
    ("events", ByApi),
    ("export", STORE),
    ("flow", ByApi),
    ("flow check", Anywhere),
    ("flow dag", Anywhere),
    ("flow schema", Anywhere),
    ("import", STORE),
    ("job", ByApi),
    ("job schema", Anywhere),
    ("key", ByApi),
    (
        "mcp",
        AtStore("give agents the URL of the API with `/mcp`, and a key (docs/mcp.md)"),
    ),
    ("mesh", STORE),
    ("message", ByApi),
    ("metrics", ByApi),
    ("migrate", STORE),
    (
        "outbox",
        AtStore("it works on your database: leave --api out"),
    ),
    ("queue", ByApi),
    (
        "queue stats",
        AtStore("`meshwork queue list` counts the jobs, and `meshwork metrics` has all else"),
    ),
    ("rpc", ByApi),
    (
        "run",
        AtStore(
            "it starts a worker of its own: `meshwork job enqueue FILE --wait` leaves the script to a worker",
        ),
    ),
    ("runner", ByApi),
    ("runtime", Anywhere),
    ("schedule", ByApi),
    ("schedule next", Anywhere),
    ("service", STORE),
    ("store", STORE),
    (
        "supervisor",
        AtStore("it serves the API of a store: give --redis"),
    ),
    (
        "worker",
        AtStore("a worker claims jobs in the store: give --redis"),
    ),
    ("worker list", ByApi),
    ("worker quiet", ByApi),
    ("worker stop", ByApi),
];

/// Returns where a command works: its names, with a space between.
fn of(command: &str) -> Option<Works> {
    let is_of = |name: &str| {
        let rest = command.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    let known = COMMANDS.iter().filter(|(name, _)| is_of(name));
    let longest = known.max_by_key(|(name, _)| name.len());
    longest.map(|(_, works)| *works)
}

/// Returns true if a command uses the API. Refuses one that cannot.
pub(crate) fn check(command: &str) -> Result<bool, CommandError> {
    match of(command) {
        Some(ByApi) => Ok(true),
        Some(Anywhere) | None => Ok(false),
        Some(AtStore(remedy)) => Err(CommandError::usage(format_args!(
            "`meshwork {command}` does not work with --api: {remedy}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::{Command, CommandFactory};

    use super::*;
    use crate::cli::Cli;

    /// Adds the names of the commands that can be run.
    fn add(command: &Command, path: &str, all: &mut BTreeSet<String>) {
        for below in command
            .get_subcommands()
            .filter(|it| it.get_name() != "help")
        {
            let path = format!("{path} {}", below.get_name());
            if !below.has_subcommands() || !below.is_subcommand_required_set() {
                all.insert(path.trim().to_owned());
            }
            add(below, &path, all);
        }
    }

    #[test]
    fn each_command_works_by_the_api_or_says_what_to_do() {
        let mut all = BTreeSet::new();
        add(&Cli::command(), "", &mut all);
        assert!(all.len() > 100, "{all:?}");
        for command in &all {
            assert!(of(command).is_some(), "{command}");
        }
        for (name, _) in COMMANDS {
            let is_of = |it: &String| it == name || it.starts_with(&format!("{name} "));
            assert!(all.iter().any(is_of), "{name} is no command");
        }
    }
}
