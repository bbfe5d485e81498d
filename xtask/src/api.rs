//! The public API of the library, as rustdoc describes it: a record that shows each change of it in a diff, and the items
//! without an example.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use public_api::Builder;
use serde_json::Value;

use crate::process::{self, Failure, ask};
use crate::workspace::Workspace;

/// Timeout of rustdoc: it may check all dependencies first.
const LIMIT: Duration = Duration::from_secs(60 * 30);

/// Compiler whose description is recorded. Others write another format, or other paths.
const RECORDED_WITH: &str = "rustc 1.95.";

/// Writes the records instead of comparing them.
const WRITE: &str = "MESHWORK_WRITE_DOCS";

/// The public API, one item per line.
const API: &str = "crates/meshwork/api.txt";

/// Features of the library that are recorded.
const FEATURES: &str = "mesh,passphrase,sal";

/// Crates of which the library exports items again, with the features that it has by default.
const BELOW: [(&str, &[&str]); 3] = [
    ("runtime", &["--features", "scripts"]),
    ("worker", &[]),
    ("flow", &[]),
];

/// Items whose documentation has no example and no link to one.
const NO_EXAMPLE: &str = "crates/meshwork/api-without-example.txt";

/// Page with the hidden items, in the first column of a table with this heading.
const HIDDEN: (&str, &str) = ("CONTRIBUTING.md", "| `#[doc(hidden)]` | for |");

/// Kinds of items that need an example. Methods and fields have that of their type.
const KINDS: [&str; 6] = ["struct", "enum", "trait", "function", "macro", "proc_macro"];

/// rustdoc writes JSON only with unstable options. The variable must not reach build scripts, which would run again.
const RUSTDOC: &str = "#!/bin/sh\nRUSTC_BOOTSTRAP=1 exec rustdoc \"$@\"\n";

/// Compares the public API and the items without an example with the records.
pub(crate) fn check(workspace: &Workspace) -> Result<(), Failure> {
    let version = ask(Command::new("rustc").arg("--version"), LIMIT)?;
    if !version.starts_with(RECORDED_WITH) {
        eprintln!("{API} was recorded with {RECORDED_WITH}: it is not compared with {version}");
        return Ok(());
    }
    let json = describe(workspace, "meshwork", &["--features", FEATURES])?;
    let mut api = lines(&json)?;
    let mut lacking = without_example(&read_json(&json)?, "meshwork");
    for (below, features) in BELOW {
        let json = describe(workspace, &format!("meshwork-{below}"), features)?;
        let module = format!("meshwork_{below}");
        let is_exported = |line: &String| is_exported(line, &module, &api);
        let without = without_example(&read_json(&json)?, &module).into_iter();
        lacking.extend(without.filter(is_exported));
        let shown: Vec<_> = lines(&json)?.into_iter().filter(is_exported).collect();
        api.extend(shown);
    }
    let lines = lacking.iter().map(|path| format!("{path}\n")).collect();
    let records = [(API, api.concat()), (NO_EXAMPLE, lines)];
    let compared = records
        .iter()
        .map(|(file, now)| compare(&workspace.root.join(file), file, now));
    let faults: Vec<String> = compared
        .chain([hidden(workspace)])
        .filter_map(|compared| Some(compared.err()?.to_string()))
        .collect();
    match faults.is_empty() {
        true => Ok(()),
        false => Err(Failure::new(faults.join("\n"))),
    }
}

/// Returns rustdoc's description of a package.
fn describe(workspace: &Workspace, package: &str, features: &[&str]) -> Result<PathBuf, Failure> {
    let script = workspace.target("rustdoc-json");
    fs::write(&script, RUSTDOC)
        .and_then(|()| fs::set_permissions(&script, fs::Permissions::from_mode(0o755)))
        .map_err(|error| Failure::new(format!("{}: {error}", script.display())))?;
    let mut command = workspace.cargo(&["rustdoc", "-p", package, "--lib"]);
    command.args(features);
    command.args(["--", "-Z", "unstable-options", "--output-format", "json"]);
    process::run_quoting(command.env("RUSTDOC", &script), LIMIT)?;
    let file = format!("doc/{}.json", package.replace('-', "_"));
    Ok(workspace.built().with_file_name(file))
}

/// Reads a description.
fn read_json(json: &Path) -> Result<Value, Failure> {
    let text = fs::read_to_string(json).map_err(|error| Failure::new(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| Failure::new(error.to_string()))
}

/// Returns the public API of a description, one item per line.
fn lines(json: &Path) -> Result<Vec<String>, Failure> {
    let api = Builder::from_rustdoc_json(json)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .build()
        .map_err(|error| Failure::new(format!("{}: {error}", json.display())))?;
    Ok(api.items().map(|item| format!("{item}\n")).collect())
}

/// Returns true if the first path of `module` in a line is that of an item which `api` exports again.
fn is_exported(line: &str, module: &str, api: &[String]) -> bool {
    let Some((_, path)) = line.split_once(&format!("{module}::")) else {
        return false;
    };
    let end = path.find(|c: char| !c.is_alphanumeric() && c != '_');
    let name = &path[..end.unwrap_or(path.len())];
    let again = |line: &String| {
        let path = line.trim_end().strip_prefix("pub use meshwork::");
        path.and_then(|path| path.rsplit("::").next()) == Some(name)
    };
    api.iter().any(again)
}

/// Compares a record, or writes it.
fn compare(path: &Path, name: &str, now: &str) -> Result<(), Failure> {
    if std::env::var_os(WRITE).is_some() {
        return fs::write(path, now).map_err(|error| Failure::new(format!("{name}: {error}")));
    }
    let before = fs::read_to_string(path).unwrap_or_default();
    if before == now {
        return Ok(());
    }
    let (before, now): (BTreeSet<_>, BTreeSet<_>) =
        (before.lines().collect(), now.lines().collect());
    let gone = before.difference(&now).map(|line| format!("- {line}"));
    let new = now.difference(&before).map(|line| format!("+ {line}"));
    let lines: Vec<_> = gone.chain(new).collect();
    Err(Failure::new(format!(
        "{name} differs; `{WRITE}=1 cargo xtask api` writes it:\n{}",
        lines.join("\n")
    )))
}

/// Compares the hidden items of the library with their list.
fn hidden(workspace: &Workspace) -> Result<(), Failure> {
    let read = |path: &Path| {
        fs::read_to_string(path)
            .map_err(|error| Failure::new(format!("{}: {error}", path.display())))
    };
    let mut found = BTreeSet::new();
    let folder = |name: &str| workspace.root.join(format!("crates/{name}/src"));
    let mut folders: Vec<_> = ["meshwork"]
        .into_iter()
        .chain(BELOW.map(|(name, _)| name))
        .map(folder)
        .collect();
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).map_err(|error| Failure::new(error.to_string()))?;
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "rs") {
                found.extend(hidden_items(&read(&path)?));
            }
        }
    }
    let (page, heading) = HIDDEN;
    let text = read(&workspace.root.join(page))?;
    let (_, table) = text.split_once(heading).unwrap_or_default();
    let rows = table.lines().skip(2).take_while(|row| row.starts_with('|'));
    let cells = rows.filter_map(|row| row.split('|').nth(1));
    let listed: BTreeSet<_> = cells
        .flat_map(|cell| cell.split('`').skip(1).step_by(2).map(str::to_owned))
        .collect();
    let differ: Vec<_> = found.symmetric_difference(&listed).cloned().collect();
    match differ.is_empty() {
        true => Ok(()),
        false => Err(Failure::new(format!(
            "{page} and the library differ in hidden items: {}",
            differ.join(", ")
        ))),
    }
}

/// Returns the names of the hidden items of a file.
fn hidden_items(source: &str) -> Vec<String> {
    let parts = source.split("#[doc(hidden)]\n").skip(1);
    let names = parts.filter_map(|part| {
        let item = part.split(['(', ';', '{', '<']).next()?;
        let name = item
            .split([' ', ':', '\n'])
            .rfind(|word| !word.is_empty())?;
        Some(name.to_owned())
    });
    names.collect()
}

/// Returns the paths of the public items that have no example and link to no item with one.
fn without_example(crate_: &Value, name: &str) -> BTreeSet<String> {
    let mut lacking = BTreeSet::new();
    let mut modules = vec![(crate_["root"].to_string(), name.to_owned())];
    let mut seen = BTreeSet::new();
    while let Some((module, path)) = modules.pop() {
        for id in ids(&crate_["index"][&module]["inner"]["module"]["items"]) {
            let item = &crate_["index"][&id];
            let (id, name) = match &item["inner"]["use"] {
                Value::Null => (id, &item["name"]),
                used => (used["id"].to_string(), &used["name"]),
            };
            // Items of other crates are not in the index.
            let item = &crate_["index"][&id];
            let Some(kind) = item["inner"].as_object().and_then(|it| it.keys().next()) else {
                continue;
            };
            let path = format!("{path}::{}", name.as_str().unwrap_or_default());
            if !seen.insert(id.clone()) {
                continue;
            }
            match kind.as_str() {
                "module" => modules.push((id, path)),
                kind if KINDS.contains(&kind) && !is_shown(crate_, item) => {
                    lacking.insert(path);
                }
                _ => {}
            }
        }
    }
    lacking
}

/// Returns true if an item has an example, or links to an item or a file with one.
fn is_shown(crate_: &Value, item: &Value) -> bool {
    let linked = item["links"].as_object().into_iter().flatten();
    has_example(item)
        || linked
            .map(|(_, id)| &crate_["index"][id.to_string()])
            .any(has_example)
}

fn has_example(item: &Value) -> bool {
    let docs = item["docs"].as_str().unwrap_or_default();
    docs.contains("```") || docs.contains("/examples/")
}

fn ids(list: &Value) -> impl Iterator<Item = String> {
    list.as_array().into_iter().flatten().map(Value::to_string)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn items_that_are_exported_again_are_shown() {
        let api = ["pub use meshwork::worker::Step\n".to_owned()];
        let shown = |line| is_exported(line, "meshwork_worker", &api);
        assert!(shown("pub struct meshwork_worker::Step\n"));
        assert!(shown("pub meshwork_worker::Step::Now(u64)\n"));
        assert!(!shown("pub struct meshwork_worker::Steps\n"));
        assert!(!shown(
            "pub fn meshwork_worker::bounded(a: meshwork_worker::Step)\n"
        ));
        assert!(!shown("pub struct meshwork::Step\n"));
    }

    #[test]
    fn hidden_items_have_names() {
        let source = "#[doc(hidden)]\npub use client::Placed;\n#[doc(hidden)]\npub mod check;\n\
                      #[doc(hidden)]\npub async fn stop_by(self) {}\n";
        assert_eq!(hidden_items(source), ["Placed", "check", "stop_by"]);
    }

    #[test]
    fn items_without_an_example_are_named() {
        let kind = |kind: &str, docs: &str, links: Value| json!({"name": "X", "inner": {kind: {}}, "docs": docs, "links": links});
        let crate_ = json!({"root": 0, "index": {
            "0": {"inner": {"module": {"items": [1, 2, 3, 4, 6]}}},
            "1": kind("struct", "```\nx\n```", json!({})),
            "2": kind("enum", "As [X].", json!({"X": 1})),
            "3": {"name": null, "inner": {"use": {"name": "Renamed", "id": 5}}},
            "4": {"name": "inside", "inner": {"module": {"items": [6]}}},
            "5": kind("trait", "See [X].", json!({"X": 2})),
            "6": kind("constant", "", json!({})),
        }});
        let lacking: Vec<_> = without_example(&crate_, "meshwork").into_iter().collect();
        assert_eq!(lacking, ["meshwork::Renamed"]);
    }
}
