//! Tests of the help of every command.

use std::any::TypeId;
use std::time::Duration;

use console::measure_text_width;

use super::*;
use crate::cli;

/// Lines of a noun's short help besides its commands.
const BESIDE_COMMANDS: usize = 15;

/// Returns the paths of all commands below one, without the short forms and hints.
fn paths(command: &Command, path: &[String], found: &mut Vec<Vec<String>>) {
    found.push(path.to_vec());
    let shown = |below: &&Command| !below.is_hide_set() || below.get_name().starts_with("bananas");
    for below in command.get_subcommands().filter(shown) {
        paths(
            below,
            &[path, &[below.get_name().to_owned()]].concat(),
            found,
        );
    }
}

fn all() -> Vec<Vec<String>> {
    let mut found = Vec::new();
    paths(&cli::tree(), &[], &mut found);
    found
}

/// Splits a command line as a shell does, with single quotes only.
fn split(line: &str) -> Vec<OsString> {
    let mut words = vec![String::new()];
    let (mut quoted, mut is_new) = (false, false);
    for c in line.chars() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => is_new = true,
            _ => {
                if std::mem::take(&mut is_new) {
                    words.push(String::new());
                }
                words.last_mut().unwrap().push(c);
            }
        }
    }
    words.into_iter().map(OsString::from).collect()
}

/// Returns the help that the words get, in a terminal of 80 columns.
fn help_of(path: &[String], option: &str) -> String {
    let words = ["meshwork"]
        .into_iter()
        .chain(path.iter().map(String::as_str))
        .chain([option]);
    let line = CommandLine::read(words.map(OsString::from).collect());
    let command = prepared(cli::tree(), &line).term_width(COLUMNS);
    let error = command.try_get_matches_from(&line.words).unwrap_err();
    error.render().to_string()
}

#[test]
fn the_short_help_fits_the_screen() {
    for path in all() {
        let (text, name) = (help_of(&path, "-h"), path.join(" "));
        let below = text.lines().skip_while(|line| *line != "Commands:").skip(1);
        let below = below.take_while(|line| !line.is_empty()).count();
        let most = LINES.max(below + BESIDE_COMMANDS);
        let height = text.trim_end().lines().count();
        assert!(height <= most, "{name}: {height} lines, {most} fit\n{text}");
        for line in text.lines().filter(|line| !line.starts_with("Usage")) {
            assert!(measure_text_width(line) <= COLUMNS, "{name}: {line}");
        }
    }
}

#[test]
fn options_of_all_commands_are_in_the_help_of_meshwork_only() {
    for path in all() {
        for option in ["-h", "--help"] {
            let text = help_of(&path, option);
            let has = |name: &str| text.contains(&format!("      --{name} <"));
            let is_root = path.is_empty();
            for name in [
                "redis",
                "connect-timeout",
                "tls-ca",
                "namespace",
                "log-format",
            ] {
                assert_eq!(
                    has(name),
                    is_root && option == "--help",
                    "{path:?} {option} {name}: {text}"
                );
            }
            assert_eq!(
                text.contains("`meshwork --help`"),
                !is_root,
                "{path:?}: {text}"
            );
        }
    }
}

#[test]
fn every_command_has_two_examples_that_parse() {
    for (line, command) in lines() {
        assert!(measure_text_width(line) + 2 <= COLUMNS, "{line}");
        let read = CommandLine::read(split(line));
        let matches = cli::tree().try_get_matches_from(&read.words);
        let matches = matches.unwrap_or_else(|error| panic!("{line}: {error}"));
        let (mut below, mut path) = (&matches, Vec::new());
        while let Some((name, matches)) = below.subcommand() {
            path.push(name);
            below = matches;
        }
        assert_eq!(path, command, "{line}");
    }
    for path in all() {
        let text = help_of(&path, "--help");
        let shown = text
            .lines()
            .skip_while(|line| *line != "Examples:")
            .filter(|line| line.starts_with("  meshwork "))
            .count();
        let wanted = if path.is_empty() { 0 } else { EXAMPLES };
        assert_eq!(shown, wanted, "{path:?}: {text}");
    }
}

#[test]
fn a_duration_has_one_name() {
    for path in all() {
        let root = cli::tree();
        let command = path
            .iter()
            .fold(&root, |of, name| of.find_subcommand(name).unwrap());
        for arg in command.get_arguments() {
            let is_duration = arg.get_value_parser().type_id() == TypeId::of::<Duration>();
            let names = arg.get_value_names().unwrap_or_default();
            let is_named = names.iter().any(|name| name.as_str() == "DURATION");
            assert_eq!(is_duration, is_named, "{path:?}: {}", arg.get_id());
        }
    }
}

#[test]
fn a_beginning_keeps_its_default() {
    let of = |text: &str| beginning(&StyledStr::from(text.to_owned()), &["; ", ". "]);
    assert_eq!(of("Time of a run, in seconds"), "Time of a run, in seconds");
    assert_eq!(
        of("Time; use one value [default: 5s]"),
        "Time [default: 5s]"
    );
    assert_eq!(
        of("Time. Others wait [default: 5s]. Not more"),
        "Time [default: 5s]"
    );
    let whole = "Zone [default: UTC; with --every the local one]";
    assert_eq!(of(&format!("{whole}. Or none")), whole);
}

#[test]
fn the_unit_and_the_container_start_the_same_worker() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |file: &str| std::fs::read_to_string(root.join(file)).unwrap();
    let unit = read("deploy/systemd/meshwork-worker.service");
    let start = unit
        .lines()
        .find_map(|line| line.strip_prefix("ExecStart="));
    let (program, args) = start.unwrap().split_once(' ').unwrap();
    let words = split(&format!("meshwork {args}"));
    cli::tree().try_get_matches_from(words).unwrap();
    let page = read("docs/install.md");
    let container = page.lines().find_map(|line| line.strip_prefix("CMD "));
    let container: Vec<String> = serde_json::from_str(container.unwrap()).unwrap();
    assert_eq!(container.join(" "), args);
    assert!(page.contains(&format!(
        "`sudo install ~/.cargo/bin/meshwork {}/`",
        "/usr/local/bin"
    )));
    assert_eq!(program, "/usr/local/bin/meshwork");
    let unit = read("deploy/systemd/meshwork-supervisor.service");
    let start = unit
        .lines()
        .find_map(|line| line.strip_prefix("ExecStart=/usr/local/bin/"));
    cli::tree()
        .try_get_matches_from(split(start.unwrap()))
        .unwrap();
}

#[test]
fn the_help_has_the_usage_of_its_command_and_no_example_twice() {
    for path in all() {
        let name = ["meshwork"]
            .into_iter()
            .chain(path.iter().map(String::as_str));
        let name = name.collect::<Vec<_>>().join(" ");
        for option in ["-h", "--help"] {
            let text = help_of(&path, option);
            let usage = text.lines().find_map(|line| line.strip_prefix("Usage: "));
            let rest = usage.and_then(|usage| usage.strip_prefix(&name));
            let is_own = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '));
            assert!(is_own, "{name} {option}: {text}");
            let examples = text.lines().filter(|line| line.starts_with("  meshwork "));
            let mut examples: Vec<_> = examples.collect();
            let all = examples.len();
            examples.sort_unstable();
            examples.dedup();
            assert!(
                all == examples.len() && all <= EXAMPLES,
                "{name} {option}: {text}"
            );
        }
    }
}

/// Joins the words of a help that is wrapped.
fn unwrapped(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_short_help_has_whole_sentences() {
    for path in all() {
        let text = help_of(&path, "-h");
        let shown = unwrapped(&text);
        let before = text.split("Examples:").next().unwrap_or_default();
        // The names before the texts, which may name other options.
        let names = before.lines().map(str::trim_start);
        let names = names.filter(|line| line.starts_with('-'));
        let names = names.filter_map(|line| line.split("  ").next());
        let options: Vec<_> = names.flat_map(|line| line.split([' ', '['])).collect();
        let root = cli::tree();
        let command = path
            .iter()
            .fold(&root, |of, name| of.find_subcommand(name).unwrap());
        for arg in command.get_arguments() {
            let is_shown = match arg.get_long() {
                Some(long) => options.contains(&format!("--{long}").as_str()),
                None => arg.is_positional() && !arg.is_hide_set(),
            };
            let full = arg.get_help().map(ToString::to_string).unwrap_or_default();
            let sentence = full.split_once(". ").map_or(&*full, |(first, _)| first);
            assert!(
                !is_shown || shown.contains(&unwrapped(sentence)),
                "{path:?}: {sentence}\n{text}"
            );
        }
        for part in text.split("\n\n").filter(|part| part.contains("  -")) {
            let is_closed = part.matches('(').count() == part.matches(')').count();
            assert!(
                is_closed && part.matches('`').count() % 2 == 0,
                "{path:?}: {part}"
            );
        }
    }
}
