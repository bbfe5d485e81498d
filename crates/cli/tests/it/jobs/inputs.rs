//! Results along dependencies: what a job finds of those that it has waited for.

use meshwork_test_servers::servers::{Tool, need};
use serde_json::{Value, json};

use crate::common::{Ground, eventually, on_all_data};

/// Runs a script after other jobs, and returns its record.
fn after(ground: &Ground, script: &str, of: &[&str]) -> Value {
    let mut args = vec!["run", script, "--json"];
    for id in of {
        args.extend(["--depends-on", id]);
    }
    let done = ground.run(&args);
    done.json()
}

/// The result of a script that has to do well.
fn result(ground: &Ground, script: &str, of: &[&str]) -> Value {
    let job = after(ground, script, of);
    assert_eq!(job["status"], "finished", "{job}");
    job["output"].clone()
}

/// Runs a script under an id.
fn finished(ground: &Ground, id: &str, script: &str) {
    let file = format!("{id}.rhai");
    ground.file(&file, script);
    ground.run(&["job", "submit", &file, "--id", id]).ok();
    ground.run(&["job", "wait", id]).ok();
}

on_all_data! {
    fn rhai_scripts_find_results_by_name_and_by_id(ground: &Ground) {
        let worker = ground.worker(&["--type", "osis"]);
        finished(ground, "load", "#{ rows: [1, 2, 3] }");
        finished(ground, "word", "\"two words\"");
        ground.file("sum.rhai", "fn sum(rows) { let all = 0; for row in rows { all += row; } all }\n\
            #{ sum: sum(INPUTS.load.rows), word: INPUTS[\"word\"], same: INPUTS[\"first\"], has: \"load\" in INPUTS, \
               not: \"other\" in INPUTS, keys: keys(INPUTS) }");
        let of = ["load=load", "first=word", "word"];
        let sum = result(ground, "sum.rhai", &of);
        let keys = json!(["load", "first"]);
        let expected = json!({"sum": 6, "word": "two words", "same": "two words", "has": true, "not": false, "keys": keys});
        assert_eq!(sum, expected);
        ground.file("none.rhai", "INPUTS.lode");
        let job = after(ground, "none.rhai", &of);
        let error = job["error"].as_str().unwrap();
        assert!(error.contains("no input `lode`: this job has load, first"), "{error}");
        worker.stop();
    }

    fn python_scripts_and_programs_find_results(ground: &Ground) {
        if need(Tool::Python).is_none() {
            return;
        }
        let worker = ground.worker(&["--type", "osis,python,exec"]);
        finished(ground, "load", "#{ rows: [1, 2, 3] }");
        finished(ground, "bytes", "let b = blob(2, 255); b");
        ground.file("sum.py", "result = [sum(inputs['load']['rows']), inputs['load'] == inputs['first'], list(inputs),\n\
            \u{20}    list(inputs['bytes']), inputs.get('other'), 'bytes' in inputs, len(inputs)]");
        let of = ["first=load", "bytes"];
        let sum = result(ground, "sum.py", &of);
        assert_eq!(sum, json!([6, true, ["bytes", "first"], [255, 255], null, true, 2]));
        ground.file("alone.py", "import os\nresult = [len(inputs), 'MESHWORK_INPUTS' in os.environ]");
        assert_eq!(result(ground, "alone.py", &[]), json!([0, false]));
        ground.file("sum.sh", "#!/bin/sh\ncat \"$MESHWORK_INPUTS\"");
        let read = result(ground, "sum.sh", &of);
        assert_eq!(read["first"], json!({"id": "load", "result": {"rows": [1, 2, 3]}}));
        assert_eq!(read["bytes"], json!({"id": "bytes", "base64": "//8="}));
        ground.file("none.py", "inputs['lode']");
        let job = after(ground, "none.py", &of);
        let error = job["error"].as_str().unwrap();
        assert!(error.contains("there is no input 'lode': this job has bytes, first"), "{error}");
        worker.stop();
    }

    fn a_missing_result_says_why(ground: &Ground) {
        if need(Tool::Python).is_none() {
            return;
        }
        ground.file("bad.rhai", "throw \"no\"");
        ground.file("late.rhai", "#{ gone: INPUTS.keys().len() }");
        ground.file("use.rhai", "INPUTS.bad");
        ground.file("use.py", "inputs['gone']");
        ground.file("value.rhai", "1");
        ground.run(&["job", "submit", "value.rhai", "--id", "gone"]).ok();
        ground.run(&["job", "submit", "bad.rhai", "--id", "bad"]).ok();
        let submit = ["job", "submit", "--on-failure", "continue", "--depends-on", "bad=bad", "--depends-on", "gone"];
        for (id, script) in [("rhai", "use.rhai"), ("python", "use.py")] {
            ground.run(&[&submit[..], &["--id", id, script]].concat()).ok();
        }
        let first = ground.worker(&["--type", "osis"]);
        for id in ["bad", "gone", "rhai"] {
            ground.run(&["job", "wait", id]);
        }
        let job = ground.run(&["job", "show", "rhai", "--json"]).ok().json();
        assert!(job["error"].as_str().unwrap().contains("job bad has no result: it is error"), "{job}");
        first.stop();
        ground.run(&["job", "delete", "gone"]).ok();
        let second = ground.worker(&["--type", "python"]);
        ground.run(&["job", "wait", "python"]).exits(1);
        let job = ground.run(&["job", "show", "python", "--json"]).ok().json();
        assert!(job["error"].as_str().unwrap().contains("the result of job gone is gone: it was pruned"), "{job}");
        second.stop();
    }

    fn large_results_are_left_out_and_named(ground: &Ground) {
        if need(Tool::Python).is_none() {
            return;
        }
        ground.file("large.py", "result = 'x' * (10 << 20)");
        let worker = ground.worker(&["--type", "python"]);
        for id in ["one", "two"] {
            ground.run(&["job", "submit", "large.py", "--id", id]).ok();
            ground.run(&["job", "wait", id]).ok();
        }
        ground.file("use.py", "result = len(inputs['one'])\ntry:\n    inputs['two']\nexcept KeyError as error:\n    result = str(error)");
        let said = result(ground, "use.py", &["one", "two"]);
        let said = said.as_str().unwrap();
        assert!(said.contains("job two takes 10485760 bytes"), "{said}");
        assert!(said.contains("`meshwork job result two`"), "{said}");
        worker.stop();
    }

    fn a_killed_worker_takes_no_result_along(ground: &Ground) {
        if need(Tool::Python).is_none() {
            return;
        }
        let begun = ground.path("begun");
        finished_by(ground, "load", "result = [1, 2]");
        ground.file("sum.py", format!(
            "import os, time\nif not os.path.exists({begun:?}):\n    open({begun:?}, 'w').close()\n    time.sleep(600)\nresult = sum(inputs['load'])"
        ));
        ground.run(&["job", "submit", "sum.py", "--id", "sum", "--depends-on", "load"]).ok();
        let worker = ground.worker(&["--type", "python", "--lease", "1"]);
        eventually("the job runs", || begun.exists().then_some(()));
        worker.kill();
        let worker = ground.worker(&["--type", "python", "--lease", "1"]);
        ground.run(&["job", "wait", "sum"]).ok();
        let job = ground.run(&["job", "show", "sum", "--json"]).ok().json();
        assert_eq!(job["output"], json!(3), "{job}");
        worker.stop();
    }

    fn callbacks_find_the_results_of_their_batch(ground: &Ground) {
        ground.file("square.rhai", "let n = parse_int(INPUT); n * n");
        ground.file("all.rhai", "let all = []; for id in keys(INPUTS) { all.push(INPUTS[id]); } all");
        ground.run(&["batch", "create", "--on-success", "all.rhai", "--id", "b"]).ok();
        let (one, two) = (ground.file("one", "3"), ground.file("two", "4"));
        let files = [one, two].map(|path| path.to_str().unwrap().to_owned());
        ground.run(&["batch", "add", "b", "square.rhai", "--each", &files[0], &files[1]]).ok();
        ground.run(&["batch", "seal", "b"]).ok();
        let worker = ground.worker(&["--type", "osis"]);
        ground.run(&["batch", "status", "b", "--watch"]).ok();
        let status = ground.run(&["batch", "status", "b", "--json"]).ok().json();
        let callback = status["callbacks"]["success"].as_str().unwrap();
        ground.run(&["job", "wait", callback]).ok();
        let job = ground.run(&["job", "show", callback, "--json"]).ok().json();
        assert_eq!(job["output"], json!([9, 16]), "{job}");
        worker.stop();
    }

    fn a_name_that_cannot_be_is_refused(ground: &Ground) {
        ground.file("x.rhai", "1");
        ground.run(&["job", "submit", "x.rhai", "--id", "a"]).ok();
        let long = format!("{}=a", "n".repeat(65));
        for bad in ["=a", "a b=a", &long, "name="] {
            let refused = ground.run(&["job", "submit", "x.rhai", "--depends-on", bad]);
            assert_ne!(refused.code, Some(0), "{bad}");
        }
        let lines = ground.file("jobs.jsonl", "{\"type\":\"osis\",\"script\":\"INPUTS.n\",\"id\":\"b\",\"depends_on\":[\"n=a\"]}\n");
        ground.run(&["job", "submit", "--jsonl", lines.to_str().unwrap()]).ok();
        let shown = ground.run(&["job", "show", "b"]).ok().stdout;
        assert!(shown.contains("depends on   n=a\n"), "{shown}");
        assert_eq!(ground.jobs().len(), 2);
    }
}

/// Runs a script in Python under an id.
fn finished_by(ground: &Ground, id: &str, script: &str) {
    let file = format!("{id}.py");
    ground.file(&file, script);
    ground.run(&["job", "submit", &file, "--id", id]).ok();
    let worker = ground.worker(&["--type", "python"]);
    ground.run(&["job", "wait", id]).ok();
    worker.stop();
}
