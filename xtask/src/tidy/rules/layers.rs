//! Allowed dependencies between crates: the arrows of the architecture, one way.

use super::super::tree::File;
use super::{Finding, Tree, finding};

/// A crate of the workspace, and the ones that it may use.
const ARROWS: [(&str, &[&str]); 19] = [
    ("model", &[]),
    ("embedded", &[]),
    (
        "broker",
        &["meshwork-model", "meshwork-embedded", "meshwork-macros"],
    ),
    ("flow", &["meshwork-model", "meshwork-runtime"]),
    ("sal", &[]),
    (
        "runtime",
        &["meshwork-model", "meshwork-macros", "meshwork-sal"],
    ),
    (
        "worker",
        &[
            "meshwork-model",
            "meshwork-broker",
            "meshwork-macros",
            "meshwork-runtime",
        ],
    ),
    (
        "meshwork",
        &[
            "meshwork-model",
            "meshwork-broker",
            "meshwork-flow",
            "meshwork-macros",
            "meshwork-runtime",
            "meshwork-worker",
        ],
    ),
    ("macros", &[]),
    ("ops", &["meshwork-model", "meshwork-broker", "meshwork"]),
    (
        "server",
        &[
            "meshwork-model",
            "meshwork-broker",
            "meshwork",
            "meshwork-ops",
        ],
    ),
    ("outbox", &["meshwork-model", "meshwork-broker", "meshwork"]),
    ("node", &["meshwork-model", "meshwork"]),
    ("python", &["meshwork-model", "meshwork"]),
    (
        "cli",
        &[
            "meshwork-model",
            "meshwork-broker",
            "meshwork",
            "meshwork-ops",
            "meshwork-outbox",
            "meshwork-server",
        ],
    ),
    ("test-servers", &[]),
    (
        "conformance",
        &[
            "meshwork-model",
            "meshwork-broker",
            "meshwork-embedded",
            "meshwork-test-servers",
        ],
    ),
    ("fuzz", &["meshwork-embedded", "meshwork-test-servers"]),
    (
        "scenarios",
        &[
            "meshwork-model",
            "meshwork-broker",
            "meshwork-embedded",
            "meshwork",
            "meshwork-outbox",
            "meshwork-conformance",
            "meshwork-test-servers",
        ],
    ),
];

/// An external crate, and the crates that may use it.
const GUARDED: [(&str, &[&str]); 9] = [
    ("axum", &["server", "test-servers"]),
    (
        "redis",
        &["broker", "sal", "test-servers", "conformance", "scenarios"],
    ),
    ("mlua", &["embedded"]),
    ("rhai", &["flow", "runtime", "sal"]),
    ("sqlx", &["outbox", "scenarios"]),
    ("napi", &["node"]),
    ("pyo3", &["python"]),
    ("clap", &["cli", "fuzz", "scenarios", "xtask"]),
    ("libtest-mimic", &[]),
];

/// Crates that the model must not use: I/O, clocks, randomness and threads.
const NOT_IN_MODEL: [&str; 6] = ["tokio", "rand", "uuid", "rustix", "tempfile", "tracing"];

/// A workspace of its own, with the programs of other job queues: no crate depends on it.
const APART: &str = "peers/";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.files()
        .filter(|file| file.is("/Cargo.toml") && !file.path.starts_with(APART))
        .flat_map(|file| {
            let name = file.krate().unwrap_or("xtask");
            dependencies(file)
                .into_iter()
                .filter_map(move |(line, dependency)| {
                    let (what, remedy) = fault(name, dependency)?;
                    Some(finding(&file.path, line, what, remedy))
                })
        })
        .collect()
}

fn fault(name: &str, dependency: &str) -> Option<(String, &'static str)> {
    let what = format!("{name} depends on {dependency}");
    if dependency.starts_with("meshwork") {
        let allowed = ARROWS
            .iter()
            .find(|arrow| arrow.0 == name)
            .map_or(&[][..], |arrow| arrow.1);
        let remedy = "dependencies go one way: see the crates in ARCHITECTURE.md";
        return (!allowed.contains(&dependency)).then_some((what, remedy));
    }
    if let Some((_, users)) = GUARDED.iter().find(|guarded| guarded.0 == dependency) {
        let remedy = "use it through the crate that wraps it: see ARCHITECTURE.md";
        return (!users.contains(&name)).then_some((what, remedy));
    }
    let remedy = "the model has no I/O, clock or randomness: pass the value in";
    (name == "model" && NOT_IN_MODEL.contains(&dependency)).then_some((what, remedy))
}

/// Returns names with their lines, without those for tests.
fn dependencies(manifest: &File) -> Vec<(usize, &str)> {
    let mut section = "";
    let mut found = Vec::new();
    for (number, line) in manifest.lines() {
        if let Some(header) = line.trim().strip_prefix('[') {
            section = header.trim_end_matches(']');
            let table = section
                .split_once("dependencies.")
                .map(|(_, name)| (number, name));
            found.extend(table.filter(|_| !section.starts_with("dev-")));
        } else if matches!(section, "dependencies" | "build-dependencies")
            || (section.starts_with("target.") && section.ends_with(".dependencies"))
        {
            let name = line.split(['.', '=', ' ']).next().unwrap_or_default();
            if !name.is_empty() && !name.starts_with('#') {
                found.push((number, name));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::places_of;
    use super::*;

    fn lines(name: &str, manifest: &str) -> Vec<String> {
        let path = format!("crates/{name}/Cargo.toml");
        places_of(check, &[(&path, manifest)])
            .iter()
            .filter_map(|place| Some(place.rsplit_once(':')?.1.to_owned()))
            .collect()
    }

    #[test]
    fn arrows_go_one_way() {
        let manifest =
            "[dependencies]\nmeshwork-model.workspace = true\nmeshwork = { path = \"\" }";
        assert_eq!(lines("broker", manifest), ["3"]);
        assert_eq!(lines("cli", manifest), [""; 0]);
        assert_eq!(lines("embedded", manifest), ["2", "3"]);
    }

    #[test]
    fn guarded_crates_have_one_user() {
        let manifest = "[dependencies]\nredis = \"1\"\n[dev-dependencies]\nredis = \"1\"\n\
                        [dependencies.mlua]\nversion = \"0\"\n";
        assert_eq!(lines("broker", manifest), ["5"]);
        assert_eq!(lines("meshwork", manifest), ["2", "5"]);
    }

    #[test]
    fn other_workspaces_have_their_own_dependencies() {
        let manifest = "[dependencies]\nredis = \"1\"";
        let files = [
            ("peers/Cargo.toml", manifest),
            ("xtask/Cargo.toml", manifest),
        ];
        assert_eq!(places_of(check, &files), ["xtask/Cargo.toml:2"]);
    }

    #[test]
    fn the_model_is_pure() {
        assert_eq!(
            lines(
                "model",
                "[dependencies]\nserde = \"1\"\ntokio.workspace = true"
            ),
            ["3"]
        );
    }
}
