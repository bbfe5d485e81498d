//! Results on their way through the store: as a result, as the input of the next job, and as items of a `foreach`.

use serde_json::{Map, Value, json};

use crate::common::Ground;

/// Output of a program, and its value.
fn results() -> Vec<(&'static str, Value)> {
    vec![
        ("[]", json!([])),
        ("{}", json!({})),
        ("[[1, [2, []]], [[]], {}]", json!([[1, [2, []]], [[]], {}])),
        ("9007199254740993", json!(9_007_199_254_740_993_i64)),
        ("-9223372036854775808", json!(i64::MIN)),
        ("9223372036854775808", json!("9223372036854775808")),
        (
            r#"{"id": 18446744073709551616}"#,
            json!({"id": "18446744073709551616"}),
        ),
        // A text that looks like JSON is JSON, unless it is a text of JSON.
        (r#"{"a": "[1]"}"#, json!({"a": "[1]"})),
        (r#""[1]""#, json!("[1]")),
        (r#""{}""#, json!("{}")),
        (r#""7""#, json!("7")),
        ("{broken", json!("{broken")),
        ("{{x}}", json!("{{x}}")),
        ("1e3", json!(1000.0)),
        ("007", json!("007")),
        ("no", json!("no")),
        ("2024-01-01", json!("2024-01-01")),
        ("\u{1F600} \u{e9}", json!("\u{1F600} \u{e9}")),
        ("false", json!(false)),
    ]
}

#[test]
fn results_reach_other_jobs_as_they_are() {
    let Some(ground) = Ground::embedded() else {
        return;
    };
    let mut jobs = Map::new();
    for (number, (text, _)) in results().iter().enumerate() {
        let print = |text: &str| format!("printf %s '{text}'");
        let of = format!("{{{{r{number}.result}}}}");
        jobs.insert(
            format!("r{number}"),
            json!({"script": print(text), "type": "exec"}),
        );
        jobs.insert(
            format!("i{number}"),
            json!({"script": "INPUT", "type": "osis", "needs": format!("r{number}"), "with": {"v": of}}),
        );
        jobs.insert(
            format!("e{number}"),
            json!({"script": print(text), "type": "exec", "foreach": "2"}),
        );
        jobs.insert(
            format!("o{number}"),
            json!({"script": "INPUT", "type": "osis", "needs": format!("e{number}"),
                   "with": {"v": format!("{{{{e{number}.result}}}}")}}),
        );
    }
    ground.file(
        "results.yaml",
        json!({"flow": "results", "jobs": jobs}).to_string(),
    );
    let view = ground
        .run(&["flow", "run", "results.yaml", "--json"])
        .ok()
        .json();
    let found: Map<String, Value> = view["jobs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|job| {
            (
                job["name"].as_str().unwrap().to_owned(),
                job["result"].clone(),
            )
        })
        .collect();
    for (number, (text, value)) in results().iter().enumerate() {
        let of = |kind: &str| &found[&format!("{kind}{number}")];
        assert_eq!(of("r"), value, "the result of {text}");
        assert_eq!(of("i"), &json!({"v": value}), "the input of {text}");
        assert_eq!(of("e"), &json!([value, value]), "the items of {text}");
        assert_eq!(of("o"), &json!({"v": [value, value]}), "the list of {text}");
    }
}

/// Texts that look like values of JSON.
const TEXTS: [&str; 8] = [
    "\"q\"",
    "42",
    "1e5",
    "null",
    "{\"k\": 1}",
    "007",
    "",
    "true",
];

#[test]
fn a_text_stays_a_text() {
    let Some(ground) = Ground::embedded() else {
        return;
    };
    ground.file(
        "texts.yaml",
        "flow: texts\ninputs: {x: null}\njobs: {a: {script: \"ENV.V\", type: osis, env: {V: '{{inputs.x}}'}}}\n\
         outputs: {x: '{{inputs.x}}', again: '{{inputs.x}}{{inputs.x}}', n: '{{inputs.x.len()}}'}\n",
    );
    for text in TEXTS {
        let set = format!("x={text}");
        let run = ["flow", "run", "texts.yaml", "--set", &set, "--json"];
        let view = ground.run(&run).ok().json();
        let outputs = json!({"x": text, "again": format!("{text}{text}"), "n": text.len()});
        assert_eq!(view["outputs"], outputs);
        let id = view["id"].to_string();
        let status = ground.run(&["flow", "status", &id, "--json"]).ok().json();
        assert_eq!(status["outputs"], outputs);
    }
    let run = ["flow", "run", "texts.yaml", "--set", "x=\"q\""];
    let done = ground.run(&run).ok();
    assert_eq!(done.stdout, "again: \"q\"\"q\"\nn: 3\nx: \"q\"\n");
}

/// The result of a job is JSON if it is JSON, and the flow has the text that the job has printed.
#[test]
fn the_result_of_a_flow_has_the_text_of_the_job() {
    let Some(ground) = Ground::embedded() else {
        return;
    };
    for (text, value) in [
        ("1e5", json!(100_000.0)),
        ("\"q\"", json!("q")),
        ("{\"k\":  1}", json!({"k": 1})),
        ("007", json!("007")),
        ("9223372036854775808", json!("9223372036854775808")),
    ] {
        let flow = json!({"flow": "f", "jobs": {"a": {"script": format!("printf %s '{text}'"), "type": "exec"}}});
        ground.file("one.yaml", flow.to_string());
        let done = ground.run(&["flow", "run", "one.yaml"]).ok();
        assert_eq!(done.stdout, format!("{text}\n"));
        let view = ground.run(&["flow", "run", "one.yaml", "--json"]).ok();
        assert_eq!(view.json()["outputs"]["a"], value, "{text}");
    }
}

#[test]
fn an_environment_has_at_most_64_kib() {
    let Some(ground) = Ground::embedded() else {
        return;
    };
    let large = "x".repeat(65_536);
    let refused = |name: &str, file: &str, input: &str| {
        ground.file(name, file);
        let set = format!("x={input}");
        let done = ground.run(&["flow", "run", name, "--set", &set]).exits(2);
        let says = format!(
            "the environment takes {} bytes, `V` alone ",
            input.len() + 1
        );
        assert!(done.stderr.contains(&says), "{}", done.stderr);
        let list = ground.run(&["flow", "list", "--json"]).ok();
        assert_eq!(list.stdout, "", "nothing is stored");
    };
    let of_job = "flow: f\ninputs: {x: ''}\njobs: {a: {script: '1', type: osis}, b: {script: 'ENV.V.len()', type: osis, \
                  env: {V: '{{inputs.x}}'}}}\n";
    let of_flow = "flow: f\ninputs: {x: ''}\nenv: {V: '{{inputs.x}}'}\njobs: {b: {script: 'ENV.V.len()', type: osis}}\n";
    refused("job.yaml", of_job, &large);
    refused("flow.yaml", of_flow, &large);
    let set = format!("x={}", &large[1..]);
    let done = ground
        .run(&["flow", "run", "flow.yaml", "--set", &set])
        .ok();
    assert_eq!(done.stdout, "65535\n");
    // The value is known after a job: the job that would get it fails, before it runs.
    ground.file("pad.rhai", "let s = \"\"; s.pad(131072, \"x\"); s\n");
    ground.file(
        "late.yaml",
        "flow: f\njobs: {a: {run: pad.rhai}, b: {script: ':', type: exec, needs: a, env: {V: '{{a.result}}'}}}\n",
    );
    let view = ground
        .run(&["flow", "run", "late.yaml", "--json"])
        .exits(1)
        .json();
    let error = view["jobs"][1]["error"].as_str().unwrap();
    assert!(
        error.contains("the environment takes 131073 bytes, `V` alone 131073: at most 65536"),
        "{error}"
    );
    assert_eq!(view["jobs"][1]["started_at"], Value::Null);
}

#[test]
fn times_have_milliseconds_and_their_order() {
    let Some(ground) = Ground::embedded() else {
        return;
    };
    ground.file(
        "times.yaml",
        "flow: times\njobs:\n  a: {script: 'echo 1', type: exec}\n  b: {script: '1', type: osis, needs: a, foreach: '3'}\n  \
         c: {script: '1', type: osis, needs: b}\n",
    );
    let view = ground
        .run(&["flow", "run", "times.yaml", "--json"])
        .ok()
        .json();
    let ms = |value: &Value| meshwork_model::time::parse_iso(value.as_str().unwrap()).unwrap();
    let jobs = view["jobs"].as_array().unwrap();
    let items = jobs[1]["items"].as_array().unwrap();
    let mut last = ms(&view["created_at"]);
    let mut odd = 0;
    for run in [&jobs[0], &items[0], &jobs[2]] {
        let (start, end) = (ms(&run["started_at"]), ms(&run["ended_at"]));
        assert!(last <= start && start <= end, "{view}");
        odd += (end % 1000 != 0) as u32;
        last = end;
    }
    assert!(last <= ms(&view["ended_at"]), "{view}");
    // Three ends at whole seconds: one of 10^9 runs.
    assert!(odd > 0, "{view}");
    let job = jobs[0]["id"].as_str().unwrap();
    let shown = ["job", "show", job, "--context", "1", "--json"];
    let shown = ground.run(&shown).ok().json();
    assert_eq!(shown["ended_at"], jobs[0]["ended_at"]);
    assert!(
        ms(&shown["created_at"]) <= ms(&shown["started_at"]),
        "{shown}"
    );
}

#[test]
fn empty_lists_and_maps_have_no_items() {
    let Some(ground) = Ground::embedded() else {
        return;
    };
    let flow = "flow: f\njobs:\n  list: {script: '[]', type: osis}\n  map: {script: '#{}', type: osis}\n  \
                a: {script: '1', type: osis, needs: list, foreach: list.result}\n  \
                b: {script: '1', type: osis, needs: map, foreach: map.result}\n  \
                c: {script: 'INPUT', type: osis, needs: [a, b], with: {a: '{{a.result}}', b: '{{b.total}}'}}\n";
    ground.file("empty.yaml", flow);
    let view = ground
        .run(&["flow", "run", "empty.yaml", "--json"])
        .ok()
        .json();
    assert_eq!(view["outputs"]["c"], json!({"a": [], "b": 0}));
}

#[test]
fn a_foreach_has_at_most_10_000_items() {
    let Some(ground) = Ground::embedded() else {
        return;
    };
    // The first item fails, and the others are skipped.
    let flow = |items: u32| {
        format!(
            "flow: f\njobs:\n  a: {{script: 'throw \"x\"', type: osis, foreach: '{items}', concurrency: 1}}\n"
        )
    };
    ground.file("most.yaml", flow(10_000));
    let view = ground
        .run(&["flow", "run", "most.yaml", "--json"])
        .exits(1)
        .json();
    let items = view["jobs"][0]["items"].as_array().unwrap();
    let count = |status: &str| items.iter().filter(|item| item["status"] == status).count();
    assert_eq!(
        (items.len(), count("error"), count("skipped")),
        (10_000, 1, 9_999)
    );
    assert_eq!(view["jobs"][0]["error"], "1 of 10000 items failed");
    ground.file("more.yaml", flow(10_001));
    let view = ground
        .run(&["flow", "run", "more.yaml", "--json"])
        .exits(1)
        .json();
    let error = view["jobs"][0]["error"].as_str().unwrap();
    assert!(
        error.contains("it has 10001 items: at most 10000 are allowed"),
        "{error}"
    );
    assert_eq!(view["jobs"][0]["items"], Value::Null);
}
