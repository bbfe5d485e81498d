//! The example that README.md begins with works, on a machine without a server.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::path::PathBuf;
use std::process::Command;

/// Where cargo puts examples: it builds them before it runs all tests, but not for a single one.
fn example(name: &str) -> PathBuf {
    let deps = std::env::current_exe().unwrap();
    let path = deps.ancestors().nth(2).unwrap().join("examples").join(name);
    if !path.exists() {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let args = [
            "build",
            "--quiet",
            "--package",
            "meshwork",
            "--example",
            name,
        ];
        assert!(Command::new(cargo).args(args).status().unwrap().success());
    }
    path
}

#[test]
fn hello_world() {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(example("hello"))
        .current_dir(folder.path())
        .output()
        .unwrap();
    let said = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert_eq!(
        (said.0.as_ref(), said.1.as_ref(), output.status.code()),
        ("Hello, world!\n", "", Some(0))
    );
}
