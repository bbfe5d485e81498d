//! Paths of the examples, for tests that run them.

use std::path::PathBuf;

use meshwork_test_servers::binary::profile_of;

/// Path of an example's program. `cargo test` builds all of them; with a single target it is built here.
pub(crate) fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.ancestors().nth(2).unwrap();
    let program = folder.join("examples").join(name);
    if !program.exists() {
        let mut cargo = std::process::Command::new(env!("CARGO"));
        cargo.args(["build", "--offline", "-p", "meshwork", "--example", name]);
        cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
        cargo.args(["--profile", profile_of(folder)]);
        cargo.env("CARGO_TARGET_DIR", folder.parent().unwrap());
        assert!(cargo.status().unwrap().success(), "cargo builds no {name}");
    }
    program
}
