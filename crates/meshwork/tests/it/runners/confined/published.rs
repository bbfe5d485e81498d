//! The table of attempts in docs/security.md.

use std::fmt::Write;
use std::path::Path;

use super::escape::{Attempt, Succeeds, TABLE, attempt};

/// Variable with which the table is written instead of compared.
const WRITE: &str = "MESHWORK_WRITE_DOCS";
const START: &str = "<!-- attempts: written from the tests by MESHWORK_WRITE_DOCS=1 -->\n";
const END: &str = "<!-- end of attempts -->";
/// Least number of attempts, in all languages together.
const LEAST: usize = 200;

/// Returns the attempts that succeed somewhere, by name.
fn succeeding(attempts: &[Attempt], where_: Succeeds) -> String {
    let names = attempts.iter().filter(|one| one.succeeds == where_);
    let names: Vec<String> = names.map(|one| format!("`{}`", one.name)).collect();
    names.join(", ")
}

/// Returns the cell of what is not held.
fn gaps(attempts: &[Attempt], why: Option<&str>) -> String {
    let mut parts: Vec<String> = Vec::new();
    for (where_, words) in [
        (Succeeds::Always, "in all profiles"),
        (Succeeds::InStandard, "in `standard`"),
        (
            Succeeds::WithoutNamespaces,
            "in `standard` without namespaces",
        ),
    ] {
        match succeeding(attempts, where_) {
            names if names.is_empty() => {}
            names => parts.push(format!("{words}: {names}")),
        }
    }
    parts.extend(why.map(str::to_owned));
    parts.join(". ")
}

/// Returns the table, and the number of attempts.
fn table() -> (String, usize) {
    let mut text = "| feature of the kernel | attempts in C, Python, shell | held by | not held |\n|---|---|---|---|\n".to_owned();
    let mut all = [0; 3];
    for section in TABLE.split("\n## ").skip(1) {
        let (feature, rest) = section.split_once('\n').unwrap();
        let line = |name| rest.lines().find_map(|line| line.strip_prefix(name));
        let attempts: Vec<Attempt> = rest.lines().filter_map(attempt).collect();
        let counts = ["c", "py", "sh"].map(|language| {
            let of = attempts
                .iter()
                .filter(|one| one.languages.contains(&language));
            of.count()
        });
        for (sum, count) in all.iter_mut().zip(counts) {
            *sum += count;
        }
        let [c, python, shell] = counts;
        let (held, gaps) = (line("held: ").unwrap(), gaps(&attempts, line("gap: ")));
        writeln!(
            text,
            "| {feature} | {c}, {python}, {shell} | {held} | {gaps} |"
        )
        .unwrap();
    }
    let [c, python, shell] = all;
    writeln!(text, "| all | {c}, {python}, {shell} | | |").unwrap();
    (text, all.iter().sum())
}

#[test]
fn the_table_of_attempts_is_published() {
    let (table, count) = table();
    assert!(count >= LEAST, "{count} attempts");
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/security.md");
    let text = std::fs::read_to_string(&page).unwrap();
    let (before, rest) = text.split_once(START).unwrap();
    let (published, after) = rest.split_once(END).unwrap();
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&page, [before, START, &table, END, after].concat()).unwrap();
    } else {
        assert_eq!(published, table, "{WRITE}=1 writes it");
    }
}
