//! The tests that show a newcomer in a few minutes that Meshwork works here: crates that users run, without kills,
//! mutations and loads. They have the features of a plain build, so its crates are not built again.

use std::process::Command;

/// Arguments of `cargo test`.
pub(super) const SCOPE: [&str; 26] = [
    "-p",
    "meshwork-model",
    "-p",
    "meshwork-embedded",
    "-p",
    "meshwork-broker",
    "-p",
    "meshwork-runtime",
    "-p",
    "meshwork-flow",
    "-p",
    "meshwork-worker",
    "-p",
    "meshwork",
    "-p",
    "meshwork-ops",
    "-p",
    "meshwork-cli",
    "--lib",
    "--bins",
    // Tests run them, and would build each of them anew with other features.
    "--examples",
    "--test",
    "it",
    "--test",
    "conformance",
    "--quiet",
];

/// The engine of the conformance suite.
const ENGINES: (&str, &str) = ("MESHWORK_ENGINES", "redis");

/// Programs, and parts of the names of their tests that take most of the time: kills, faults at each call, clusters, loads,
/// and programs that are built first.
const HEAVY: [(&str, &[&str]); 5] = [
    ("broker::conformance", &["heavy_"]),
    ("broker::it", &["cluster::", "moved::", "rights::"]),
    (
        "cli::it",
        &[
            "cluster::",
            "cost::",
            "docs::",
            "examples::",
            "hostile::",
            "killer::",
            "kills::",
            "mesh_flood::",
            "noise::",
            "rights::",
            "sandbox_kills::",
            "shares::",
            "spread::",
            "suspended::",
            "transfer::",
        ],
    ),
    ("embedded::it", &["log::", "patterns::", "scripts::"]),
    (
        "meshwork::it",
        &[
            "cluster",
            "damage::",
            "examples",
            "flow_faults::",
            "late::",
            "many::",
            "nooble::demo::",
            "pool::",
            "refused_slots::",
            "reports::",
        ],
    ),
];

/// Leaves out the tests of a program that take long.
pub(super) fn restrict(program: &str, command: &mut Command) {
    command.env(ENGINES.0, ENGINES.1);
    let heavy = HEAVY.iter().find(|(of, _)| *of == program);
    for name in heavy.map_or(&[][..], |(_, names)| names) {
        command.args(["--skip", name]);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use super::*;
    use crate::process::ask;
    use crate::workspace::Workspace;

    /// Crates of README's first build with other features in the tests. Nothing large depends on them.
    const BUILT_AGAIN: [&str; 3] = ["futures-io", "regex-automata", "regex-syntax"];

    /// Returns the crates of registries that a build compiles, with their features.
    fn crates(workspace: &Workspace, arguments: &[&str]) -> BTreeSet<String> {
        let mut tree = workspace.cargo(&["tree", "--offline", "--prefix", "none"]);
        tree.args(["--format", "{p} {f}"]).args(arguments);
        let tree = ask(&mut tree, Duration::from_secs(120)).unwrap();
        let lines = tree.lines().map(|line| line.trim_end_matches(" (*)"));
        let outside = lines.filter(|line| !line.is_empty() && !line.contains("(/"));
        outside.map(str::to_owned).collect()
    }

    #[test]
    fn the_first_build_of_the_readme_serves_the_tests_too() {
        let workspace = Workspace::find().unwrap();
        let first = [
            "-p",
            "meshwork-ops",
            "-p",
            "meshwork-cli",
            "-p",
            "meshwork",
            "--no-default-features",
        ];
        let first = [&first[..], &["--edges", "normal,build"]].concat();
        let packages = SCOPE.iter().take_while(|word| !word.starts_with("--"));
        let tests: Vec<_> = packages
            .copied()
            .chain(["--edges", "normal,build,dev"])
            .collect();
        let (first, tests) = (crates(&workspace, &first), crates(&workspace, &tests));
        assert!(first.len() > 200, "{first:?}");
        let again = first
            .difference(&tests)
            .filter_map(|line| line.split(' ').next());
        assert_eq!(again.collect::<Vec<_>>(), BUILT_AGAIN);
    }
}
