//! Help that fits a screen: `-h` shows the first sentence of each text, the most used options and two examples, `--help` has
//! all. Options of all commands are in `meshwork --help` only.

use std::ffi::OsString;

use clap::builder::StyledStr;
use clap::{Arg, Command, Id};

use crate::args::protocol::CommandLine;
use crate::words::plain_words;

/// Height of a terminal, in lines, without the line of the next prompt.
const LINES: usize = 24;
/// Width of a terminal, in columns.
const COLUMNS: usize = 80;
/// Examples of a command.
const EXAMPLES: usize = 2;
/// Alternatives from which on a usage names them in short.
const MANY_ALTERNATIVES: usize = 6;
/// These alternatives in short.
const SHORT_ALTERNATIVES: &str = "<ID…|--all|FILTER>";
/// Examples, each a command line.
const LINES_OF_EXAMPLES: &str = include_str!("examples.txt");

/// Command whose help is printed.
#[derive(Clone, Copy)]
struct Target<'a> {
    path: &'a [&'a str],
    /// Last lines of the help.
    footer: &'a str,
    /// Number of options that the short help leaves out, from the end.
    left_out: usize,
}

/// Prepares the help of the command that `words` names. The short help leaves out as many options as needed to fit the
/// screen.
pub(crate) fn prepared(command: Command, line: &CommandLine) -> Command {
    let path = path_of(&line.words, &command);
    let path: Vec<_> = path.iter().map(String::as_str).collect();
    let footer = footer(&path, &command);
    let with = |left_out| {
        let target = Target {
            path: &path,
            footer: &footer,
            left_out,
        };
        prepare(command.clone(), &path, target)
    };
    let counts: Vec<usize> = (0..options_at(&command, &path)).collect();
    let left_out = counts.partition_point(|left_out| height(with(*left_out), &path) > LINES);
    with(left_out)
}

/// Returns the options of a command that its short help may leave out.
fn optional(command: &Command) -> Vec<Id> {
    let is_optional =
        |arg: &&Arg| arg.get_long().is_some() && !arg.is_required_set() && !arg.is_hide_set();
    let options = command.get_arguments().filter(is_optional);
    options.map(|arg| arg.get_id().clone()).collect()
}

/// Returns the number of these options of the command at `path`.
fn options_at(root: &Command, path: &[&str]) -> usize {
    let found = path
        .iter()
        .try_fold(root, |of, name| of.find_subcommand(name));
    found.map_or(0, |found| optional(found).len())
}

/// Returns the height of the short help of the command at `path`, in lines.
fn height(root: Command, path: &[&str]) -> usize {
    let words = ["meshwork"].iter().chain(path).chain(&["-h"]);
    let help = root.term_width(COLUMNS).try_get_matches_from(words).err();
    let help = help.map(|help| help.render().to_string());
    help.map_or(0, |help| help.trim_end().lines().count())
}

/// Returns the names of the commands that `words` name, without `help`.
fn path_of(words: &[OsString], root: &Command) -> Vec<String> {
    let (mut here, mut path) = (root, Vec::new());
    for (_, word) in plain_words(words).filter(|(_, word)| *word != "help") {
        let Some(below) = here.find_subcommand(word) else {
            break;
        };
        path.push(below.get_name().to_owned());
        here = below;
    }
    path
}

/// Returns the line that names the options above a command, which its help does not repeat.
fn footer(path: &[&str], root: &Command) -> String {
    if path.is_empty() {
        return String::new();
    }
    let mut lines = Vec::new();
    let noun = root.find_subcommand(path[0]).filter(|_| path.len() > 1);
    let shared = noun.into_iter().flat_map(Command::get_arguments);
    let shared = shared.filter(|arg| arg.is_global_set());
    let shared: Vec<_> = shared.filter_map(Arg::get_long).collect();
    if !shared.is_empty() {
        let names = format!("--{}", shared.join(", --"));
        lines.push(format!(
            "Shared options ({names}): `meshwork {} --help`",
            path[0]
        ));
    }
    lines.push("Options of all commands (--redis, --json, -v, …): `meshwork --help`".to_owned());
    lines.join("\n")
}

/// Prepares the command at `path` below this one; hides the options that it shares with others.
fn prepare(command: Command, path: &[&str], target: Target<'_>) -> Command {
    let Some((name, below)) = path.split_first() else {
        return shortened(command, target);
    };
    let command = command.mut_args(|arg| match arg.is_global_set() {
        true => arg.hide(true),
        false => arg,
    });
    command.mut_subcommand(name, |command| prepare(command, below, target))
}

/// Shortens the texts of a command, and adds its examples.
fn shortened(mut command: Command, target: Target<'_>) -> Command {
    let mut options = optional(&command);
    let left_out = options.split_off(options.len().saturating_sub(target.left_out));
    if has_many_alternatives(&command) {
        let path = target.path.join(" ");
        command = command.override_usage(format!("meshwork {path} [OPTIONS] {SHORT_ALTERNATIVES}"));
    }
    command = command.mut_args(shortened_arg).mut_subcommands(|below| {
        let about = below
            .get_about()
            .map(|text| beginning(text, &["; ", ". ", ": "]));
        match about {
            Some(about) => below.about(about),
            None => below,
        }
    });
    let more = if left_out.is_empty() {
        ""
    } else {
        "More options: `--help`"
    };
    for id in left_out {
        command = command.mut_arg(id, |arg| arg.hide_short_help(true));
    }
    let examples = examples(target.path);
    let after = command.get_after_help().map(ToString::to_string);
    let long = [
        after.as_deref().unwrap_or_default(),
        &examples,
        target.footer,
    ];
    let footer = format!("{more}\n{}", target.footer);
    let short = joined(&[&examples, footer.trim()]);
    command.after_long_help(joined(&long)).after_help(short)
}

/// Returns true if the usage of a command would name all its filters.
fn has_many_alternatives(command: &Command) -> bool {
    let alternatives = command.get_groups().map(|group| group.get_args().count());
    let has_ids = command
        .get_positionals()
        .any(|arg| arg.get_id().as_str() == "ids");
    has_ids
        && alternatives
            .max()
            .is_some_and(|many| many >= MANY_ALTERNATIVES)
}

/// Shortens the alternatives in an error text, which name all filters.
pub(crate) fn with_short_alternatives(text: &str) -> String {
    let (mut shown, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(start) = rest.find('<') {
        let group = &rest[start..];
        let mut depth = 0;
        let end = group.char_indices().find(|(_, c)| {
            depth += match c {
                '<' => 1,
                '>' => -1,
                _ => 0,
            };
            depth == 0
        });
        let Some((end, _)) = end else { break };
        let (group, behind) = group.split_at(end + 1);
        shown.push_str(&rest[..start]);
        shown.push_str(match group.matches('|').count() >= MANY_ALTERNATIVES {
            true => SHORT_ALTERNATIVES,
            false => group,
        });
        rest = behind;
    }
    shown + rest
}

/// Joins the texts that are not empty, with a blank line between two.
fn joined(texts: &[&str]) -> String {
    let texts: Vec<_> = texts
        .iter()
        .copied()
        .filter(|text| !text.is_empty())
        .collect();
    texts.join("\n\n")
}

/// Shortens the help of an option for `-h`; `--help` has all of it.
fn shortened_arg(arg: Arg) -> Arg {
    let Some(help) = arg.get_help().cloned() else {
        return arg;
    };
    let long = arg.get_long_help().cloned();
    let short = beginning(&help, &[". "]);
    arg.long_help(long.unwrap_or(help)).help(short)
}

/// Returns the text up to the first of these ends outside of brackets, with its default.
fn beginning(text: &StyledStr, ends: &[&str]) -> String {
    let text = text.to_string();
    let is_whole = |at: &usize| {
        let before = &text[..*at];
        [('(', ')'), ('[', ']')]
            .iter()
            .all(|(open, close)| before.matches(*open).count() == before.matches(*close).count())
    };
    let found = |end: &&str| text.match_indices(*end).map(|(at, _)| at).find(is_whole);
    let end = ends.iter().filter_map(found).min();
    let Some((short, rest)) = end.map(|end| text.split_at(end)) else {
        return text;
    };
    let default = rest.find("[default").map(|at| &rest[at..]);
    let default = default.and_then(|rest| rest.find(']').map(|end| &rest[..=end]));
    match default {
        Some(default) => format!("{short} {default}"),
        None => short.to_owned(),
    }
}

/// Returns the examples of a command; a command with subcommands has those of the first ones.
fn examples(path: &[&str]) -> String {
    let found = lines().filter(|(_, words)| !path.is_empty() && words.starts_with(path));
    let mut found: Vec<_> = found.collect();
    let own = |words: &[&str]| words.len() == path.len();
    if found.iter().any(|(_, words)| own(words)) {
        found.retain(|(_, words)| own(words));
    }
    // Of different commands, if there are several.
    let mut seen = Vec::new();
    let (first, others): (Vec<_>, Vec<_>) = found.into_iter().partition(|(_, words)| {
        let is_new = !seen.contains(words);
        seen.push(words.clone());
        is_new
    });
    let chosen = first.into_iter().chain(others).take(EXAMPLES);
    let chosen: Vec<_> = chosen.map(|(line, _)| format!("\n  {line}")).collect();
    match chosen.is_empty() {
        true => String::new(),
        false => format!("Examples:{}", chosen.concat()),
    }
}

/// Returns each example with the names of its commands, as they are parsed.
fn lines() -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    LINES_OF_EXAMPLES.lines().filter_map(|line| {
        let (command, example) = line.split_once('|')?;
        Some((example.trim(), command.split_whitespace().collect()))
    })
}

#[cfg(test)]
mod tests;
