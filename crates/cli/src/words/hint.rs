//! Hints for words that are no command and no option here.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command};

use super::plain_words;

/// Words of other systems for a command of the same noun, or of `job`.
const VERBS: [(&[&str], &[&str]); 11] = [
    (&["ls", "all", "index"], &["list"]),
    (
        &["rm", "del", "remove", "drop", "forget"],
        &["delete", "remove"],
    ),
    (
        &["kill", "abort", "terminate", "revoke", "stop"],
        &["cancel"],
    ),
    (
        &[
            "get", "info", "inspect", "describe", "view", "details", "stat", "show", "status",
        ],
        &["show", "status", "stats"],
    ),
    (
        &[
            "add", "push", "create", "new", "submit", "put", "send", "dispatch", "schedule",
        ],
        &["enqueue", "add", "create"],
    ),
    (
        &["requeue", "rerun", "replay", "redo", "restart", "retry-all"],
        &["retry", "run"],
    ),
    (&["log", "output", "tail"], &["logs", "result"]),
    (
        &["clear", "flush", "empty", "clean", "delete"],
        &["purge", "delete"],
    ),
    (
        &["start", "trigger", "fire", "execute"],
        &["run", "run-now"],
    ),
    (
        &["len", "length", "size", "depth", "lag"],
        &["stats", "list"],
    ),
    (&["update", "edit", "change", "modify"], &["set", "add"]),
];

/// Words of other systems for a command of another noun.
const ELSEWHERE: [(&[&str], &str); 13] = [
    (
        &[
            "start", "serve", "server", "consume", "consumer", "listen", "work", "daemon",
        ],
        "meshwork worker",
    ),
    (
        &[
            "top", "monitor", "watch", "mon", "ui", "web", "stat", "info",
        ],
        "meshwork queue stats --watch",
    ),
    (&["depth", "length", "size"], "meshwork queue stats"),
    (&["ping", "health", "check", "diagnose"], "meshwork doctor"),
    (
        &["dlq", "dead-letters", "deadletters", "morgue", "discarded"],
        "meshwork dead list",
    ),
    (&["failed", "failures", "errors"], "meshwork list --failed"),
    (&["running", "active"], "meshwork list --state running"),
    (
        &["queued", "pending", "waiting"],
        "meshwork list --state queued",
    ),
    (&["delayed", "scheduled"], "meshwork list --state delayed"),
    (
        &["crontab", "beat", "periodic", "scheduler"],
        "meshwork schedule list",
    ),
    (&["exec", "do"], "meshwork run"),
    (&["dump", "backup"], "meshwork export"),
    (&["load", "restore"], "meshwork import"),
];

/// Options of other systems, and those to use.
const OPTIONS: [(&[&str], &[&str], &str); 15] = [
    (&["n", "count", "max", "all", "last", "top"], &["limit"], ""),
    (&["state"], &["status"], ""),
    (&["failed", "error-only"], &["status"], " failed"),
    (&["eta", "run-at", "schedule-at"], &["at"], ""),
    (&["countdown", "in", "wait-for"], &["delay"], ""),
    (
        &["max-retries", "attempts", "max-attempts", "retry"],
        &["retries"],
        "",
    ),
    (
        &[
            "c",
            "j",
            "jobs",
            "threads",
            "processes",
            "workers",
            "parallel",
        ],
        &["concurrency"],
        "",
    ),
    (&["queue", "queues", "q", "Q"], &["type", "group"], ""),
    (&["interval", "rate"], &["every", "rate"], ""),
    (
        &["args", "kwargs", "payload", "data", "params", "arg"],
        &["input"],
        "",
    ),
    (&["output", "o", "out"], &["format", "json"], ""),
    (&["force", "f", "no-confirm", "confirm"], &["yes"], ""),
    (&["follow", "tail"], &["follow", "watch"], ""),
    (&["expires", "ttl", "deadline"], &["start-timeout"], ""),
    (&["timezone", "zone"], &["tz"], ""),
];

/// Options of other systems for a command that does it in another way.
const OTHER_WAYS: [(&[&str], &[&str], &str); 2] = [
    (
        &["export"],
        &["to", "target", "destination", "into"],
        "export to a file, and import it on the other side: `meshwork export FILE`, then `meshwork import FILE` with \
         REDIS_URL or MESHWORK_DATA of the other store",
    ),
    (
        &["import"],
        &["from", "source"],
        "export on the other side to a file, and import it here: `meshwork export FILE` with REDIS_URL or \
         MESHWORK_DATA of the other store, then `meshwork import FILE`",
    ),
];

/// Most commands that a hint names.
const MAX_COMMANDS: usize = 3;

/// Removes wrong tips from clap's error, and returns a hint for the word that clap does not know.
pub(crate) fn correct(
    said: &mut clap::Error,
    words: &[OsString],
    root: &Command,
) -> Option<String> {
    let place = Place::of(words, root);
    let unknown = |kind| match said.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    let hint = match said.kind() {
        ErrorKind::InvalidSubcommand => place.command(&unknown(ContextKind::InvalidSubcommand)?),
        ErrorKind::UnknownArgument => {
            let word = unknown(ContextKind::InvalidArg)?;
            let name = word.trim_start_matches('-');
            let name = name.split(['=', ' ']).next().unwrap_or(name);
            if !place.takes_any() {
                // It names `-- --option`, for a value that begins with a hyphen; here no value can.
                said.remove(ContextKind::Suggested);
            }
            match word.starts_with('-') {
                true => place.option(name),
                false => place.command(name),
            }
        }
        _ => None,
    }?;
    said.remove(ContextKind::SuggestedSubcommand);
    said.remove(ContextKind::SuggestedArg);
    said.remove(ContextKind::Suggested);
    Some(hint)
}

/// The command that the words name.
struct Place<'a> {
    root: &'a Command,
    path: Vec<&'a Command>,
}

impl<'a> Place<'a> {
    fn of(words: &[OsString], root: &'a Command) -> Self {
        let mut path: Vec<&Command> = Vec::new();
        for (_, word) in plain_words(words) {
            let here = path.last().copied().unwrap_or(root);
            match here.find_subcommand(word) {
                Some(below) => path.push(below),
                None => break,
            }
        }
        Self { root, path }
    }

    fn here(&self) -> &'a Command {
        self.path.last().copied().unwrap_or(self.root)
    }

    fn named(&self, more: &str) -> String {
        let names = self.path.iter().map(|command| command.get_name());
        let names: Vec<_> = std::iter::once("meshwork")
            .chain(names)
            .chain([more])
            .collect();
        names.join(" ").trim_end().to_owned()
    }

    /// Returns true if the command passes arguments after `--` on.
    fn takes_any(&self) -> bool {
        self.here().get_positionals().any(Arg::is_last_set)
    }

    /// Returns the hint for a word that is no command here.
    fn command(&self, word: &str) -> Option<String> {
        let elsewhere = || {
            let found = ELSEWHERE.iter().find(|(words, _)| words.contains(&word));
            found.map(|(_, command)| format!("`{command}`"))
        };
        let here = || {
            let name = self.synonym(self.here(), word)?;
            Some(format!("`{}`", self.named(name)))
        };
        if !self.path.is_empty() {
            return self.of_worker(word).or_else(here);
        }
        self.noun(word)
            .or_else(elsewhere)
            .or_else(here)
            .or_else(|| self.anywhere(word))
            .or_else(|| {
                let job = self.root.find_subcommand("job")?;
                let name = self.synonym(job, word)?;
                Some(format!("`meshwork job {name}`"))
            })
    }

    /// Returns the command below `command` that another system calls `word`.
    fn synonym(&self, command: &'a Command, word: &str) -> Option<&'a str> {
        let lists = VERBS.iter().filter(|(words, _)| words.contains(&word));
        let mut names = lists.flat_map(|(_, names)| names.iter());
        names.find_map(|name| Some(command.find_subcommand(name)?.get_name()))
    }

    /// `worker` runs a worker without a further word.
    fn of_worker(&self, word: &str) -> Option<String> {
        let is_start = ["start", "run", "up", "work"].contains(&word);
        (is_start && self.here().get_name() == "worker")
            .then(|| "`meshwork worker` runs a worker, without a further word".to_owned())
    }

    /// Returns the list of a noun in the plural.
    fn noun(&self, word: &str) -> Option<String> {
        let noun = self.root.find_subcommand(word.strip_suffix('s')?)?;
        let name = noun.get_name();
        noun.find_subcommand("list")
            .map(|_| format!("`meshwork {name} list`"))
    }

    /// Returns the nouns that have a command of this name.
    fn anywhere(&self, word: &str) -> Option<String> {
        let nouns = self
            .root
            .get_subcommands()
            .filter(|noun| !noun.is_hide_set());
        let found = nouns.filter_map(|noun| {
            let below = noun.find_subcommand(word)?;
            Some(format!(
                "`meshwork {} {}`",
                noun.get_name(),
                below.get_name()
            ))
        });
        let found: Vec<_> = found.take(MAX_COMMANDS).collect();
        (!found.is_empty()).then(|| found.join(", "))
    }

    /// Returns the hint for an option that the command does not have.
    fn option(&self, name: &str) -> Option<String> {
        let here = self.here();
        let path: Vec<_> = self.path.iter().map(|command| command.get_name()).collect();
        let mut others = OTHER_WAYS.iter();
        if let Some((.., way)) =
            others.find(|(of, names, _)| **of == path[..] && names.contains(&name))
        {
            return Some((*way).to_owned());
        }
        let is_value = |arg: &&Arg| {
            let names = arg.get_value_names().unwrap_or_default();
            arg.get_id().as_str().eq_ignore_ascii_case(name)
                || names.iter().any(|value| value.eq_ignore_ascii_case(name))
        };
        if let Some(arg) = here.get_positionals().find(is_value) {
            let value = arg.get_value_names().and_then(|names| names.first());
            let value = value.map_or_else(|| name.to_uppercase(), ToString::to_string);
            return Some(format!(
                "give it without --{name}: `{}`",
                self.named(&value)
            ));
        }
        if let Some(below) = here.find_subcommand(name) {
            return Some(format!("`{}`", self.named(below.get_name())));
        }
        let lists = OPTIONS.iter().filter(|(words, ..)| words.contains(&name));
        let mut options =
            lists.flat_map(|(_, options, value)| options.iter().map(move |o| (o, value)));
        let (option, value) = options.find(|(option, _)| has(here, option))?;
        Some(format!("`--{option}{value}`"))
    }
}

/// Returns true if a command has an option of this name that its help shows.
fn has(command: &Command, name: &str) -> bool {
    let mut args = command.get_arguments();
    args.any(|arg| arg.get_long() == Some(name) && !arg.is_hide_set())
}
