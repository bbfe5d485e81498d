//! Files of flows: what they say, and each trap, with its place.

use std::fs;
use std::path::PathBuf;

use meshwork_model::flow::{Plan, Wait, Work};
use serde_json::json;
use tempfile::TempDir;

use super::load;

/// A folder with a flow's file and two scripts.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        folder.put("fetch.py", "result = 1\n");
        folder.put("parse.rhai", "1\n");
        folder
    }

    fn put(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// The plan of a file, or its faults without the folder's path.
    fn load(&self, name: &str, text: &str) -> Result<Plan, String> {
        let path = self.put(name, text);
        let folder = format!("{}/", self.0.path().display());
        load(&path).map_err(|faults| faults.to_string().replace(&folder, ""))
    }

    fn yaml(&self, text: &str) -> Result<Plan, String> {
        self.load("f.yaml", text)
    }
}

/// The faults of a flow of one job with these options.
fn job(options: &str) -> String {
    let text = format!("flow: f\njobs:\n  a: {options}\n");
    Folder::new()
        .yaml(&text)
        .map_or_else(|faults| faults, |_| String::new())
}

const NIGHTLY: &str = r#"
flow: nightly
env: {REGION: "eu"}
timeout: 2h
inputs: {day: "today", limit: 3}
jobs:
  fetch:    {run: fetch.py, retries: 3, backoff: 5s}
  parse:    {run: parse.rhai, needs: [fetch], foreach: "fetch.result.files", concurrency: 8, continue: true}
  publish:  {approve: "Publish {{fetch.result.count}} files?", needs: [parse], timeout: 1d}
  upload:   {run: fetch.py, needs: publish, if: "parse.failed == 0", with: {n: [1, "{{inputs.limit}}"]}}
  rollback: {run: fetch.py, compensates: upload}
  announce: {script: "40 + 2", type: osis, needs: [upload], group: g, priority: high, context: 7}
  pause:    {wait: {for: 1h30m}, needs: [upload]}
outputs: {count: "{{fetch.result.count}}"}
"#;

#[test]
fn a_flow_in_yaml() {
    let plan = Folder::new().yaml(NIGHTLY).unwrap();
    let json = serde_json::to_value(&plan).unwrap();
    assert_eq!(json["env"]["REGION"]["text"], "eu");
    assert_eq!(json["inputs"], json!({"day": "today", "limit": 3}));
    assert_eq!((plan.timeout_ms, plan.fail_fast), (Some(7_200_000), true));
    let names: Vec<&str> = plan.jobs.iter().map(|job| job.name.as_str()).collect();
    let all = [
        "fetch", "parse", "publish", "upload", "rollback", "announce", "pause",
    ];
    assert_eq!(names, all);
    let fetch = plan.job("fetch").unwrap();
    assert_eq!((fetch.retries, fetch.backoff_ms), (3, Some(5000)));
    assert_eq!(fetch.at.unwrap().to_string(), "7:3");
    let parse = plan.job("parse").unwrap();
    let foreach = parse.foreach.as_ref().unwrap();
    assert_eq!(foreach.text, "fetch.result.files");
    assert_eq!(foreach.at.unwrap().to_string(), "8:56");
    assert_eq!(
        (parse.concurrency, parse.continue_on_failure),
        (Some(8), true)
    );
    let upload = plan.job("upload").unwrap();
    assert_eq!(upload.needs[0].as_str(), "publish");
    assert_eq!(upload.inputs["n"].value, json!([1, "{{inputs.limit}}"]));
    assert_eq!(
        plan.job("pause").unwrap().work,
        Work::Wait(Wait::For(5_400_000))
    );
    let Work::Run(run) = &plan.job("announce").unwrap().work else {
        panic!("a script");
    };
    assert_eq!(
        (
            run.file.as_deref(),
            run.context.as_ref().map(|it| it.to_string())
        ),
        (None, Some("7".to_owned()))
    );
    assert_eq!(plan.scripts[&run.script], "40 + 2");
    // Three jobs run one script, which is kept once.
    assert_eq!(plan.scripts.len(), 3);
}

#[test]
fn the_same_flow_in_toml() {
    let toml = r#"
flow = "nightly"
timeout = "2h"

[env]
REGION = "eu"

[jobs.fetch]
run = "fetch.py"
retries = 3
backoff = "5s"

[jobs.after]
wait = {until = 2026-01-31T12:00:00Z}
needs = ["fetch"]
"#;
    let folder = Folder::new();
    let plan = folder.load("f.toml", toml).unwrap();
    assert_eq!(plan.jobs.len(), 2);
    let fetch = plan.job("fetch").unwrap();
    assert_eq!((fetch.retries, fetch.at.unwrap().line), (3, 8));
    let after = &plan.job("after").unwrap().work;
    assert_eq!(*after, Work::Wait(Wait::Until(1_769_860_800_000)));
    for (text, says) in [
        (
            "flow = 1\n",
            "f.toml:1:8: the flow: `flow` has to be a text",
        ),
        (
            "flow = \"f\"\nflow = \"g\"\n",
            "f.toml:2:1: this is no TOML: duplicate key",
        ),
        (
            "flow = \"f\"\n[env]\nA = 1\n",
            "f.toml:3:5: the flow: `env.A` is the number 1",
        ),
        (
            "flow = \"f\"\n[jobs.a]\nrum = \"x\"\n",
            "f.toml:3:1: job `a`: there is no option `rum`",
        ),
        ("flow = inf\n", "f.toml:1:8: the number inf is too large"),
        (
            "x = 99999999999999999999\n",
            "f.toml:1:5: the number 99999999999999999999 is too large",
        ),
    ] {
        let said = folder.load("f.toml", text).unwrap_err();
        assert!(said.contains(says), "{text}: {said}");
    }
}

#[test]
fn yaml_is_that_of_1_2() {
    let text = "flow: f\njobs: {a: {run: fetch.py}}\nenv: {A: no, B: on, C: 2024-01-01, D: Yes, E: 'true', F: 0b1, G: 1_000, H: 12:30:45}\n";
    let plan = Folder::new().yaml(text).unwrap();
    let values: Vec<&str> = plan.env.values().map(|text| text.text.as_str()).collect();
    assert_eq!(
        values,
        [
            "no",
            "on",
            "2024-01-01",
            "Yes",
            "true",
            "0b1",
            "1_000",
            "12:30:45"
        ]
    );
    let inputs = "flow: f\njobs: {a: {run: fetch.py}}\ninputs: {a: 1e3, b: 0o17, c: 0x1F, d: ~, e: no, f: .5, g: -7, h: 007, i: True}\n";
    let plan = Folder::new().yaml(inputs).unwrap();
    let all = json!({"a": 1000.0, "b": 15, "c": 31, "d": null, "e": "no", "f": 0.5, "g": -7, "h": 7, "i": true});
    assert_eq!(serde_json::to_value(&plan.inputs).unwrap(), all);
}

#[test]
fn numbers_and_bools_in_env_are_refused_with_the_hint_to_quote() {
    for value in ["1", "1e3", "0o17", "true", "1.0"] {
        let text = format!("flow: f\nenv: {{A: {value}}}\njobs: {{a: {{run: fetch.py}}}}\n");
        let said = Folder::new().yaml(&text).unwrap_err();
        let begins = said.starts_with("f.yaml:2:10: the flow: `env.A` is ");
        assert!(begins && said.contains("quote it"), "{said}");
    }
}

#[test]
fn traps_of_yaml_are_refused_with_their_place() {
    let head = "flow: f\njobs: {a: {run: fetch.py}}\n";
    let bomb = "a: &a [x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]\nc: [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b]\n";
    let deep = format!("x: {}{}\n", "[".repeat(65), "]".repeat(65));
    for (text, says) in [
        (
            "flow: g\n",
            "f.yaml:3:1: the key `flow` is in line 1 already",
        ),
        (
            "env: {A: x, A: y}\n",
            "f.yaml:3:13: the key `A` is in line 3 already",
        ),
        ("env: {A: !!str 1}\n", "tags (`!…`) are not allowed"),
        ("env: !mine {A: x}\n", "tags (`!…`) are not allowed"),
        (
            "x: &x {A: b}\nenv: {<<: *x}\n",
            "f.yaml:4:7: merge keys (`<<`)",
        ),
        (bomb, "more than 100 aliases"),
        (
            "x: &x [*x]\n",
            "f.yaml:3:8: this alias is within the value that it names",
        ),
        ("x: *nobody\n", "f.yaml:3:4: this is no YAML"),
        ("env:\n\tA: x\n", "f.yaml:4:"),
        ("? [a, b]\n: c\n", "a key is a text"),
        (
            "---\nflow: g\n",
            "f.yaml:3:1: a second document begins here",
        ),
        (&deep, "nested more than 64 levels deep"),
        (
            "env: {A: .nan}\n",
            "f.yaml:3:10: .nan is no number that JSON could hold",
        ),
        (
            "inputs: {a: 9223372036854775808}\n",
            "f.yaml:3:13: the number 9223372036854775808 is too large",
        ),
        (
            "inputs: {a: 1e999}\n",
            "1e999 is no number that JSON could hold",
        ),
        ("env: {A: \"x}\n", "f.yaml:3:10: this is no YAML"),
        (
            "on: push\n",
            "f.yaml:3:1: the flow: there is no option `on`",
        ),
    ] {
        let said = Folder::new().yaml(&format!("{head}{text}")).unwrap_err();
        assert!(said.contains(says), "{text}: {said}");
    }
}

#[test]
fn a_hundred_aliases_are_enough() {
    let many = |n: usize| {
        let uses = vec!["*x"; n].join(", ");
        let inputs = format!("inputs: {{a: &x hello, b: [{uses}]}}\n");
        Folder::new().yaml(&format!(
            "flow: f\njobs: {{a: {{run: fetch.py}}}}\n{inputs}"
        ))
    };
    assert_eq!(many(100).unwrap().inputs["b"][99], "hello");
    assert!(many(101).unwrap_err().contains("more than 100 aliases"));
}

#[test]
fn a_file_has_a_mebibyte() {
    let text = "flow: f\njobs: {a: {run: fetch.py}}\n#";
    let full = format!("{text}{}", "x".repeat(1024 * 1024 - text.len()));
    assert!(Folder::new().yaml(&full).is_ok());
    let said = Folder::new().yaml(&format!("{full}x")).unwrap_err();
    assert_eq!(
        said,
        "f.yaml: larger than 1048576 bytes, which is the limit"
    );
    for (text, says) in [
        ("", "the file is empty"),
        ("# later\n", "the file is empty"),
        ("[1]", "has to be a map"),
    ] {
        let said = Folder::new().yaml(text).unwrap_err();
        assert!(said.contains(says), "{said}");
    }
    let folder = Folder::new();
    fs::write(folder.0.path().join("f.yaml"), b"flow: \xff").unwrap();
    let said = load(&folder.0.path().join("f.yaml"))
        .unwrap_err()
        .to_string();
    assert!(said.contains("no UTF-8 text: byte 7"), "{said}");
}

/// Options of a job, and what is said of them.
const REFUSED: &[(&str, &str)] = &[
    (
        "{}",
        "f.yaml:3:3: job `a`: the work is missing: give one of `run`",
    ),
    ("fetch.py", "f.yaml:3:6: job `a` has to be a map of options"),
    (
        "{run: fetch.py, script: x}",
        "`run` and `script` do not go together",
    ),
    (
        "{run: fetch.py, retry: 3}",
        "f.yaml:3:22: job `a`: there is no option `retry`; there are: run, script",
    ),
    (
        "{run: fetch.py, depends_on: b}",
        "approvers, four_eyes; did you mean `needs`?",
    ),
    (
        "{run: fetch.py, if: '${{ true }}'}",
        "`if` is an expression already, and `${{ }}` is no syntax here",
    ),
    (
        "{run: fetch.py, retries: '3'}",
        "`retries` has to be a whole number from 0, not the text \"3\"",
    ),
    (
        "{run: fetch.py, retries: 101}",
        "job `a`: `retries` is 101: give a number from 0 to 100",
    ),
    (
        "{run: fetch.py, timeout: soon}",
        "f.yaml:3:31: job `a`: `timeout` has to be a time as 500ms",
    ),
    (
        "{run: fetch.py, continue: no}",
        "`continue` has to be true or false, not the text \"no\"",
    ),
    (
        "{run: fetch.py, needs: [B]}",
        "`needs`: \"B\" is no name of a job",
    ),
    (
        "{run: fetch.py, needs: [b]}",
        "`needs` names `b`, but no job has this name",
    ),
    (
        "{run: fetch.py, if: '{{ true }}'}",
        "`if` is an expression already: leave out the braces",
    ),
    (
        "{run: nothing.py}",
        "f.yaml:3:12: job `a`: the script nothing.py: No such file",
    ),
    ("{run: ., type: python}", "the script .: this is a folder"),
    (
        "{run: fetch.txt}",
        "does not say the type of the script: give `type`",
    ),
    ("{run: '{{x}}.py'}", "templates are not allowed in it"),
    ("{script: x}", "an inline script needs its `type`"),
    ("{script: ' ', type: python}", "the script is empty"),
    (
        "{approve: Go?, type: python}",
        "`type` goes with `run` and `script` only",
    ),
    (
        "{run: fetch.py, four_eyes: true}",
        "`four_eyes` goes with `approve` only",
    ),
    (
        "{approve: Go?, approvers: [admin]}",
        "an approver is the number of an actor",
    ),
    (
        "{approve: Go?, retries: 1}",
        "`retries` goes with `run`, `script` and `flow` only",
    ),
    ("{wait: 2h}", "job `a`: `wait` has to be a map of options"),
    (
        "{wait: {for: 2h, until: 2026-01-31}}",
        "`wait` is {for: 2h}, {until:",
    ),
    (
        "{wait: {until: tomorrow}}",
        "f.yaml:3:21: job `a`: `until` is a time in UTC",
    ),
    ("{wait: {message: done}}", "`wait` is {for: 2h}, {until:"),
    (
        "{run: fetch.py, context: 0}",
        "`context` is the number of a context, from 1",
    ),
    ("{run: fetch.py, priority: urgent}", "is no priority"),
    (
        "{run: fetch.py, env: [A]}",
        "`env` has to be a map of names and values",
    ),
    (
        "{flow: nothing.yaml}",
        "the flow nothing.yaml: No such file",
    ),
];

#[test]
fn options_of_jobs_are_checked() {
    for (options, says) in REFUSED {
        let said = job(options);
        assert!(said.contains(says), "{options}: {said}");
    }
    for good in [
        "{run: fetch.py, if: true}",
        "{run: fetch.py, foreach: [1, a]}",
        "{run: fetch.py, foreach: 3}",
    ] {
        assert_eq!(job(good), "", "{good}");
    }
}

#[test]
fn names_are_checked_at_their_place() {
    for name in ["item", "A", "a-b", "1"] {
        let text = format!("flow: f\njobs:\n  {name}: {{run: fetch.py}}\n");
        let said = Folder::new().yaml(&text).unwrap_err();
        assert!(said.starts_with("f.yaml:3:3: "), "{said}");
    }
}

#[test]
fn all_faults_are_told_at_once() {
    let said = Folder::new()
        .yaml("flow: 1\njobs:\n  a: {}\n  b: {rum: x}\n")
        .unwrap_err();
    assert_eq!(said.lines().count(), 4, "{said}");
}

#[test]
fn nested_flows_are_read_with_their_scripts() {
    let folder = Folder::new();
    fs::create_dir(folder.0.path().join("sub")).unwrap();
    folder.put("sub/own.py", "result = 2\n");
    folder.put(
        "sub/inner.yaml",
        "flow: inner\ninputs: {x: 0}\njobs: {b: {run: own.py}}\n",
    );
    let outer = "flow: outer\njobs:\n  a: {flow: sub/inner.yaml, with: {x: 1}}\n  c: {flow: sub/inner.yaml}\n";
    let plan = folder.yaml(outer).unwrap();
    assert_eq!(
        (plan.depth(), plan.total_jobs(), plan.flows.len()),
        (2, 4, 1)
    );
    let inner = plan.flows.values().next().unwrap();
    assert!(
        inner
            .scripts
            .values()
            .any(|text| text.contains("result = 2"))
    );

    folder.put("sub/inner.yaml", "flow: inner\njobs: {b: {run: gone.py}}\n");
    let said = folder.yaml(outer).unwrap_err();
    assert!(
        said.contains("sub/inner.yaml:2:17: job `b`: the script gone.py"),
        "{said}"
    );
    assert!(
        said.contains("f.yaml:3:13: job `a`: the flow sub/inner.yaml has faults of its own"),
        "{said}"
    );

    folder.put(
        "sub/inner.yaml",
        "flow: inner\njobs: {b: {flow: ../f.yaml}}\n",
    );
    let said = folder.yaml(outer).unwrap_err();
    assert!(said.contains("a flow cannot run itself"), "{said}");
}

#[test]
fn flows_are_nested_eight_levels_deep() {
    let folder = Folder::new();
    folder.put("f1.yaml", "flow: f\njobs: {a: {run: fetch.py}}\n");
    for depth in 2..=9 {
        let text = format!("flow: f\njobs: {{a: {{flow: f{}.yaml}}}}\n", depth - 1);
        let plan = folder.load(&format!("f{depth}.yaml"), &text);
        match depth {
            9 => assert!(plan.unwrap_err().contains("more than 8 levels")),
            _ => assert_eq!(plan.unwrap().depth(), depth),
        }
    }
}

#[test]
fn expressions_are_checked_at_their_place() {
    let text = "flow: f\njobs:\n  a: {run: fetch.py}\n  b: {run: fetch.py, if: a.failed == 0}\n";
    let said = Folder::new().yaml(text).unwrap_err();
    let says = "f.yaml:4:26: job `b`: `if`: `a` may not have ended before: add it to `needs`";
    assert_eq!(said, says);
}
