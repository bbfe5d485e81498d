//! The example that README.md begins with works, on a machine without a server.

use std::process::Command;

use crate::examples::example;

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
