//! `meshwork runtime`: the script types of this host.

use meshwork_test_servers::servers::{Tool, need};

use crate::common::{Ground, Running, json};

#[test]
fn runtimes_are_listed_with_their_interpreters() {
    let Some(_python) = need(Tool::Python) else {
        return;
    };
    let ground = Ground::embedded().unwrap();
    let listed = ground.run(&["runtime", "list", "--json"]).ok().jsons();
    let of = |name: &str| {
        listed
            .iter()
            .find(|runtime| runtime["type"] == name)
            .unwrap()
    };
    let python = of("python");
    assert!(
        python["version"]
            .as_str()
            .is_some_and(|version| version.starts_with("3.")),
        "{python}"
    );
    assert!(
        python["interpreter"]
            .as_str()
            .is_some_and(|path| path.starts_with('/')),
        "{python}"
    );
    assert_eq!(
        (&python["process"], &python["files"][0]),
        (&json("true"), &json("\".py\""))
    );
    assert_eq!(python["sandbox"][0], "open");
    assert_eq!(
        (&of("osis")["process"], &of("osis")["sandbox"]),
        (&json("false"), &json("[]"))
    );
    let text = ground.run(&["runtime", "list"]).ok().stdout;
    assert!(text.contains("no files, no network"), "{text}");
    // It needs no data directory.
    assert!(!ground.path("data").exists());
}

#[test]
fn a_missing_interpreter_is_named() {
    let ground = Ground::embedded().unwrap();
    let mut command = ground.command(&["runtime", "show", "python", "--json"]);
    command.env("MESHWORK_PYTHON", "/nowhere/python3");
    let shown = Running::start(command).ended().ok().json();
    let missing = shown["missing"].as_str().unwrap();
    assert!(
        missing.contains("`/nowhere/python3` cannot be started"),
        "{missing}"
    );
    let said = ground.run(&["runtime", "show", "cobol"]).exits(2).stderr;
    assert!(
        said.contains("no runtime `cobol`") && said.contains("--runtime cobol="),
        "{said}"
    );
}
