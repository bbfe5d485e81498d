//! The example works.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::process::Command;

use meshwork_test_servers::binary::profile_of;
use meshwork_test_servers::servers::RealPostgres;

#[test]
fn outbox() {
    let Some(server) = RealPostgres::start_for("outbox") else {
        return;
    };
    let test = std::env::current_exe().unwrap();
    let folder = test.ancestors().nth(2).unwrap();
    let program = folder.join("examples/outbox");
    if !program.exists() {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--offline", "--example", "outbox"]);
        cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
        cargo.args(["--profile", profile_of(folder)]);
        cargo.env("CARGO_TARGET_DIR", folder.parent().unwrap());
        assert!(cargo.status().unwrap().success());
    }
    let output = Command::new(program)
        .env("DATABASE_URL", server.url())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said, "5 orders, 5 payments\n", "{errors}");
}
