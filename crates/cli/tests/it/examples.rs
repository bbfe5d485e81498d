//! The scripts in `examples/`, run by the command over this repository's own sources, against the same
//! figures worked out here.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use meshwork_test_servers::servers::{Tool, need};
use serde_json::{Value, json};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .unwrap()
}

/// All files below `folder` that end like this.
fn files(folder: &str, endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path
                .extension()
                .is_some_and(|e| endings.iter().any(|ending| e == *ending))
            {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Runs an example over these files and returns what it says of each.
fn run(example: &str, files: &[PathBuf]) -> BTreeMap<PathBuf, Value> {
    let data = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_meshwork"));
    command
        .env_remove("REDIS_URL")
        .env("MESHWORK_DATA", data.path());
    command
        .arg("run")
        .arg(root().join("examples").join(example))
        .args(["--json", "--each"]);
    let output = command.args(files).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let stdout = String::from_utf8(output.stdout).unwrap();
    stdout.lines().map(of_line).collect()
}

fn of_line(line: &str) -> (PathBuf, Value) {
    let line: Value = serde_json::from_str(line).unwrap();
    assert_eq!(line["status"], "finished", "{line}");
    (
        line["file"].as_str().unwrap().into(),
        line["output"].clone(),
    )
}

/// Expected output of `wordcount.rhai`.
fn counted(text: &str) -> Value {
    let lower = text.to_lowercase();
    let mark = |c: char| c.is_ascii_punctuation() && c != '_';
    let words: Vec<_> = lower
        .split(|c: char| c.is_whitespace() || mark(c))
        .filter(|w| !w.is_empty())
        .collect();
    let mut counts = BTreeMap::new();
    for word in &words {
        *counts.entry(*word).or_insert(0) += 1;
    }
    let mut top: Vec<_> = counts.into_iter().collect();
    top.sort_by_key(|(_, count)| -count);
    let top: Vec<_> = top
        .iter()
        .take(5)
        .map(|(word, count)| format!("{word} {count}"))
        .collect();
    json!({
        "lines": text.split_terminator('\n').count(),
        "words": words.len(),
        "chars": text.chars().count(),
        "bytes": text.len(),
        "longest": text.split('\n').map(|line| line.chars().count()).max(),
        "top": top.join(", "),
    })
}

#[test]
fn wordcount_counts_the_words_of_this_repository() {
    let mut files = files("crates", &["rs", "md", "py", "lua"]);
    files.extend(["README.md", "ARCHITECTURE.md", "Cargo.lock"].map(|name| root().join(name)));
    assert!(files.len() > 100);
    let said = run("wordcount.rhai", &files);
    assert_eq!(said.len(), files.len());
    for (path, said) in said {
        assert_eq!(
            said,
            counted(&fs::read_to_string(&path).unwrap()),
            "{}",
            path.display()
        );
    }
}

#[test]
fn wordcount_counts_odd_texts() {
    let folder = tempfile::tempdir().unwrap();
    let texts = [
        "",
        "\n",
        "a",
        "a\n",
        "\n\nb a B\na",
        "Größe größe\u{a0}x\t_y z_\r\n",
        "... !",
    ];
    let files: Vec<_> = (0..texts.len())
        .map(|n| folder.path().join(format!("{n}.txt")))
        .collect();
    for (file, text) in files.iter().zip(texts) {
        fs::write(file, text).unwrap();
    }
    let said = run("wordcount.rhai", &files);
    for (file, text) in files.iter().zip(texts) {
        assert_eq!(said[file], counted(text), "{text:?}");
    }
}

#[test]
fn comments_divides_the_sources_of_this_repository() {
    if need(Tool::Python).is_none() {
        return;
    }
    let files = files("crates/meshwork/src", &["rs"]);
    let said = run("comments.py", &files);
    assert_eq!(said.len(), files.len());
    for (path, said) in said {
        let text = fs::read_to_string(&path).unwrap();
        let number = |name: &str| said[name].as_u64().unwrap();
        let blank = text.lines().filter(|line| line.trim().is_empty()).count();
        let comments = text
            .lines()
            .filter(|line| line.trim().starts_with("//"))
            .count();
        assert_eq!(
            (number("blank"), number("comment")),
            (blank as u64, comments as u64),
            "{}",
            path.display()
        );
        assert_eq!(number("lines"), text.lines().count() as u64);
        assert_eq!(
            number("lines"),
            ["code", "test", "blank", "comment"]
                .map(number)
                .iter()
                .sum::<u64>()
        );
        assert_eq!(
            number("test") > 0,
            ["", "pub(crate) "]
                .iter()
                .any(|seen| text.contains(&format!("#[cfg(test)]\n{seen}mod tests {{"))),
            "{}",
            path.display()
        );
        // The lints see to that, tests apart; and there is hardly a file without a function.
        assert!(number("longest_fn") <= 100);
        assert_eq!(
            number("longest_fn") > 0,
            text.contains("fn ") && text.contains("}\n"),
            "{}",
            path.display()
        );
    }
}

/// The first command of README.md, in the root of the repository.
#[test]
fn the_first_command_reports_the_lines_of_this_repository() {
    if need(Tool::Python).is_none() {
        return;
    }
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let command = readme.lines().find_map(|line| line.strip_prefix("$ "));
    let arguments = command
        .unwrap()
        .strip_prefix("cargo run --no-default-features -- ");
    let arguments = arguments.expect("the first command runs the command");
    let (home, binary) = (tempfile::tempdir().unwrap(), env!("CARGO_BIN_EXE_meshwork"));
    let chart = home.path().join("lines.svg");
    let mut shell = Command::new("/bin/sh");
    shell.env_remove("REDIS_URL").env_remove("XDG_CONFIG_HOME");
    shell
        .env("HOME", home.path())
        .env("MESHWORK_DATA", home.path().join("data"));
    // `sh` sets PWD to its folder.
    let line = format!("exec {binary} {arguments} --set svg=$CHART");
    let up = "../".repeat(root().components().count());
    shell.env("CHART", format!("{up}{}", chart.display()));
    let done = shell
        .current_dir(root())
        .args(["-c", &line])
        .output()
        .unwrap();
    let (stdout, stderr) = (
        String::from_utf8(done.stdout).unwrap(),
        String::from_utf8_lossy(&done.stderr),
    );
    assert!(done.status.success(), "{stderr}");
    let lines: Vec<&str> = stdout.lines().collect();
    assert_eq!(
        lines[0].split_whitespace().collect::<Vec<_>>(),
        ["language", "files", "lines"]
    );
    for (name, ending) in [("Rust", "rs"), ("Lua", "lua")] {
        let all = ["crates", "peers", "xtask"]
            .map(|folder| files(folder, &[ending]))
            .concat();
        let count = |path: &PathBuf| {
            fs::read(path)
                .unwrap()
                .iter()
                .filter(|byte| **byte == b'\n')
                .count()
        };
        let row = lines.iter().find(|line| line.starts_with(name)).unwrap();
        let row: Vec<&str> = row.split_whitespace().collect();
        let expected = [all.len(), all.iter().map(count).sum::<usize>()];
        assert_eq!(
            row[1..3],
            expected.map(|number| number.to_string()),
            "{stdout}"
        );
    }
    assert!(fs::read_to_string(chart).unwrap().contains(">Rust</text>"));
    assert!(stderr.contains("items finished"), "{stderr}");
}
