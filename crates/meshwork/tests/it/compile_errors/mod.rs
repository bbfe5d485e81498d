//! Errors of the compiler for wrong uses of typed jobs, as `errors.txt` records them. Each file in `cases` has one fault.
//! rustc compiles them against the library of this test: nothing is built for it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Compiler whose words are recorded; others only have to refuse each case.
const RECORDED_WITH: &str = "rustc 1.95.";
/// Writes the errors instead of comparing them.
const WRITE: &str = "MESHWORK_WRITE_DOCS";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/compile_errors")
}

fn rustc() -> Command {
    Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
}

/// Returns the folder of built libraries, and the newest of `meshwork`: cargo built it of the present source.
fn library() -> (PathBuf, PathBuf) {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().unwrap().to_owned();
    let entries = fs::read_dir(&folder).unwrap();
    let newest = entries
        .filter_map(|entry| {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().ok()?;
            let is_library = name.starts_with("libmeshwork-") && name.ends_with(".rlib");
            is_library.then(|| (entry.metadata().unwrap().modified().unwrap(), entry.path()))
        })
        .max();
    (folder, newest.expect("the library is built").1)
}

/// Compiles a case, and returns the errors; empty if there are none.
fn errors(case: &Path, output: &Path) -> String {
    let (libraries, library) = library();
    let mut rustc = rustc();
    rustc.args(["--edition=2024", "--crate-type=bin", "--emit=metadata"]);
    rustc.args(["--error-format=json", "--allow=unused"]);
    rustc.arg("-o").arg(output).arg(case);
    rustc.arg(format!("--extern=meshwork={}", library.display()));
    rustc.arg(format!("-Ldependency={}", libraries.display()));
    let compiled = rustc.output().unwrap();
    let messages = String::from_utf8(compiled.stderr).unwrap();
    let errors: String = messages.lines().map(error).collect();
    // The path depends on the names that the crates in sight have.
    errors.replace("std::result::Result", "Result")
}

/// Formats an error: message, place with source and label, and the notes that name no other file.
fn error(message: &str) -> String {
    let message: Value = serde_json::from_str(message).unwrap();
    let spans = message["spans"].as_array().unwrap();
    // "aborting due to" and "for more information" have no place.
    let Some(span) = spans.iter().find(|span| span["is_primary"] == true) else {
        return String::new();
    };
    let mut text = format!("error: {}\n", first_line(&message["message"]));
    let source = span["text"][0]["text"].as_str().unwrap().trim();
    text += &format!("  {}: {source}\n", span["line_start"]);
    if let Some(label) = span["label"].as_str() {
        text += &format!("  = {label}\n");
    }
    for child in message["children"].as_array().unwrap() {
        if child["spans"].as_array().unwrap().is_empty() {
            let level = child["level"].as_str().unwrap();
            text += &format!("  {level}: {}\n", first_line(&child["message"]));
        }
    }
    text
}

fn first_line(text: &Value) -> &str {
    text.as_str().unwrap().lines().next().unwrap_or_default()
}

#[test]
fn wrong_uses_have_clear_errors() {
    let mut cases: Vec<_> = fs::read_dir(folder().join("cases"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    cases.sort();
    let output = tempfile::tempdir().unwrap();
    let mut page = String::new();
    for case in &cases {
        let name = case.file_stem().unwrap().to_str().unwrap();
        let errors = errors(case, &output.path().join(name));
        assert!(!errors.is_empty(), "{name} compiles");
        page += &format!("# {name}\n{errors}\n");
    }
    let recorded = folder().join("errors.txt");
    if std::env::var_os(WRITE).is_some() {
        fs::write(recorded, page).unwrap();
        return;
    }
    let version = String::from_utf8(rustc().arg("--version").output().unwrap().stdout).unwrap();
    if version.starts_with(RECORDED_WITH) {
        let before = fs::read_to_string(recorded).unwrap();
        assert!(page == before, "{WRITE}=1 writes these errors:\n{page}");
    }
}
