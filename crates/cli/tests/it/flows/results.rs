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
