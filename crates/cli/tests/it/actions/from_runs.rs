//! Actions from inside of jobs and handlers: the example of an agent, and the command in programs.

use meshwork_test_servers::servers::{Tool, need};
use serde_json::{Value, json};

use crate::common::{Ground, Running, eventually, on_all_data};

const TASK: &str = "01900000-0000-7000-8000-000000000007";
const TENANT: &str = "01900000-0000-7000-8000-000000000008";
const SESSION: &str = "01900000-0000-7000-8000-000000000009";

/// Starts a service.
fn service(ground: &Ground, name: &str, dialect: &str, handlers: &[&str]) -> Running {
    let begin = ["service", "--name", name, "--dialect", dialect, "--json"];
    let handlers = handlers.iter().flat_map(|handler| ["--handler", handler]);
    let args: Vec<_> = begin.into_iter().chain(handlers).collect();
    let mut service = ground.start(&args);
    assert_eq!(crate::common::json(&service.line())["event"], "listening");
    service
}

/// The trace of a task, once it has so many entries.
fn traced(ground: &Ground, dialect: &str, task: &str, many: usize) -> Vec<Value> {
    let trace = ["action", "trace", task, "--dialect", dialect, "--json"];
    eventually("all actions are traced", || {
        let entries = ground.run(&trace).jsons();
        (entries.len() == many).then_some(entries)
    })
}

/// The distinct values of a field.
fn distinct(entries: &[Value], field: &str) -> Vec<String> {
    let mut values: Vec<_> = entries
        .iter()
        .map(|entry| entry[field].to_string())
        .collect();
    values.sort();
    values.dedup();
    values
}

on_all_data! {
    fn the_agent_calls_its_tools_within_one_task(ground: &Ground) {
        if need(Tool::Python).is_none() {
            return;
        }
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/agent");
        // The wire of lists has no tasks, but a trace.
        for (dialect, task) in [("streams", TASK.to_owned()), ("lists", TASK.replace("07", "0a"))] {
            let start = |name: &str, action: &str, file: &str| {
                service(ground, name, dialect, &[&format!("{action}={folder}/{file}")])
            };
            let query = start("query", "query.rag.execute", "search.py");
            let llm = start("llm", "llm.generate.text", "generate.py");
            let agent = start("execution", "execution.chat", "agent.py");
            let data = r#"{"message": "Project X and the notes"}"#;
            let ids = ["--task", &task, "--tenant", TENANT, "--session", SESSION];
            let call = [&["action", "call", "execution.chat", data, "--dialect", dialect][..], &ids].concat();
            let answer = ground.run(&call).ok().json();
            let text = "I found a document about Project X, and a document about the notes.";
            assert_eq!(answer, json!({ "text": text }));
            let entries = traced(ground, dialect, &task, 4);
            assert_eq!(distinct(&entries, "trace").len(), 1, "{entries:#?}");
            assert_eq!(distinct(&entries, "correlation").len(), 4, "{entries:#?}");
            if dialect == "streams" {
                assert_eq!(distinct(&entries, "task"), [format!("\"{task}\"")]);
            }
            let tree = ground.run(&["action", "trace", &task, "--dialect", dialect]).ok().stdout;
            let name = |line: &str| line.find(|it: char| it != ' ').and_then(|from| line[from..].find(' ').map(|to| line[..from + to].to_owned()));
            let begins: Vec<_> = tree.lines().filter_map(name).collect();
            let expected = ["execution.chat", "  query.rag.execute", "  query.rag.execute", "  llm.generate.text"];
            assert_eq!(begins, expected, "{tree}");
            assert!(tree.lines().skip(1).all(|line| line.contains("called by execution: done")), "{tree}");
            for service in [agent, llm, query] {
                service.stop();
            }
            let left = ground.keys().into_iter().map(|key| String::from_utf8_lossy(&key).into_owned());
            let left: Vec<_> = left.filter(|key| key.contains(":execution:responses:")).collect();
            assert!(left.is_empty(), "{left:?}");
        }
    }

    /// A program has the command, and no access to the store.
    fn a_program_sends_actions_through_its_worker(ground: &Ground) {
        let meshwork = env!("CARGO_BIN_EXE_meshwork");
        ground.file("count.rhai", "#{count: parse_json(INPUT).items.len()}");
        ground.file("fail.rhai", "throw \"boom\"");
        ground.file("relay.sh", format!("#!/bin/sh\n{meshwork} action call demo.count \"$(cat)\"\n"));
        ground.file("all.sh", format!(
            "#!/bin/sh\n\
             set -u\n\
             meshwork() {{ {meshwork} \"$@\"; }}\n\
             meshwork action call demo.count '{{\"items\": [1]}}'\n\
             meshwork action call demo.fail; echo \"code $?\"\n\
             meshwork action call nobody.run --wait 0; echo \"code $?\"\n\
             meshwork action call demo.count --task {TASK}; echo \"code $?\"\n\
             meshwork action notify updated '{{\"n\": 1}}'\n\
             meshwork action send demo.count '{{\"items\": []}}' --json\n\
             meshwork action call demo.count '{{\"items\": [1, 2]}}' --json\n\
             exec 2>&1; meshwork action call demo.fail --json\n\
             env | grep -c 'REDIS_URL\\|MESHWORK_DATA'\n\
             true\n"
        ));
        let service = service(ground, "demo", "streams", &[
            "demo.count=count.rhai", "demo.fail=fail.rhai", "demo.relay=relay.sh",
        ]);
        let call = ["action", "call", "demo.relay", "{\"items\": [1, 2, 3]}", "--task", TASK];
        assert_eq!(ground.run(&call).ok().json(), json!({ "count": 3 }));
        let entries = traced(ground, "streams", TASK, 2);
        assert_eq!((&entries[1]["type"], &entries[1]["from"]), (&json!("demo.count"), &json!("demo")));
        assert_eq!(entries[1]["parent"], entries[0]["span"]);
        let done = ground.run(&["run", "all.sh", "--json"]).ok().json();
        let (output, stderr) = (done["output"].as_str().unwrap(), done["stderr"].as_str().unwrap());
        let lines: Vec<_> = output.lines().collect();
        assert_eq!(lines[..4], ["{\"count\":1}", "code 1", "code 4", "code 2"], "{output} {stderr}");
        assert_eq!(lines[4], "0", "{output}");
        let sent: Value = serde_json::from_str(lines[5]).unwrap();
        let answer: Value = serde_json::from_str(lines[6]).unwrap();
        let failed: Value = serde_json::from_str(lines[7]).unwrap();
        assert_eq!((&answer["success"], &answer["data"]), (&json!(true), &json!({ "count": 2 })));
        assert_eq!(sent["trace_id"], answer["trace_id"]);
        assert!(answer["correlation_id"].is_string() && sent["action_id"].is_string(), "{output}");
        assert_eq!((&failed["success"], &failed["task_id"]), (&json!(false), &answer["task_id"]));
        assert!(failed["error"]["message"].as_str().unwrap().contains("boom"), "{failed}");
        assert_eq!(lines[8..], ["0"], "{output}");
        for words in ["boom", "no answer to nobody.run", "--task is not possible inside a job"] {
            assert!(stderr.contains(words), "{words}: {stderr}");
        }
        service.stop();
    }
}
