//! Plain technical English: counts the phrases that docs/glossary.md replaces, by folder. The counts only fall.

use std::collections::BTreeMap;

use super::super::tree::File;
use super::{Finding, Tree, finding};

/// Words with several private meanings; the glossary has a term for each.
const PRIVATE: [&str; 13] = [
    "told",
    "hands",
    "asked",
    "wish",
    "wishes",
    "lot",
    "ear",
    "appetite",
    "in hand",
    "of ours",
    "of theirs",
    "of another make",
    "stands among",
];

/// First words of sentences whose subject is a question.
const QUESTIONS: [&str; 6] = ["What", "Who", "Whether", "How", "Where", "When"];

/// Longest line of the changelog, in characters.
const MAX_CHANGE: usize = 160;

/// Greatest number of lines with private words and of comments that begin with a question, by folder. Lower a limit
/// when lines are rewritten; a folder that is not named has none.
const LIMITS: &[(&str, usize, usize)] = &[
    ("crates/broker", 2, 0),
    ("crates/cli", 6, 0),
    ("crates/conformance", 1, 0),
    ("crates/embedded", 0, 0),
    ("crates/fuzz", 0, 0),
    ("crates/meshwork", 3, 0),
    ("crates/model", 4, 0),
    ("crates/scenarios", 0, 0),
    ("crates/test-servers", 0, 0),
    ("xtask", 0, 0),
];

/// Lines of one folder that break the rule.
#[derive(Default)]
struct Count<'a> {
    private: Vec<(&'a str, usize)>,
    questions: Vec<(&'a str, usize)>,
}

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut folders: BTreeMap<String, Count<'_>> = BTreeMap::new();
    for file in tree.files().filter(|file| is_read(file)) {
        let count = folders.entry(folder(&file.path)).or_default();
        for (number, line) in file.lines() {
            if has_private_word(line) {
                count.private.push((&file.path, number));
            }
            if begins_with_question(line) {
                count.questions.push((&file.path, number));
            }
            if names_origin(line) {
                let what = "the numbering of the documents of origin";
                found.push(finding(&file.path, number, what, "name the system instead"));
            }
        }
    }
    for (folder, count) in &folders {
        let (private, questions) = limits(folder);
        let remedy = "say it with the terms of docs/glossary.md";
        over(
            &mut found,
            &count.private,
            private,
            ("private words", remedy),
        );
        let remedy = "begin with the name of the thing or a verb";
        over(
            &mut found,
            &count.questions,
            questions,
            ("comments that begin with a question", remedy),
        );
    }
    found.extend(long_changes(tree));
    found
}

/// Files whose language is checked: sources, docs; not data of tests, nor this rule and the list of terms.
fn is_read(file: &File) -> bool {
    let ending = [".rs", ".lua", ".md"].iter().any(|ending| file.is(ending));
    let own = file.path.ends_with("rules/words.rs") || file.path == "docs/glossary.md";
    ending && !own
}

/// The crate's folder, `docs` or `xtask`; the empty text for files of the root.
fn folder(path: &str) -> String {
    let mut parts = path.split('/');
    match (parts.next(), parts.next(), parts.next()) {
        (Some("crates"), Some(name), _) => format!("crates/{name}"),
        (Some(first), Some(_), _) => first.to_owned(),
        _ => String::new(),
    }
}

fn limits(folder: &str) -> (usize, usize) {
    let known = LIMITS.iter().find(|(name, ..)| *name == folder);
    known.map_or((0, 0), |(_, private, questions)| (*private, *questions))
}

/// Reports the last of the lines where there are more than `limit`.
fn over(
    found: &mut Vec<Finding>,
    lines: &[(&str, usize)],
    limit: usize,
    (what, remedy): (&str, &'static str),
) {
    let Some((path, line)) = lines.last().filter(|_| lines.len() > limit) else {
        return;
    };
    let what = format!(
        "{} {what} in this folder, and {limit} are the limit",
        lines.len()
    );
    found.push(finding(path, *line, what, remedy));
}

fn has_private_word(line: &str) -> bool {
    PRIVATE.iter().any(|word| {
        line.match_indices(word).any(|(at, _)| {
            let before = line[..at].chars().next_back();
            let after = line[at + word.len()..].chars().next();
            let inside = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
            !inside(before) && !inside(after)
        })
    })
}

/// Doc comments of Rust and comments at the top of Lua files.
fn begins_with_question(line: &str) -> bool {
    let line = line.trim_start();
    let text = ["//!", "///", "--"]
        .iter()
        .find_map(|mark| line.strip_prefix(mark));
    let first = text.and_then(|text| text.split_whitespace().next());
    first.is_some_and(|first| QUESTIONS.contains(&first))
}

/// `seed 0` to `seed 4`; the seeds of random generators have other numbers or stand in code.
fn names_origin(line: &str) -> bool {
    let comment = line.contains("//") || line.contains("--") || !line.contains(';');
    comment
        && line
            .to_lowercase()
            .match_indices("seed ")
            .any(|(at, word)| {
                let mut rest = line[at + word.len()..].chars();
                let digit = rest.next().is_some_and(|c| ('0'..='4').contains(&c));
                digit && !rest.next().is_some_and(|c| c.is_ascii_digit())
            })
}

fn long_changes(tree: &Tree) -> Vec<Finding> {
    let Some(changes) = tree.file("CHANGELOG.md") else {
        return Vec::new();
    };
    let long = changes
        .lines()
        .filter(|(_, line)| line.chars().count() > MAX_CHANGE);
    long.map(|(number, _)| {
        let what = format!("a line of more than {MAX_CHANGE} characters");
        finding(
            "CHANGELOG.md",
            number,
            what,
            "say what a user can do, and link to the docs",
        )
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::super::places_of;
    use super::*;

    #[test]
    fn private_words_and_questions_are_found() {
        let files = [
            (
                "crates/a/src/a.rs",
                "//! Renews leases.\n// It is told so.\n",
            ),
            ("crates/b/src/b.rs", "/// What is renewed.\n"),
            (
                "crates/c/src/c.rs",
                "/// Whatever.\nlet folder = retold;\n// The seeds 5 and 12.\n",
            ),
            ("docs/d.md", "As in seed 3.\n"),
        ];
        let found = ["docs/d.md:1", "crates/a/src/a.rs:2", "crates/b/src/b.rs:1"];
        assert_eq!(places_of(check, &files), found);
    }

    #[test]
    fn a_line_of_the_changelog_is_short() {
        let long = format!("- {}\n", "x".repeat(MAX_CHANGE));
        assert_eq!(
            places_of(check, &[("CHANGELOG.md", &long)]),
            ["CHANGELOG.md:1"]
        );
    }
}
