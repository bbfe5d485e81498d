//! Words of other job systems: short forms of commands, and hints for words that are no command or option.

mod hint;
mod tables;

use std::ffi::OsString;

use clap::Command;

pub(crate) use hint::{correct, usage};
pub(crate) use tables::PROCESSES;

/// Short form of a command.
struct ShortForm {
    word: &'static str,
    command: [&'static str; 2],
}

const fn of_job(word: &'static str, command: &'static str) -> ShortForm {
    ShortForm {
        word,
        command: ["job", command],
    }
}

/// Commands of `job` that need no noun.
const SHORT_FORMS: [ShortForm; 11] = [
    of_job("enqueue", "enqueue"),
    of_job("list", "list"),
    of_job("ps", "list"),
    of_job("show", "show"),
    of_job("status", "show"),
    of_job("why", "why"),
    of_job("wait", "wait"),
    of_job("result", "result"),
    of_job("logs", "logs"),
    of_job("cancel", "cancel"),
    of_job("retry", "retry"),
];

/// Lines about the short forms, for `--help`.
pub(crate) const HELP: &str = "\
Short forms: `meshwork enqueue` is `meshwork job enqueue`. So are list (ps), show (status), why, wait, result, logs,
cancel and retry.";

/// Options of all commands, and of those about jobs, whose value is a separate argument.
const WITH_VALUE: [&str; 12] = [
    "--redis",
    "--api",
    "--key-file",
    "--connect-timeout",
    "--tls-ca",
    "--tls-cert",
    "--tls-key",
    "--namespace",
    "--log-format",
    "--context",
    "--actor-key",
    "--protocol",
];

/// Returns the positions of the arguments that are no options, after the program's name.
pub(crate) fn plain_words(words: &[OsString]) -> impl Iterator<Item = (usize, &str)> {
    let mut is_value = false;
    words
        .iter()
        .enumerate()
        .skip(1)
        .filter_map(move |(at, word)| {
            let word = word.to_str()?;
            let skipped = std::mem::replace(&mut is_value, WITH_VALUE.contains(&word));
            (!skipped && !word.starts_with('-')).then_some((at, word))
        })
}

/// Replaces a short form by its command.
pub(crate) fn expanded(mut words: Vec<OsString>) -> Vec<OsString> {
    let first = plain_words(&words).next();
    let found = first.and_then(|(at, word)| {
        let form = SHORT_FORMS.iter().find(|form| form.word == word)?;
        Some((at, form))
    });
    if let Some((at, form)) = found {
        words.splice(at..=at, form.command.map(OsString::from));
    }
    words
}

/// Adds the short forms as commands, for `meshwork help WORD` and completions. They are expanded before the arguments
/// are parsed.
pub(crate) fn with_short_forms(mut command: Command) -> Command {
    for form in &SHORT_FORMS {
        let [noun, verb] = form.command;
        let whole = command.find_subcommand(noun);
        let whole = whole.and_then(|noun| noun.find_subcommand(verb));
        if let Some(whole) = whole.cloned() {
            let short = whole.name(form.word).alias(None).hide(true);
            command = command.subcommand(short);
        }
    }
    command
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::{Arg, CommandFactory};

    use super::*;
    use crate::cli::Cli;

    /// Returns the names of commands, options and values below a command that work but are not in its help.
    fn hidden_aliases(command: &Command) -> Vec<String> {
        let of_arg = |arg: &Arg| {
            let (all, visible) = (arg.get_all_aliases(), arg.get_visible_aliases());
            let mut names = all.unwrap_or_default();
            names.retain(|name| !visible.as_ref().is_some_and(|names| names.contains(name)));
            let values = arg.get_possible_values();
            let values = values
                .iter()
                .flat_map(|it| it.get_name_and_aliases().skip(1));
            let names = names.into_iter().chain(values);
            names.map(ToOwned::to_owned).collect::<Vec<_>>()
        };
        let visible: Vec<_> = command.get_visible_aliases().collect();
        let mut names: Vec<_> = command.get_all_aliases().map(ToOwned::to_owned).collect();
        names.retain(|name| !visible.contains(&&**name));
        names.extend(command.get_arguments().flat_map(of_arg));
        let below = command.get_subcommands().flat_map(hidden_aliases);
        names.into_iter().chain(below).collect()
    }

    /// Returns the texts of a command and of those below that name Hero, each with the command, and its option if any.
    fn naming_hero(command: &Command, found: &mut Vec<(String, String)>) {
        let is_named = |text: &str| text.to_lowercase().contains("hero");
        let name = command.get_name().to_owned();
        for arg in command.get_arguments() {
            let texts = [arg.get_help(), arg.get_long_help()].into_iter().flatten();
            let texts: Vec<_> = texts.map(ToString::to_string).collect();
            let values = arg.get_possible_values();
            let values = values.iter().map(|value| value.get_name().to_owned());
            let defaults = arg.get_default_values().iter();
            let defaults = defaults.map(|value| value.to_string_lossy().into_owned());
            if texts
                .into_iter()
                .chain(values)
                .chain(defaults)
                .any(|text| is_named(&text))
            {
                found.push((name.clone(), arg.get_id().to_string()));
            }
        }
        let texts = [command.get_about(), command.get_long_about()];
        let after = [command.get_after_help(), command.get_after_long_help()];
        let texts = texts.into_iter().chain(after).flatten();
        if texts.map(ToString::to_string).any(|text| is_named(&text)) {
            found.push((name, String::new()));
        }
        command
            .get_subcommands()
            .for_each(|below| naming_hero(below, found));
    }

    #[test]
    fn only_options_of_compatibility_name_hero() {
        let command = crate::args::protocol::with_option(with_short_forms(Cli::command()));
        let mut found = Vec::new();
        naming_hero(&command, &mut found);
        let known = [("meshwork", "namespace"), ("start", "list")];
        let known = known.map(|(command, option)| (command.to_owned(), option.to_owned()));
        assert_eq!(found, known);
    }

    #[test]
    fn every_other_name_is_in_the_help() {
        let mut command = crate::args::protocol::with_option(with_short_forms(Cli::command()));
        command.build();
        assert_eq!(hidden_aliases(&command), [""; 0]);
    }

    #[test]
    fn the_global_options_with_a_value_are_known() {
        let command = crate::args::protocol::with_option(crate::cli::Cli::command());
        let global = command
            .get_arguments()
            .filter(|arg| arg.is_global_set() && arg.get_action().takes_values());
        let names = global.flat_map(|arg| {
            let others = arg.get_all_aliases().unwrap_or_default();
            arg.get_long().into_iter().chain(others)
        });
        let names: BTreeSet<_> = names.map(|name| format!("--{name}")).collect();
        let known: BTreeSet<_> = WITH_VALUE.map(str::to_owned).into();
        assert!(names.is_subset(&known), "{names:?}");
    }

    #[test]
    fn only_the_first_plain_word_is_a_short_form() {
        for (line, words) in [
            ("m list", "m job list"),
            ("m ps --failed", "m job list --failed"),
            (
                "m --json --redis list why j1",
                "m --json --redis list job why j1",
            ),
            ("m run list", "m run list"),
            ("m queue list", "m queue list"),
            ("m status list", "m job show list"),
            ("m", "m"),
        ] {
            let words_of = line.split(' ').map(OsString::from).collect();
            let read = expanded(words_of).join(std::ffi::OsStr::new(" "));
            assert_eq!(read.to_str(), Some(words), "{line}");
        }
    }
}
