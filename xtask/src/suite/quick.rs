//! The tests that show a newcomer in a few minutes that Meshwork works here: crates that users run, without kills,
//! mutations and loads. They have the features of a plain build, so its crates are not built again.

use std::process::Command;

/// Arguments of `cargo test`.
pub(super) const SCOPE: [&str; 18] = [
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

/// Program of the conformance suite, and a part of the names of its cases that take most of its time.
const HEAVY: (&str, &str) = ("broker::conformance", "heavy_");

/// Leaves out the tests of a program that take long.
pub(super) fn restrict(program: &str, command: &mut Command) {
    command.env(ENGINES.0, ENGINES.1);
    if program == HEAVY.0 {
        command.args(["--skip", HEAVY.1]);
    }
}
