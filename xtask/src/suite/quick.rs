//! The tests that show a newcomer in a few minutes that Meshwork works here: crates that users run, without kills,
//! mutations and loads. They have the features of a plain build, so its crates are not built again.

use std::process::Command;

/// Arguments of `cargo test`.
pub(super) const SCOPE: [&str; 17] = [
    "-p",
    "meshwork-model",
    "-p",
    "meshwork-embedded",
    "-p",
    "meshwork-broker",
    "-p",
    "meshwork",
    "-p",
    "meshwork-cli",
    "--lib",
    "--bins",
    "--test",
    "it",
    "--test",
    "conformance",
    "--quiet",
];

/// The engine of the conformance suite.
const ENGINES: (&str, &str) = ("MESHWORK_ENGINES", "redis");

/// Parts of names of tests that are left out, by program: each takes a large part of the time of its program.
const LEFT_OUT: [(&str, &[&str]); 4] = [
    ("broker::conformance", &["heavy_"]),
    ("broker::it", &[]),
    ("meshwork::it", &[]),
    ("cli::it", &[]),
];

/// Leaves out the tests of a program that take long.
pub(super) fn restrict(program: &str, command: &mut Command) {
    command.env(ENGINES.0, ENGINES.1);
    for (_, names) in LEFT_OUT.iter().filter(|(name, _)| *name == program) {
        for name in *names {
            command.args(["--skip", name]);
        }
    }
}
