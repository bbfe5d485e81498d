//! `cargo xtask sizes`: numbers of crates, lines of Rust, sizes of binaries and the time of a first build, compared with
//! `xtask/sizes.txt`. A value that grows by more than 3 % needs a new line there, so growth is a decision.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::process::{self, Failure, ask};
use crate::tidy::Tree;
use crate::workspace::Workspace;

/// Timeout of a first build, on a small and busy machine.
const LIMIT: Duration = Duration::from_secs(60 * 60);

/// The record: a value and its name per line.
const RECORD: &str = "xtask/sizes.txt";

/// Growth that needs no new line, in percent.
const ALLOWED: u64 = 3;

/// Arguments of cargo for README's first command, the command and the library.
const SCOPES: [(&str, &[&str]); 4] = [
    (
        "crates of README's first command",
        &["-p", "meshwork-cli", "--no-default-features"],
    ),
    ("crates of the command", &["-p", "meshwork-cli"]),
    ("crates of the library", &["-p", "meshwork"]),
    (
        "crates of the library without features",
        &["-p", "meshwork", "--no-default-features"],
    ),
];

/// Steps beside the comparison.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Options {
    /// Also build README's first command and the released one in an empty folder, which takes up to half an hour
    #[arg(long)]
    build: bool,
    /// Write xtask/sizes.txt instead of comparing
    #[arg(long)]
    write: bool,
}

type Sizes = Vec<(String, u64)>;

pub(crate) fn sizes(workspace: &Workspace, options: &Options) -> Result<(), Failure> {
    let mut sizes: Sizes = Vec::new();
    for (name, arguments) in SCOPES {
        sizes.push((name.to_owned(), crates(workspace, arguments)?));
    }
    sizes.extend(lines(workspace)?);
    sizes.extend(debug_binary(workspace));
    if options.build {
        sizes.extend(builds(workspace)?);
    }
    for (name, value) in &sizes {
        eprintln!("{value:>12}  {name}");
    }
    let path = workspace.root.join(RECORD);
    let record = parse(&fs::read_to_string(&path).unwrap_or_default())?;
    if options.write {
        let text = written(&record, &sizes);
        return fs::write(&path, text).map_err(|error| fault(&path, &error));
    }
    match grown(&record, &sizes) {
        grown if grown.is_empty() => Ok(()),
        grown => Err(Failure::new(format!(
            "{}\n`cargo xtask sizes --write` records it; say the reason in the commit",
            grown.join("\n")
        ))),
    }
}

/// Counts the crates that a build with these arguments of `cargo tree` compiles.
pub(crate) fn crates(workspace: &Workspace, arguments: &[&str]) -> Result<u64, Failure> {
    let mut tree = workspace.cargo(&["tree", "--edges", "normal,build", "--prefix", "none"]);
    tree.args(["--format", "{p}"]).args(arguments);
    let tree = ask(&mut tree, LIMIT)?;
    let names = tree.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        Some((words.next()?, words.next()?))
    });
    Ok(names.collect::<BTreeSet<_>>().len() as u64)
}

/// Counts the lines of Rust and Lua of each crate, without tests in files of their own.
fn lines(workspace: &Workspace) -> Result<Sizes, Failure> {
    let mut lines = BTreeMap::new();
    for file in Tree::read(workspace)?.files() {
        let is_code = file.is(".rs") || file.is(".lua");
        let is_test = file.path.contains("/tests/") || file.is("/tests.rs");
        let is_product = file.path.split('/').nth(2) == Some("src") && is_code && !is_test;
        if let (true, Some(name)) = (is_product, file.krate()) {
            *lines.entry(format!("lines of {name}")).or_default() += file.lines().count() as u64;
        }
    }
    Ok(lines.into_iter().collect())
}

/// Returns the size of the built command, which is that of the tests. Incremental builds are larger by chance.
fn debug_binary(workspace: &Workspace) -> Option<(String, u64)> {
    let whole = std::env::var("CARGO_INCREMENTAL").is_ok_and(|value| value == "0");
    let size = size_of(&workspace.built().join("meshwork")).filter(|_| whole)?;
    Some(("bytes of the tested command".to_owned(), size))
}

fn size_of(path: &Path) -> Option<u64> {
    Some(fs::metadata(path).ok()?.len())
}

/// Builds README's first command and the released one from an empty folder.
fn builds(workspace: &Workspace) -> Result<Sizes, Failure> {
    let mut sizes = Vec::new();
    let folder = workspace.target("sizes");
    for (name, profile, features) in [
        (
            "README's first command",
            "debug",
            &["--no-default-features"][..],
        ),
        ("the released command", "release", &["--release"]),
    ] {
        fs::remove_dir_all(&folder).ok();
        let mut build = workspace.cargo(&["build", "-p", "meshwork-cli"]);
        build.args(features).env("CARGO_TARGET_DIR", &folder);
        eprintln!("{name}: built in {}", process::timed(&mut build, LIMIT)?);
        let binary = folder.join(profile).join("meshwork");
        sizes.extend(size_of(&binary).map(|size| (format!("bytes of {name}"), size)));
    }
    fs::remove_dir_all(&folder).ok();
    Ok(sizes)
}

fn parse(text: &str) -> Result<Sizes, Failure> {
    let line = |line: &str| {
        let (value, name) = line.trim().split_once(' ')?;
        Some((name.trim().to_owned(), value.parse().ok()?))
    };
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let bad = |text: &str| Failure::new(format!("{RECORD}: `{text}` is no value and name"));
    lines
        .map(|text| line(text).ok_or_else(|| bad(text)))
        .collect()
}

/// Returns the text of the record. Values that were not measured stay.
fn written(record: &Sizes, sizes: &Sizes) -> String {
    let old = record
        .iter()
        .filter(|(name, _)| value_of(sizes, name).is_none());
    let mut text =
        String::from("# Sizes, compared by `cargo xtask sizes`. A value may grow by 3 %.\n");
    for (name, value) in sizes.iter().chain(old) {
        writeln!(text, "{value:>12}  {name}").ok();
    }
    text
}

fn value_of(sizes: &Sizes, name: &str) -> Option<u64> {
    sizes
        .iter()
        .find(|(it, _)| it == name)
        .map(|(_, value)| *value)
}

/// Returns a line for each value that grew too much, or has no record.
fn grown(record: &Sizes, sizes: &Sizes) -> Vec<String> {
    let line = |(name, now): &(String, u64)| match value_of(record, name) {
        Some(before) if *now * 100 <= before * (100 + ALLOWED) => None,
        Some(before) => Some(format!("{name}: {now}, and {before} in {RECORD}")),
        None => Some(format!("{name}: {now}, and no line in {RECORD}")),
    };
    sizes.iter().filter_map(line).collect()
}

fn fault(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(pairs: &[(&str, u64)]) -> Sizes {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), *value))
            .collect()
    }

    #[test]
    fn growth_beyond_the_limit_is_named() {
        let record = parse("# head\n  100  a b\n 1000  c\n").unwrap();
        assert_eq!(record, sizes(&[("a b", 100), ("c", 1000)]));
        assert!(grown(&record, &sizes(&[("a b", 103), ("c", 5)])).is_empty());
        let named = grown(&record, &sizes(&[("a b", 104), ("d", 1)]));
        assert_eq!(named.len(), 2, "{named:?}");
        assert!(named[0].starts_with("a b: 104, and 100 in"), "{named:?}");
        assert!(parse("a 1\n").is_err());
    }

    #[test]
    fn values_that_were_not_measured_stay_recorded() {
        let text = written(&sizes(&[("a", 1), ("b", 2)]), &sizes(&[("b", 3)]));
        assert_eq!(parse(&text).unwrap(), sizes(&[("b", 3), ("a", 1)]));
    }
}
