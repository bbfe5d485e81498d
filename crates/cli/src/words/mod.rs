//! Words of other job systems: short forms of commands, and hints for words that are no command or option.

mod hint;

use std::ffi::OsString;

use clap::Command;

pub(crate) use hint::correct;

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
const WITH_VALUE: [&str; 11] = [
    "--redis",
    "--connect-timeout",
    "--tls-ca",
    "--tls-cert",
    "--tls-key",
    "--namespace",
    "--log-format",
    "--context",
    "--actor-key",
    "--protocol",
    "--schema",
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

    use clap::CommandFactory as _;

    use super::*;

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
