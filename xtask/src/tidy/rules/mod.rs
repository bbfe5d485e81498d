//! One rule in each file.

mod architecture;
mod conflicts;
mod contracts;
mod cycles;
mod declared;
mod durations;
mod features;
mod headers;
mod keys;
mod layers;
mod links;
mod lua;
mod places;
mod redis;
mod scripts;
mod sizes;
mod sleeps;
mod words;

use super::Finding;
use super::tree::Tree;

type Rule = fn(&Tree) -> Vec<Finding>;

const RULES: &[Rule] = &[
    architecture::check,
    conflicts::check,
    contracts::check,
    cycles::check,
    declared::check,
    durations::check,
    features::check,
    headers::check,
    keys::check,
    layers::check,
    links::check,
    lua::check,
    places::check,
    redis::check,
    scripts::check,
    sizes::check,
    sleeps::check,
    words::check,
];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    RULES.iter().flat_map(|rule| rule(tree)).collect()
}

/// Returns further output of a run, beside its findings.
pub(super) fn summary(tree: &Tree) -> String {
    scripts::longest(tree)
}

fn finding(path: &str, line: usize, what: impl Into<String>, remedy: &'static str) -> Finding {
    Finding {
        path: path.to_owned(),
        line,
        what: what.into(),
        remedy,
    }
}

/// Returns whether `word` is in `code` without a letter, digit or underscore before it.
fn has_word(code: &str, word: &str) -> bool {
    code.match_indices(word)
        .any(|(at, _)| !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_'))
}

/// Findings as `path:line`, for the tests of the rules.
#[cfg(test)]
fn places_of(rule: Rule, files: &[(&str, &str)]) -> Vec<String> {
    rule(&Tree::of(files))
        .iter()
        .map(|it| format!("{}:{}", it.path, it.line))
        .collect()
}
