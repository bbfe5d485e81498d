//! Hints for words that are no command and no option here.

use std::ffi::OsString;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command};

use super::plain_words;
use super::tables::{ELSEWHERE, OPTIONS, OTHER_WAYS, PROCESSES, VERBS};

/// Most commands that a hint names.
const MAX_COMMANDS: usize = 3;
/// Noun of most commands.
const JOB: &str = "job";

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
        ErrorKind::MissingRequiredArgument => return place.incomplete(words),
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

/// Returns the usage of the command that the words name, without the options that they give.
pub(crate) fn usage(words: &[OsString], root: &Command) -> StyledStr {
    Place::of(words, root).here().clone().render_usage()
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
            let (_, command) = ELSEWHERE.iter().find(|(words, _)| words.contains(&word))?;
            Some(match command.contains('`') {
                true => (*command).to_owned(),
                false => format!("`{command}`"),
            })
        };
        let here = || {
            let name = self.synonym(self.here(), word)?;
            Some(format!("`{}`", self.named(name)))
        };
        if !self.path.is_empty() {
            let is_job = self.here().get_name() == JOB;
            let of_job = || elsewhere().filter(|_| is_job);
            return self.of_worker(word).or_else(here).or_else(of_job);
        }
        let job = self.root.find_subcommand(JOB);
        let of_job = || {
            let job = job?;
            let exact = job.find_subcommand(word).map(Command::get_name);
            Some(format!("`meshwork {JOB} {}`", exact?))
        };
        let like_job = || Some(format!("`meshwork {JOB} {}`", self.synonym(job?, word)?));
        self.noun(word)
            .or_else(elsewhere)
            .or_else(here)
            .or_else(of_job)
            .or_else(|| self.anywhere(word))
            .or_else(like_job)
    }

    /// Returns the hint for a command without its arguments: the short form of one that needs an id, and options that
    /// other systems read otherwise.
    fn incomplete(&self, words: &[OsString]) -> Option<String> {
        let typed: Vec<_> = words.iter().filter_map(|word| word.to_str()).collect();
        let path: Vec<_> = self.path.iter().map(|command| command.get_name()).collect();
        match &path[..] {
            [JOB, "show"] => Some(
                "`meshwork list` shows the jobs, `meshwork queue stats` the queues, and `meshwork doctor` the store"
                    .to_owned(),
            ),
            ["worker"] if typed.iter().any(|word| word.starts_with("--processes")) => {
                Some(PROCESSES.to_owned())
            }
            _ => None,
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::tree;

    /// Returns the hint for a command line.
    fn hint(line: &str) -> Option<String> {
        let words: Vec<_> = line.split(' ').map(OsString::from).collect();
        let words = super::super::expanded(words);
        let mut root = tree();
        let mut said = root.clone().try_get_matches_from(&words).unwrap_err();
        root.build();
        correct(&mut said, &words, &root)
    }

    #[test]
    fn words_of_other_systems_lead_to_the_command() {
        let mut wrong = Vec::new();
        for (line, wanted) in [
            ("ui", "`meshwork dashboard`"),
            ("web", "`meshwork dashboard`"),
            ("delete x", "`meshwork job delete`"),
            ("rm x", "`meshwork job delete`"),
            ("approve x", "`meshwork job approve`"),
            ("serve", "`meshwork supervisor`"),
            ("api", "`meshwork supervisor`"),
            ("server", "`meshwork supervisor`"),
            ("login", "`meshwork key create`"),
            ("token create", "`meshwork key create`"),
            ("flow lint", "`meshwork flow check`"),
            ("flow validate f.yaml", "`meshwork flow check`"),
            ("validate f.yaml", "`meshwork flow check`"),
            ("job output x", "`meshwork job result`"),
            ("output x", "`meshwork result`"),
            ("job pending", "`meshwork list --state queued`"),
            ("completion bash", "`meshwork completions`"),
            ("version", "`meshwork --version`"),
            ("man", "`meshwork --help`"),
            ("init", "`meshwork run SCRIPT`"),
            ("submit f.py", "`meshwork enqueue`"),
            ("add_child f.py", "`add_child()`"),
            ("status", "`meshwork queue stats`"),
            (
                "worker --processes 4",
                "--concurrency is the number of jobs at once",
            ),
            ("worker -n 4 --type osis", "`--concurrency`"),
            ("worker -c 4", "`--concurrency`"),
            ("enqueue f.py -p high", "`--priority`"),
            ("workflow run", "`meshwork flow list`"),
            ("tasks", "`meshwork job list`"),
            ("schedule delete x", "`meshwork schedule remove`"),
            ("schedule disable x", "`meshwork schedule pause`"),
            ("schedule enable x", "`meshwork schedule resume`"),
            ("queue delete x", "`meshwork queue purge`"),
            ("worker restart", "`meshwork worker stop`"),
            ("flow show 1", "`meshwork flow status`"),
            ("actor rm x", "`meshwork actor revoke`"),
            ("history", "`meshwork events`"),
            ("healthcheck", "`meshwork doctor`"),
        ] {
            let said = hint(&format!("meshwork {line}"));
            if !said.as_deref().is_some_and(|said| said.contains(wanted)) {
                wrong.push(format!("{line}: {said:?}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    /// A verb without its noun, and a noun with a plural, name the command.
    #[test]
    fn every_verb_and_noun_leads_to_its_command() {
        let root = tree();
        let visible = |command: &&Command| !command.is_hide_set();
        let mut wrong = Vec::new();
        let nouns: Vec<_> = root.get_subcommands().filter(visible).collect();
        for noun in &nouns {
            for verb in noun.get_subcommands().filter(visible) {
                let (noun, verb) = (noun.get_name(), verb.get_name());
                let taken = root.find_subcommand(verb).is_some() || verb == "help";
                let elsewhere = ELSEWHERE.iter().any(|(words, _)| words.contains(&verb));
                if taken || elsewhere {
                    continue;
                }
                let said = hint(&format!("meshwork {verb}"));
                // One of several nouns with this verb.
                if !said
                    .as_deref()
                    .is_some_and(|said| said.contains("`meshwork "))
                {
                    wrong.push(format!("{verb} of {noun}: {said:?}"));
                }
            }
            if noun.find_subcommand("list").is_some() {
                let name = noun.get_name();
                let said = hint(&format!("meshwork {name}s"));
                let wanted = format!("`meshwork {name} list`");
                if said.as_deref() != Some(&*wanted) {
                    wrong.push(format!("{name}s: {said:?}"));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
