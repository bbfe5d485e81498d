//! Numbers of JSON on all ways through the system: their digits stay, or they are refused by name.

use std::fs::File;

use meshwork_test_servers::servers::{Tool, need};
use serde_json::Value;

use crate::common::{Ground, Running, json};

/// Numbers, and whether a signed 64-bit integer or a 64-bit float holds all their digits.
const NUMBERS: [(&str, bool); 17] = [
    ("0", true),
    ("-0", true),
    ("1.0", true),
    ("0.1", true),
    ("2.5e-7", true),
    ("1e16", true),
    ("0.30000000000000004", true),
    ("9007199254740993", true),
    ("9223372036854775807", true),
    ("-9223372036854775808", true),
    ("9223372036854775808", false),
    ("18446744073709551615", false),
    ("10000000000000000000000000000000000000000", false),
    ("1e400", false),
    ("-1e400", false),
    ("9007199254740993.0", false),
    ("0.1234567890123456789012345678901", false),
];

const ECHO: &str = "import sys\nresult = sys.stdin.read()\n";

/// All numbers as a list.
fn all() -> String {
    let numbers: Vec<&str> = NUMBERS.iter().map(|(number, _)| *number).collect();
    format!("[{}]", numbers.join(","))
}

/// The list as Rhai and expressions hold it: a number that 64 bits cannot hold is a text.
fn held() -> Value {
    let held = |(number, exact): &(&str, bool)| match exact {
        true => json(number),
        false => Value::from(*number),
    };
    NUMBERS.iter().map(held).collect()
}

/// A ground with Python; none without it.
fn ground() -> Option<Ground> {
    need(Tool::Python)?;
    let ground = Ground::embedded()?;
    ground.file("echo.py", ECHO);
    ground.file("all.json", all());
    Some(ground)
}

/// The result of a job that ends well, as it is stored.
fn result(ground: &Ground, id: &str) -> String {
    let waited = ground.run(&["job", "wait", id]).ok();
    waited.stdout.trim_end().to_owned()
}

#[test]
fn inputs_and_results_keep_their_bytes() {
    let Some(ground) = ground() else { return };
    let worker = ground.worker(&["--type", "python", "--backoff", "1ms"]);
    let all = all();
    let enqueue = |id: &str, more: &[&str]| {
        let args = [&["job", "enqueue", "echo.py", "--id", id], more].concat();
        let stdin = File::open(ground.path("all.json")).unwrap();
        Running::with_stdin(ground.command(&args), stdin)
            .ended()
            .ok();
    };
    enqueue("option", &["--input", &all]);
    enqueue("file", &["--input", "@all.json"]);
    enqueue("stdin", &["--input", "-"]);
    let line = serde_json::json!({"script": ECHO, "id": "line", "input": all});
    ground.file("jobs.jsonl", line.to_string());
    let lines = "job enqueue --jsonl jobs.jsonl --type python";
    ground.run(&Vec::from_iter(lines.split(' '))).ok();
    let parent = format!("import sys\nresult = submit({ECHO:?}, input=sys.stdin.read())\n");
    ground.file("parent.py", parent);
    let parent = ["job", "enqueue", "parent.py", "--id", "parent"];
    ground.run(&[&parent[..], &["--input", &all]].concat()).ok();
    assert_eq!(result(&ground, "parent"), "parent.1");
    for id in ["option", "file", "stdin", "line", "parent.1"] {
        assert_eq!(result(&ground, id), all, "{id}");
    }
    // A run that fails once, and one that became a dead letter.
    let flaky = "import os, sys\ntext = sys.stdin.read()\nseen = os.environ['SEEN']\n\
        if not os.path.exists(seen):\n    open(seen, 'w').close()\n    raise ValueError('once')\nresult = text\n";
    ground.file("flaky.py", flaky);
    for (id, retries) in [("again", "1"), ("dead", "0")] {
        let seen = format!("SEEN={}", ground.path(id).display());
        let args = ["job", "enqueue", "flaky.py", "--id", id];
        let more = ["--retries", retries, "--env", &seen, "--input", &all];
        ground.run(&[&args[..], &more].concat()).ok();
    }
    ground.run(&["job", "wait", "dead"]).exits(1);
    ground.run(&["dead", "retry", "dead"]).ok();
    assert_eq!(result(&ground, "again"), all);
    assert_eq!(result(&ground, "dead"), all);
    worker.stop();
    // To another store, before and after the run.
    enqueue("waits", &["--input", &all]);
    let export = ground.path("export");
    let export = export.to_str().unwrap();
    ground.run(&["export", export]).ok();
    let Some(other) = Ground::embedded() else {
        return;
    };
    other.run(&["import", export]).ok();
    let worker = other.worker(&["--type", "python"]);
    assert_eq!(result(&other, "option"), all);
    assert_eq!(result(&other, "waits"), all);
    worker.stop();
}

#[test]
fn results_of_other_jobs_keep_their_digits() {
    let Some(ground) = ground() else { return };
    let worker = ground.worker(&["--type", "python,exec,osis"]);
    let all = all();
    ground
        .run(&["job", "enqueue", "echo.py", "--id", "a", "--input", &all])
        .ok();
    ground.file("inputs.sh", "#!/bin/sh\ncat \"$MESHWORK_INPUTS\"\n");
    ground.file("inputs.py", "result = inputs['a']\n");
    ground.file("inputs.rhai", "INPUTS.a");
    ground.file("parsed.rhai", "parse_json(INPUT)");
    let after = |script: &str| {
        let done = ground.run(&["run", script, "--depends-on", "a"]).ok();
        done.stdout.trim_end().to_owned()
    };
    let file = after("inputs.sh");
    assert_eq!(file, format!("{{\"a\":{{\"id\":\"a\",\"result\":{all}}}}}"));
    // Python's integers have any size; its floats have 64 bits.
    let python = after("inputs.py");
    let mut python = python.trim_matches(['[', ']']).split(',').zip(NUMBERS);
    let wrong = python.find(|(got, (number, _))| match *number {
        "-0" => *got != "0",
        "1e400" | "-1e400" => *got != format!("\"{number}\""),
        "9007199254740993.0" | "0.1234567890123456789012345678901" | "1e16" => {
            got.parse::<f64>() != number.parse::<f64>()
        }
        "2.5e-7" => *got != "2.5e-07",
        number => *got != number,
    });
    assert_eq!(wrong, None);
    assert_eq!(json(&after("inputs.rhai")), held());
    let done = ground.run(&["run", "parsed.rhai", "--input", &all]).ok();
    assert_eq!(json(&done.stdout), held());
    worker.stop();
}

#[test]
fn inputs_of_a_flow_keep_their_digits_or_are_refused() {
    let Some(ground) = ground() else { return };
    ground.file(
        "n.yaml",
        "flow: n\ninputs: {n: 1}\njobs: {a: {run: echo.py}}\n",
    );
    for (number, exact) in NUMBERS {
        let checked = ground.run(&[
            "flow",
            "check",
            "n.yaml",
            "--offline",
            "--set",
            &format!("n={number}"),
        ]);
        let literal = format!("flow: n\njobs: {{a: {{run: echo.py, with: {{n: {number}}}}}}}\n");
        ground.file("literal.yaml", literal);
        let read = ground.run(&["flow", "check", "literal.yaml", "--offline"]);
        let input = format!("{{\"n\": {number}}}");
        let given = ["flow", "submit", "n.yaml", "--input", &input];
        if exact {
            checked.ok();
            read.ok();
            continue;
        }
        let name = format!("the input `n` has the number {number}");
        for refused in [checked.exits(2), ground.run(&given).exits(2)] {
            assert!(refused.stderr.contains(&name), "{}", refused.stderr);
        }
        let refused = read.exits(2);
        assert!(refused.stderr.contains(number), "{}", refused.stderr);
    }
    let exact: Vec<&str> = NUMBERS
        .iter()
        .filter(|(_, exact)| *exact)
        .map(|(number, _)| *number)
        .collect();
    let exact = format!("[{}]", exact.join(","));
    ground.file("list.sh", format!("#!/bin/sh\necho '{}'\n", all()));
    ground.file("inputs.sh", "#!/bin/sh\ncat \"$MESHWORK_INPUTS\"\n");
    ground.file(
        "all.yaml",
        "flow: all\ninputs: {given: []}\njobs:\n\
         \x20 list: {run: list.sh}\n\
         \x20 given: {run: echo.py, with: {n: '{{inputs.given}}'}}\n\
         \x20 result: {run: echo.py, needs: list, with: {n: '{{list.result}}'}}\n\
         \x20 each: {run: echo.py, needs: list, foreach: list.result}\n\
         \x20 file: {run: inputs.sh, needs: list}\n",
    );
    let input = format!("{{\"given\": {exact}}}");
    let done = ground
        .run(&["flow", "run", "all.yaml", "--input", &input, "--json"])
        .ok();
    let outputs = done.json()["outputs"].clone();
    assert_eq!(outputs["given"]["n"], json(&exact));
    assert_eq!(outputs["result"]["n"], held());
    assert_eq!(outputs["each"], held());
    assert_eq!(outputs["file"]["list"]["result"], held());
    // The file itself has the bytes.
    let logs = ground.run(&["flow", "logs", "1", "file"]).ok();
    assert!(logs.stdout.contains(&all()), "{}", logs.stdout);
}
