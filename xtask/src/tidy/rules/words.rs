//! Plain technical English: finds the words that docs/glossary.md forbids, and comments that begin with a question.

use super::super::tree::File;
use super::{Finding, Tree, finding};

/// Page with the terms. The last column of its tables has the words that a term replaces.
const GLOSSARY: &str = "docs/glossary.md";

/// First words of sentences whose subject is a question.
const QUESTIONS: [&str; 6] = ["What", "Who", "Whether", "How", "Where", "When"];

/// Longest line of the changelog, in characters.
const MAX_CHANGE: usize = 160;

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    let forbidden = forbidden(tree);
    for file in tree.files().filter(|file| is_read(file)) {
        for (number, line) in file.lines() {
            let small = line.to_lowercase();
            if let Some(word) = forbidden.iter().find(|it| it.is_in(line, &small)) {
                let what = format!("the word `{}`", word.text);
                let remedy = "say it with the term of docs/glossary.md";
                found.push(finding(&file.path, number, what, remedy));
            }
            if begins_with_question(line) {
                let what = "a comment that begins with a question";
                let remedy = "begin with the name of the thing or a verb";
                found.push(finding(&file.path, number, what, remedy));
            }
            if names_origin(line) {
                let what = "the numbering of the documents of origin";
                found.push(finding(&file.path, number, what, "name the system instead"));
            }
        }
    }
    found.extend(long_changes(tree));
    found
}

/// A word or phrase that the glossary forbids.
struct Forbidden {
    text: String,
    /// The text and the identifier `in_hand`, in small letters.
    small: [String; 2],
    /// The identifier `InHand`.
    camel: String,
}

impl Forbidden {
    fn new(text: &str) -> Self {
        let small = text.to_lowercase();
        let capital = |word: &str| match word.split_at_checked(1) {
            Some((first, rest)) => first.to_uppercase() + rest,
            None => String::new(),
        };
        Self {
            text: text.to_owned(),
            small: [small.replace(' ', "_"), small],
            camel: text.split(' ').map(capital).collect(),
        }
    }

    /// Returns true if the line has the word in any case, or an identifier that is the word.
    fn is_in(&self, line: &str, small: &str) -> bool {
        self.small.iter().any(|word| has_whole(small, word)) || has_whole(line, &self.camel)
    }
}

/// Returns the words in backticks of the third column of the glossary's tables.
fn forbidden(tree: &Tree) -> Vec<Forbidden> {
    let rows = tree.file(GLOSSARY).into_iter().flat_map(File::lines);
    let column = rows.filter_map(|(_, line)| {
        let mut cells = line.strip_prefix('|')?.split('|');
        cells.nth(2).filter(|_| cells.next().is_some())
    });
    let words = column.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    words.map(Forbidden::new).collect()
}

/// Files whose language is checked: sources, docs; not data of tests, nor this rule and the list of terms.
fn is_read(file: &File) -> bool {
    let ending = [".rs", ".lua", ".md", ".py"]
        .iter()
        .any(|ending| file.is(ending));
    ending && file.path != GLOSSARY && !file.path.ends_with("rules/words.rs")
}

/// Returns true if the word is in the text, not as a part of a longer word or identifier.
fn has_whole(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        let inside = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        !inside(before) && !inside(after)
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
    fn forbidden_words_and_questions_are_found() {
        let glossary = "| term | meaning | forbidden |\n|---|---|---|\n| event | A line `x`. | `told` |\n\
                        | job | A | B |\n| in flight | Claimed. | `in hand`, `Unfit` |\n| a | `lot` | |\n";
        let files = [
            ("docs/glossary.md", glossary),
            (
                "crates/a/src/a.rs",
                "//! Renews leases.\n// It is Told so.\nlet in_hand = 1;\nstruct InHand;\nunfit();\n",
            ),
            ("crates/b/src/b.rs", "/// What is renewed.\n"),
            (
                "crates/c/src/c.rs",
                "/// Whatever, a lot of x.\nlet folder = retold;\nfn it_is_told() {}\n// The seeds 5 and 12.\n",
            ),
            ("docs/d.md", "As in seed 3.\n"),
        ];
        let found = [
            "crates/a/src/a.rs:2",
            "crates/a/src/a.rs:3",
            "crates/a/src/a.rs:4",
            "crates/a/src/a.rs:5",
            "crates/b/src/b.rs:1",
            "docs/d.md:1",
        ];
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
