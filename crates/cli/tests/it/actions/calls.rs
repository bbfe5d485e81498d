//! `meshwork service` and `meshwork action`.

use crate::common::{Ground, Running, eventually, json, on_all_data};

const COUNT: &str = "#{count: parse_json(INPUT).items.len()}";
const TASK: &str = "01900000-0000-7000-8000-000000000001";

/// The service `demo`: `demo.count` counts items, `demo.fail` fails.
fn started(ground: &Ground, dialect: &str) -> Running {
    ground.file("count.rhai", COUNT);
    ground.file("fail.rhai", "throw \"boom\"");
    let mut running = ground.start(&[
        "service",
        "--name",
        "demo",
        "--handler",
        "demo.count=count.rhai",
        "--handler",
        "demo.fail=fail.rhai",
        "--max-attempts",
        "1",
        "--dialect",
        dialect,
        "--json",
    ]);
    assert_eq!(json(&running.line())["event"], "listening");
    running
}

on_all_data! {
    fn a_script_answers_and_the_trace_tells_of_it(ground: &Ground) {
        // The wire of lists has no task, but a trace.
        let other = TASK.replace("01", "0a");
        for (dialect, task) in [("streams", TASK), ("lists", &other)] {
            let service = started(ground, dialect);
            let side = ["--dialect", dialect];
            let call = ["action", "call", "demo.count", "{\"items\":[1,2,3]}", "--dialect", dialect, "--task", task];
            assert_eq!(ground.run(&call).ok().stdout.trim(), "{\"count\":3}");
            let own: Vec<_> = call.iter().copied().chain(["--private-reply", "--json"]).collect();
            let answer = ground.run(&own).ok().json();
            assert_eq!((&answer["success"], &answer["data"]["count"]), (&json("true"), &json("3")));
            let trace = |id: &str| ground.run(&[&["action", "trace", id][..], &side].concat());
            // The trace entry follows the answer.
            let tree = eventually("both are traced", || {
                let output = trace(task);
                (output.stdout.lines().count() == 2).then_some(output.stdout)
            });
            assert!(tree.lines().all(|line| line.starts_with("demo.count ") && line.ends_with(": done")), "{tree}");
            assert_eq!(trace(&task.replace('-', "").to_uppercase()).ok().stdout, tree);
            assert_eq!(trace(answer["trace_id"].as_str().unwrap()).ok().stdout.contains(&tree), dialect == "lists");
            let said = trace("unknown").exits(5).stderr;
            assert!(said.contains("unknown") && said.contains("task"), "{said}");
            let send = [&["action", "send", "demo.count", "--task", task, "--json"][..], &side].concat();
            let sent = ground.run(&send).ok().json();
            eventually("it is traced", || {
                let output = trace(sent["trace_id"].as_str().unwrap());
                output.stdout.contains("demo.count").then_some(())
            });
            service.stop();
        }
    }

    fn a_handler_that_calls_on_from_the_shell_hands_its_trace_on(ground: &Ground) {
        const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
        let parent = format!("00-{TRACE}-b7ad6b7169203331-01");
        for dialect in ["streams", "lists"] {
            let service = started(ground, dialect);
            let call = ["action", "call", "demo.count", "{\"items\":[]}", "--dialect", dialect, "--json"];
            let traced = |answer: serde_json::Value| {
                let trace = answer["trace_id"].as_str().unwrap().to_owned();
                let line = eventually("it is traced", || {
                    let line = ground.run(&["action", "trace", &trace, "--dialect", dialect, "--json"]);
                    line.jsons().pop()
                });
                (trace.replace('-', ""), line["parent"].clone())
            };
            let expected = (TRACE.to_owned(), serde_json::Value::from("b7ad6b7169203331"));
            let answer = ground.run(&[&call[..], &["--traceparent", &parent]].concat()).ok().json();
            assert_eq!(traced(answer), expected);
            let mut command = ground.command(&call);
            command.env("TRACEPARENT", &parent);
            assert_eq!(traced(Running::start(command).ended().ok().json()), expected);
            // That wire has no task but the trace.
            let task = "01900000-0000-7000-8000-00000000000b";
            let words = [&call[..], &["--traceparent", &parent, "--task", task]].concat();
            let (trace, parent) = traced(ground.run(&words).ok().json());
            let of_task = if dialect == "lists" { task.replace('-', "") } else { TRACE.to_owned() };
            assert_eq!((trace, parent), (of_task, expected.1));
            let said = ground.run(&[&call[..], &["--traceparent", "00-0-0-0"]].concat()).exits(2).stderr;
            assert!(said.contains("traceparent"), "{said}");
            service.stop();
        }
    }

    fn what_fails_is_told_or_a_dead_letter(ground: &Ground) {
        for dialect in ["streams", "lists"] {
            let service = started(ground, dialect);
            let side = ["--dialect", dialect];
            let run = |words: &[&str]| ground.run(&[words, &side].concat());
            let said = run(&["action", "call", "demo.fail"]).exits(1).stderr;
            assert!(said.contains("boom"), "{said}");
            run(&["action", "send", "demo.fail", "{\"n\":1}"]).ok();
            // Both dialects have the same dead letters, and queues of their own.
            let (queue, other) = match dialect {
                "streams" => ("nooble4:dev:demo:streams:main", "lists"),
                _ => ("nooble4:dev:demo:actions", "streams"),
            };
            let letter = || {
                let dead = run(&["action", "dead", "list", "demo", "--json"]).ok().jsons();
                dead.into_iter().find(|one| one["queue"] == queue)
            };
            let dead = eventually("it is a dead letter", letter);
            let id = dead["id"].as_str().unwrap();
            assert!(dead["error"].as_str().unwrap().contains("boom"));
            let shown = run(&["action", "dead", "show", "demo", id]).ok().stdout;
            assert!(shown.contains("\"data\":{\"n\":1}"), "{shown}");
            let said = ground.run(&["action", "dead", "replay", "demo", id, "--dialect", other]).exits(2).stderr;
            assert!(said.contains(queue) && said.contains(&format!("--dialect {dialect}")), "{said}");
            run(&["action", "dead", "replay", "demo", id]).ok();
            run(&["action", "dead", "show", "demo", id]).exits(5);
            eventually("it failed again", letter);
            service.stop();
        }
    }

    fn data_may_come_from_elsewhere(ground: &Ground) {
        let service = started(ground, "streams");
        ground.file("data.json", "{\"items\": [1, 2]}\n");
        assert_eq!(ground.run(&["action", "call", "demo.count", "@data.json"]).ok().stdout.trim(), "{\"count\":2}");
        let mut command = ground.command(&["action", "call", "demo.count", "-"]);
        let stdin = std::fs::File::open(ground.path("data.json")).unwrap();
        let output = command.stdin(stdin).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap().trim(), "{\"count\":2}");
        let said = ground.run(&["action", "call", "demo.count", "@absent.json"]).exits(2).stderr;
        assert!(said.contains("absent.json"), "{said}");
        service.stop();
    }

    /// As docs/actions.md has it.
    fn the_example_of_a_handler_answers(ground: &Ground) {
        let embed = concat!(env!("CARGO_MANIFEST_DIR"), "/../meshwork/examples/ingestion/embed.py");
        let handler = format!("embedding.generate={embed}");
        let mut service = ground.start(&["service", "--name", "embedding", "--handler", &handler, "--json"]);
        assert_eq!(json(&service.line())["event"], "listening");
        for (data, vectors) in [("{\"texts\": [\"hola\"]}", "[[4,0]]"), ("{}", "[]")] {
            let answer = ground.run(&["action", "call", "embedding.generate", data]).ok().json();
            assert_eq!(answer["embeddings"], json(vectors));
        }
        service.stop();
    }

    fn who_is_not_there_does_not_answer(ground: &Ground) {
        let said = ground.run(&["action", "call", "nobody.run", "--wait", "0"]).exits(4).stderr;
        assert!(said.contains("after 0 s"), "{said}");
        let help = ground.run(&["action", "notify", "--help"]).ok().stdout;
        assert!(help.contains("<EVENT>") && !help.contains("ACTION_TYPE"), "{help}");
        let said = ground.run(&["action", "call", "nobody.run", "--wait", "1"]).exits(4).stderr;
        assert!(said.contains("nobody.run"), "{said}");
        let heard = ground.run(&["action", "notify", "document_updated", "--as", "documents"]).ok();
        assert_eq!(heard.stdout.trim(), "0");
    }

    fn a_handler_that_nobody_sends_to_is_told(ground: &Ground) {
        ground.file("count.rhai", COUNT);
        let mut service = ground.start(&["service", "--name", "demo", "--handler", "other.count=count.rhai"]);
        let said = service.said();
        assert!(said.contains("other.count") && said.contains("`other`, not to `demo`"), "{said}");
        service.stop();
    }

    fn data_that_is_no_json_is_told_where(ground: &Ground) {
        ground.file("bad.json", "{\n  \"a\": 1,\n  b: 2\n}\n");
        ground.file("bytes.json", b"{\"a\": \"\xff\"}");
        ground.file("empty.json", "\n");
        for (data, words) in [
            ("{\"a\": }", &["the data is no JSON", "expected value", "line 1 column 7"][..]),
            ("", &["the data is no JSON", "{} is an empty object"]),
            ("@bad.json", &["the data in bad.json", "key must be a string", "line 3 column 3"]),
            ("@bytes.json", &["the data in bytes.json", "not UTF-8 from byte 7 on"]),
            ("@empty.json", &["empty.json", "there is nothing"]),
            ("-", &["the data on stdin", "there is nothing"]),
        ] {
            let said = ground.run(&["action", "send", "a.b", data]).exits(2).stderr;
            assert!(words.iter().all(|word| said.contains(word)), "{data}: {said}");
        }
        let said = ground.run(&["action", "send", "a.b", "--callback", "x", "--remember", "[1"]).exits(2).stderr;
        assert!(said.contains("--remember") && said.contains("line 1 column 2"), "{said}");
    }

    fn an_empty_name_is_told_with_its_option(ground: &Ground) {
        ground.file("count.rhai", COUNT);
        let service = ["service", "--name", "demo", "--handler", "demo.x=count.rhai"];
        for (words, option) in [
            (&["service", "--name", "", "--handler", "demo.x=count.rhai"][..], "--name"),
            (&[&service[..], &["--context", ""]].concat(), "--context"),
            (&[&service[..], &["--env", ""]].concat(), "--env"),
            (&["action", "call", "a.b", "--as", ""], "--as"),
            (&["action", "call", "a.b", "--context", ""], "--context"),
            (&["action", "subscribe", "x", "--context", ""], "--context"),
            (&["action", "subscribe", "x", "--of", ""], "--of"),
            (&["action", "dead", "list", "demo", "--context", ""], "--context"),
            (&["action", "dead", "list", "demo", "--callback", ""], "--callback"),
            (&["action", "dead", "list", ""], "<SERVICE>"),
            (&["action", "gateway", "--addr", "127.0.0.1:0", "--service", ""], "--service"),
            (&["action", "gateway", "--addr", "127.0.0.1:0", "--as", ""], "--as"),
        ] {
            let said = ground.run(words).exits(2).stderr;
            let empty = said.contains("it is empty: give a name") || said.contains("a value is required");
            assert!(said.contains(option) && empty, "{words:?}: {said}");
        }
    }

    /// The wire takes any type: services of others may have such ones.
    fn an_odd_type_is_sent_and_told(ground: &Ground) {
        for (action_type, odd) in [("demo.", "empty"), ("demo..x", "empty"), ("demo", "nothing follows"), ("demo.x", "")] {
            let done = ground.run(&["action", "send", action_type]).ok();
            let warns = done.stderr.contains("warning") && done.stderr.contains(odd);
            assert_eq!(warns, !odd.is_empty(), "{action_type}: {}", done.stderr);
        }
        ground.file("count.rhai", COUNT);
        let mut service = ground.start(&["service", "--name", "demo", "--handler", "demo..x=count.rhai"]);
        let said = service.said();
        assert!(said.contains("demo..x") && said.contains("empty"), "{said}");
        service.stop();
    }

    fn bad_words_are_refused(ground: &Ground) {
        ground.file("count.rhai", COUNT);
        for words in [
            &["action", "call", "a.b", "[1]"][..],
            &["action", "call", "a.b", "{}", "--task", "no"],
            &["action", "call", "a.b", "{}", "--dialect", "kafka"],
            &["action", "call", ""],
            &["action", "call", ".b"],
            &["action", "send", "a.b", "{}", "--callback", ""],
            &["action", "call", "a.b", "{}", "--as", ""],
            &["action", "dead", "show", "demo", "x"],
            &["action", "dead", "show", "demo", "1-99999999999999999999"],
            &["service", "--name", "", "--handler", "demo.x=x.py"],
            &["service", "--name", "demo", "--handler", "demo.x=x.sh"],
            &["service", "--name", "demo"],
            &["service", "--name", "a.b", "--handler", "a.b.c=count.rhai"],
            &["service", "--name", "a:b", "--handler", "a:b.c=count.rhai"],
            &["service", "--name", "demo", "--handler", "demo.x=count.rhai", "--context", "a:b"],
            &["service", "--name", "demo", "--handler", "demo.x=count.rhai", "--context", ""],
            &["service", "--name", "demo", "--handler", "demo.x=count.rhai", "--max-attempts", "0"],
            &["service", "--name", "demo", "--handler", "demo.x=count.rhai", "--handler", "demo.x=count.rhai"],
            &["service", "--name", "demo", "--handler", "demo.x=count.rhai", "--rescue-orphans-after", "1h", "--dialect", "lists"],
            &["action", "send", "a.b", "{}", "--context", "a:b"],
        ] {
            ground.run(words).exits(2);
        }
    }
}

/// The help of `notify` is about notifications.
#[test]
fn the_help_of_notify_is_about_notifications() {
    let help = Ground::url("redis://h").run(&["action", "notify", "--help"]);
    let help = help
        .ok()
        .stdout
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    for words in [
        "To those who listen in this context",
        "in whose name it is published",
    ] {
        assert!(help.contains(words), "{words}: {help}");
    }
    assert!(!help.contains("the queue that the service has"), "{help}");
}
