//! `meshwork flow`: check, dag, graph, schema; their output, JSON and exit codes.

use std::net::TcpListener;

use crate::common::{Ground, json};

const NIGHTLY: &str = "
flow: nightly
inputs: {day: ~, limit: 3}
jobs:
  fetch:    {run: fetch.py}
  parse:    {run: parse.rhai, needs: fetch, foreach: fetch.result.files}
  publish:  {approve: 'Publish {{fetch.result.count}}?', needs: [parse]}
  upload:   {run: fetch.py, needs: [publish, fetch]}
  rollback: {run: fetch.py, compensates: upload}
  alone:    {run: fetch.py}
";

/// A folder with a good flow and its scripts. No command here needs a store.
fn folder() -> Option<Ground> {
    Ground::embedded().map(filled)
}

fn filled(ground: Ground) -> Ground {
    ground.file("fetch.py", "result = 1\n");
    ground.file("parse.rhai", "1\n");
    ground.file("nightly.yaml", NIGHTLY);
    ground
}

#[test]
fn a_good_file_is_checked() {
    let Some(ground) = folder() else { return };
    let done = ground
        .run(&["flow", "check", "nightly.yaml", "--offline"])
        .ok();
    assert_eq!(done.stdout, "nightly: 6 jobs, no faults\n");
    assert!(
        done.stderr.contains("job `alone` changes nothing"),
        "{}",
        done.stderr
    );
    let report = ground
        .run(&["flow", "check", "nightly.yaml", "--json"])
        .ok()
        .json();
    assert_eq!(report["faults"], json("[]"));
    let warnings = report["warnings"].to_string();
    assert!(
        warnings.contains("no worker runs the type `osis` of job `parse` now"),
        "{warnings}"
    );
    let inputs = [
        "flow",
        "check",
        "nightly.yaml",
        "--offline",
        "--set",
        "day=x",
    ];
    ground.run(&inputs).ok();
    let refused = ground.run(&[
        "flow",
        "check",
        "nightly.yaml",
        "--offline",
        "--set",
        "limit=4",
    ]);
    assert_eq!(refused.code, Some(2));
    assert!(
        refused.stderr.contains("needs the input `day`"),
        "{}",
        refused.stderr
    );
}

#[test]
fn a_check_warns_of_what_fails_later() {
    let Some(ground) = folder() else { return };
    ground.file(
        "later.yaml",
        "flow: later\ninputs: {default: 1}\njobs:\n  a: {run: fetch.py, route: eu, env: {P: '${{ 1 }}'}}\n",
    );
    let done = ground
        .run(&["flow", "check", "later.yaml", "--offline"])
        .ok();
    for says in [
        "warning: 4:3: job `a` uses a routing key (`route`), which cannot be run yet: `flow submit`",
        "warning: `inputs.default` is no expression of Rhai: write `inputs[\"default\"]`",
        "job `a`: `env.P`: `${{ }}` is no syntax here",
    ] {
        assert!(done.stderr.contains(says), "{}", done.stderr);
    }
}

#[test]
fn a_check_needs_no_server_and_no_key() {
    // Nothing listens on the port of a socket that is closed again.
    let port = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = port.local_addr().unwrap().port();
    let ground = filled(Ground::url(format!("redis://127.0.0.1:{port}/0")));
    let done = ground.run(&["flow", "check", "nightly.yaml"]).ok();
    assert!(done.stdout.contains("no faults"), "{done:?}");
    assert!(
        done.stderr.contains("workers were not looked up: "),
        "{done:?}"
    );
    assert!(!ground.path(".config").exists());
}

#[test]
fn faults_have_their_place() {
    let Some(ground) = folder() else { return };
    ground.file(
        "bad.yaml",
        "flow: bad\njobs:\n  a: {run: fetch.py, needs: b}\n  b: {run: fetch.py, needs: a}\n",
    );
    for command in ["check", "dag", "graph"] {
        let done = ground.run(&["flow", command, "bad.yaml"]);
        assert_eq!(done.code, Some(2), "{command}");
        let says = "bad.yaml:3:3: these jobs wait for each other: a → b → a";
        assert!(done.stderr.contains(says), "{}", done.stderr);
        assert_eq!(done.stdout, "");
    }
    let done = ground.run(&["flow", "check", "bad.yaml", "--json"]);
    assert_eq!(done.code, Some(2));
    let fault = &done.json()["faults"][0];
    assert_eq!((&fault["line"], &fault["column"]), (&json("3"), &json("3")));
    let gone = ground.run(&["flow", "check", "gone.yaml"]);
    assert_eq!(gone.code, Some(2));
    assert!(
        gone.stderr.contains("gone.yaml: No such file"),
        "{}",
        gone.stderr
    );
}

#[test]
fn graphs_are_drawn() {
    let Some(ground) = folder() else { return };
    let levels = ground.run(&["flow", "dag", "nightly.yaml"]).ok().stdout;
    assert_eq!(
        levels,
        "1: fetch alone\n2: parse\n3: publish\n4: upload\nundo upload: rollback\n"
    );
    let dag = ground
        .run(&["flow", "dag", "nightly.yaml", "--json"])
        .ok()
        .json();
    assert_eq!(dag["levels"][0], json("[\"fetch\", \"alone\"]"));
    assert_eq!(dag["nodes"][3]["depends"], json("[\"fetch\", \"publish\"]"));
    let tree = ground.run(&["flow", "graph", "nightly.yaml"]).ok().stdout;
    assert!(
        tree.starts_with("nightly: 6 jobs in 4 levels\n├─ fetch (python)\n"),
        "{tree}"
    );
    let mermaid = ground
        .run(&["flow", "graph", "nightly.yaml", "--format", "mermaid"])
        .ok()
        .stdout;
    assert!(
        mermaid.starts_with("flowchart TD\n  n0[\"fetch<br/>python\"]\n"),
        "{mermaid}"
    );
    let svg = ground
        .run(&["flow", "graph", "nightly.yaml", "--format", "svg", "--json"])
        .ok()
        .json();
    assert!(svg["graph"].as_str().unwrap().starts_with("<svg "), "{svg}");
}

#[test]
fn the_schema_is_json() {
    let Some(ground) = folder() else { return };
    let schema = json(&ground.run(&["flow", "schema"]).ok().stdout);
    assert_eq!(schema["title"], json("\"Meshwork flow\""));
    assert_eq!(
        ground.run(&["flow", "schema", "--json"]).ok().json(),
        schema
    );
}

#[test]
fn workers_are_those_of_the_context() {
    crate::common::on_both(|ground| {
        ground.file("fetch.py", "result = 1\n");
        ground.file("f.yaml", "{flow: f, jobs: {a: {run: fetch.py}}}");
        let check = |args: &[&str]| {
            let check = ["flow", "check", "f.yaml", "--json"];
            let report = ground.run(&[&check[..], args].concat()).ok().json();
            report["warnings"].to_string()
        };
        // A worker of jobs outside of contexts runs no job of a flow.
        let _hero = ground.worker(&["--type", "python"]);
        let none = "no worker runs the type `python` of job `a` now";
        assert!(check(&[]).contains(none), "{}", check(&[]));
        let none = ground.run(&["context", "list", "--json"]).ok();
        assert!(none.jsons().is_empty(), "a check creates no context");
        for id in ["7", "8"] {
            ground.run(&["context", "create", "--id", id]).ok();
        }
        let _worker = ground.worker(&["--type", "python", "--context", "7"]);
        assert_eq!(check(&["--context", "7"]), "[]");
        let none = "no worker of context 8 runs the type `python` of job `a` now";
        assert!(check(&["--context", "8"]).contains(none));
        let unnamed = ground.run(&["flow", "check", "f.yaml"]).ok().stderr;
        assert!(unnamed.contains("select one with --context"), "{unnamed}");
    });
}
