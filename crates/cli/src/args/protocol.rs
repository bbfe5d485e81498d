//! `--protocol`: the same nouns for Meshwork's own jobs, jobs of Bananas and actions of Nooble4. A command line that names
//! another protocol is read by that protocol's own commands, so that each has its own options and its own help.

use std::ffi::{OsStr, OsString};

use clap::builder::PossibleValuesParser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, Command};

use crate::words::plain_words;

/// Noun that several protocols have.
struct Noun {
    /// Names of the command: the main one and aliases.
    names: &'static [&'static str],
    /// Other protocols, each with its own command.
    protocols: &'static [(&'static str, &'static [&'static str])],
    /// Alternative for a protocol that has no such noun.
    otherwise: &'static str,
}

const NO_JOBS: &str = "actions of Nooble4 are no jobs: `meshwork action call` and `action send` send them, `meshwork service` \
                       answers them";

const NOUNS: [Noun; 5] = [
    Noun {
        names: &["worker"],
        protocols: &[("bananas", &["bananas-worker"]), ("nooble", &["service"])],
        otherwise: "",
    },
    Noun {
        names: &["job"],
        protocols: &[("bananas", &["bananas", "job"])],
        otherwise: NO_JOBS,
    },
    Noun {
        names: &["queue"],
        protocols: &[("bananas", &["bananas", "queue"])],
        otherwise: NO_JOBS,
    },
    Noun {
        names: &["dead"],
        protocols: &[
            ("bananas", &["bananas", "dead"]),
            ("nooble", &["action", "dead"]),
        ],
        otherwise: "",
    },
    Noun {
        names: &["schedule", "cron"],
        protocols: &[("bananas", &["bananas", "schedule"])],
        otherwise: NO_JOBS,
    },
];

/// Name of the option.
const OPTION: &str = "--protocol";
/// Protocol without `--protocol`: Meshwork's own jobs.
const DEFAULT: &str = "jobs";

/// Arguments in the form of one protocol's commands.
pub(crate) struct CommandLine {
    pub(crate) words: Vec<OsString>,
    /// The command of another protocol than the default, if one is named.
    pub(crate) renamed: Option<Renamed>,
    noun: Option<&'static Noun>,
}

/// Command that replaces a noun with a protocol.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Renamed {
    protocol: &'static str,
    /// Internal form, as `meshwork bananas-worker`.
    from: String,
    /// Form of the user, as `meshwork worker --protocol bananas`.
    to: String,
}

impl Renamed {
    /// Returns the text with the command in the form of the user.
    pub(crate) fn shown(&self, text: &str) -> String {
        text.replace(&self.from, &self.to)
    }
}

impl CommandLine {
    /// Reads the arguments, the program's name first.
    pub(crate) fn read(words: Vec<OsString>) -> Self {
        Self::of_protocol(&words).unwrap_or_else(|| Self {
            noun: noun_of(&words).map(|(_, noun)| noun),
            words,
            renamed: None,
        })
    }

    /// Returns the arguments for the named protocol; none for the default one, or without `--protocol`.
    fn of_protocol(words: &[OsString]) -> Option<Self> {
        let (at, noun) = noun_of(words)?;
        let end = words.iter().position(|word| word == "--");
        let end = end.unwrap_or(words.len());
        let (from, to, value) = option_of(&words[..end], at)?;
        let (protocol, command) = noun.protocols.iter().find(|(name, _)| value == *name)?;
        let mut read = words[..at].to_vec();
        read.extend(command.iter().map(OsString::from));
        read.extend_from_slice(&words[at + 1..from]);
        read.extend_from_slice(&words[to..]);
        let renamed = Renamed {
            protocol,
            from: format!("meshwork {}", command.join(" ")),
            to: format!("meshwork {} --protocol {protocol}", noun.names[0]),
        };
        Some(Self {
            words: read,
            renamed: Some(renamed),
            noun: Some(noun),
        })
    }
}

/// Returns the first argument that is a noun, and its position.
fn noun_of(words: &[OsString]) -> Option<(usize, &'static Noun)> {
    let (at, word) = plain_words(words).next()?;
    let noun = NOUNS.iter().find(|noun| noun.names.contains(&word))?;
    Some((at, noun))
}

/// Returns the positions of the option behind the noun (start and end), and its value.
fn option_of(words: &[OsString], noun: usize) -> Option<(usize, usize, &OsStr)> {
    for (at, word) in words.iter().enumerate().skip(noun + 1) {
        if word == OPTION {
            return Some((at, at + 2, words.get(at + 1)?));
        }
        let value = word.to_str().and_then(|word| word.strip_prefix(OPTION));
        if let Some(value) = value.and_then(|value| value.strip_prefix('=')) {
            return Some((at, at + 1, OsStr::new(value)));
        }
    }
    None
}

/// Adds `--protocol` to each noun, for help and completions. The values that are parsed here are the default, or
/// invalid ones.
pub(crate) fn with_option(mut command: Command) -> Command {
    for noun in &NOUNS {
        let others = noun.protocols.iter().map(|(name, _)| *name);
        let names: Vec<_> = std::iter::once(DEFAULT).chain(others).collect();
        let help = format!(
            "Protocol: {}; each has its own options (`meshwork {} --protocol {} --help`)",
            names.join(", "),
            noun.names[0],
            noun.protocols[0].0
        );
        let option = Arg::new("protocol")
            .long("protocol")
            .value_name("NAME")
            .value_parser(PossibleValuesParser::new(names))
            .hide_possible_values(true)
            .default_value(DEFAULT)
            .action(ArgAction::Set)
            .global(true)
            .help(help);
        command = command.mut_subcommand(noun.names[0], |noun| noun.arg(option));
    }
    command
}

/// Returns a hint for an option or protocol of another command.
pub(crate) fn hint(said: &clap::Error, line: &CommandLine, command: &Command) -> Option<String> {
    let noun = line.noun?;
    let value = |kind| match said.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    if said.kind() == ErrorKind::InvalidValue {
        let option = value(ContextKind::InvalidArg)?;
        let is_nooble = value(ContextKind::InvalidValue)? == "nooble";
        let is_refused =
            option.starts_with("--protocol") && is_nooble && !noun.otherwise.is_empty();
        return is_refused.then(|| noun.otherwise.to_owned());
    }
    if said.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let option = value(ContextKind::InvalidArg)?;
    let name = option.strip_prefix("--")?.split('=').next()?;
    let has = |path: &[&str]| {
        let of = path
            .iter()
            .try_fold(command, |of, name| of.find_subcommand(name));
        of.is_some_and(|of| has_option(of, name))
    };
    let own = (DEFAULT, &noun.names[..1]);
    let others = noun.protocols.iter().copied();
    let mut all = std::iter::once(own).chain(others);
    let here = line
        .renamed
        .as_ref()
        .map_or(DEFAULT, |other| other.protocol);
    let (protocol, _) = all.find(|(protocol, path)| *protocol != here && has(path))?;
    Some(format!("--{name} is an option of --protocol {protocol}"))
}

/// Returns true if a command, or a subcommand, has an option of this name.
fn has_option(command: &Command, name: &str) -> bool {
    let is = |arg: &Arg| {
        let aliases = arg.get_all_aliases().unwrap_or_default();
        arg.get_long() == Some(name) || aliases.contains(&name)
    };
    command.get_arguments().any(is)
        || command
            .get_subcommands()
            .any(|below| has_option(below, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> (String, Option<Renamed>) {
        let words = line.split(' ').map(OsString::from).collect();
        let read = CommandLine::read(words);
        let words: Vec<_> = read
            .words
            .iter()
            .map(|word| word.to_string_lossy())
            .collect();
        (words.join(" "), read.renamed)
    }

    #[test]
    fn a_protocol_has_its_own_command() {
        for (line, words) in [
            (
                "m job submit --protocol bananas a {}",
                "m bananas job submit a {}",
            ),
            (
                "m --redis job worker --protocol=bananas",
                "m --redis job bananas-worker",
            ),
            (
                "m --json worker --protocol bananas --x",
                "m --json bananas-worker --x",
            ),
            ("m worker --protocol nooble --name a", "m service --name a"),
            ("m dead list --protocol nooble a", "m action dead list a"),
            ("m cron --protocol bananas list", "m bananas schedule list"),
        ] {
            assert_eq!(read(line).0, words, "{line}");
        }
        let (_, renamed) = read("m worker --protocol nooble");
        let shown = renamed.map(|renamed| renamed.shown("Usage: meshwork service --name"));
        assert_eq!(
            shown.as_deref(),
            Some("Usage: meshwork worker --protocol nooble --name")
        );
    }

    #[test]
    fn all_else_stays_as_it_is() {
        for line in [
            "m",
            "m job list",
            "m job list --protocol jobs",
            "m job list --protocol",
            "m job list --protocol nooble",
            "m job submit -- --protocol bananas",
            "m run job --protocol bananas",
            "m bananas submit --protocol bananas",
        ] {
            assert_eq!(read(line), (line.to_owned(), None), "{line}");
        }
    }
}
