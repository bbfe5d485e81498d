//! `meshwork worker --protocol bananas` and `meshwork bananas`.

use std::path::Path;

use crate::common::{Ground, eventually, json, on_all_data};
use meshwork_test_servers::servers::{RealServer, Tool, need};
use rustix::process::Signal;

const COUNT: &str = "let items = parse_json(INPUT).items; items.len()";
const WORKER: [&str; 3] = ["--protocol", "bananas", "--handler"];

fn started(ground: &Ground, more: &[&str]) -> crate::common::Running {
    ground.file("count.rhai", COUNT);
    ground.file("endless.rhai", "loop { }");
    let handlers = ["count=count.rhai", "--handler", "endless=endless.rhai"];
    ground.worker(&[&WORKER[..], &handlers, more].concat())
}

on_all_data! {
    fn a_job_runs_and_is_shown(ground: &Ground) {
        let worker = started(ground, &["--routes", "gpu,default"]);
        let payload = "{\"items\":[1,2,3],\"big\":12345678901234567890}";
        for like in ["go", "go-routed", "python", "typescript"] {
            let args = ["bananas", "submit", "count", payload, "--client-variant", like, "--route", "gpu", "--wait", "60"];
            assert_eq!(ground.run(&args).ok().stdout.trim(), "3", "{like}");
        }
        let id = ground.run(&["bananas", "submit", "count", payload]).ok().stdout.trim().to_owned();
        let ended = ground.run(&["bananas", "wait", &id, "--json"]).ok().json();
        assert_eq!((&ended["status"], &ended["result"]), (&json("\"completed\""), &json("3")));
        let record = ground.run(&["bananas", "get", &id]).ok().stdout;
        assert!(record.contains("\"big\":12345678901234567890") && record.contains("\"completed\""), "{record}");
        let queues = ground.run(&["bananas", "queues", "--json"]).ok().jsons();
        assert_eq!(queues.last().unwrap(), &json("{\"scheduled\":0,\"processing\":0,\"ours\":0,\"dead\":0}"));
        assert_eq!(worker.stop().jsons()[1]["released"], 0);
    }

    fn what_failed_for_good_is_listed(ground: &Ground) {
        let worker = started(ground, &[]);
        let args = ["bananas", "submit", "nobody", "--max-retries", "1", "--wait", "60"];
        let said = ground.run(&args).exits(1).stderr;
        assert!(said.contains("no handler") && said.contains("nobody"), "{said}");
        let dead = ground.run(&["bananas", "dead", "--json"]).ok().json();
        assert_eq!((&dead["name"], &dead["attempts"]), (&json("\"nobody\""), &json("1")));
        worker.stop();
    }

    fn a_route_is_limited(ground: &Ground) {
        let limit = |args: &[&str]| ground.run(&[&["bananas", "limit"], args].concat());
        let said = limit(&["set", "gpu", "--concurrency", "2", "--rate", "100/min"]).ok().stdout;
        assert_eq!(said.trim(), "gpu concurrency 2, rate 100/min burst 100");
        let set = limit(&["show", "gpu", "--json"]).ok().json();
        assert_eq!((&set["route"], &set["concurrency"]), (&json("\"gpu\""), &json("2")));
        assert_eq!(set["rate"], "100/min burst 100");
        assert!(limit(&["show"]).ok().stdout.contains("concurrency 2, rate 100/min"));
        assert_eq!(limit(&["remove", "gpu", "--rate"]).ok().stdout.trim(), "gpu concurrency 2");
        assert_eq!(limit(&["remove", "gpu"]).ok().stdout.trim(), "gpu no limit");
        assert!(limit(&["show", "--json"]).ok().jsons().is_empty());
        for (args, word) in [
            (&["set", "gpu"][..], "--concurrency"),
            (&["set", "gpu", "--concurrency", "0"], "0"),
            (&["set", "g p", "--concurrency", "1"], "g p"),
            (&["set", "gpu", "--rate", "often"], "often"),
        ] {
            let said = limit(args).exits(2).stderr;
            assert!(said.contains(word), "{said}");
        }
    }

    fn a_killed_worker_gives_its_job_back(ground: &Ground) {
        let worker = started(ground, &["--lease", "1"]);
        let id = ground.run(&["bananas", "submit", "endless"]).ok().stdout.trim().to_owned();
        let processing = || {
            let queues = ground.run(&["bananas", "queues", "--json"]).ok().jsons();
            queues.last().unwrap()["processing"].as_u64()
        };
        eventually("it runs", || processing().filter(|jobs| *jobs == 1));
        worker.kill();
        ground.file("endless.rhai", "7");
        let handlers = ["endless=endless.rhai", "--lease", "1"];
        let worker = ground.worker(&[&WORKER[..], &handlers].concat());
        assert_eq!(ground.run(&["bananas", "wait", &id]).ok().stdout.trim(), "7");
        eventually("no Meshwork job stays there", || processing().filter(|jobs| *jobs == 0));
        worker.stop();
    }
}

/// Options override Bananas' own variables.
#[test]
fn bananas_own_names_are_heard() {
    let Some(ground) = Ground::embedded() else {
        return;
    };
    let start = |args: &[&str]| {
        let mut command =
            ground.command(&[&["worker", "--protocol", "bananas", "--json"], args].concat());
        command.envs([
            ("WORKER_ROUTING_KEYS", "gpu,eu-1"),
            ("WORKER_CONCURRENCY", "3"),
            ("JOB_TIMEOUT", "90s"),
            ("MAX_RETRIES", "5"),
        ]);
        let mut worker = crate::common::Running::start(command);
        let event = json(&worker.line());
        worker.stop();
        event["routes"].clone()
    };
    assert_eq!(start(&[]), json("[\"gpu\",\"eu-1\"]"));
    assert_eq!(start(&["--routes", "default"]), json("[\"default\"]"));
}

/// Environment variables in the formats of compose files, Go and other workers of Bananas.
#[test]
fn bananas_own_variables_stop_nobody() {
    let Some(ground) = Ground::embedded() else {
        return;
    };
    let start = |args: &[&str], variables: &[(&str, &str)]| {
        let mut command = ground.command(&[&["worker", "--json"], args].concat());
        command.envs(variables.iter().copied());
        let mut worker = crate::common::Running::start(command);
        let event = json(&worker.line());
        worker.signal(Signal::INT);
        (event, worker.ended().ok().stderr)
    };
    let empty = [
        ("WORKER_ROUTING_KEYS", ""),
        ("JOB_TIMEOUT", ""),
        ("MAX_RETRIES", ""),
        ("WORKER_CONCURRENCY", ""),
        ("MESHWORK_BINDINGS", ""),
        ("MESHWORK_METRICS_ADDR", ""),
    ];
    let (event, said) = start(&["--protocol", "bananas"], &empty);
    assert_eq!(event["routes"], json("[\"default\"]"));
    assert!(said.contains("no handler"), "{said}");
    let bananas = [
        ("JOB_TIMEOUT", "1h30m"),
        ("WORKER_MODE", "specialized"),
        ("SCHEDULER_INTERVAL", "5s"),
    ];
    let (_, said) = start(&["--protocol", "bananas"], &bananas);
    assert!(
        said.contains("WORKER_MODE, SCHEDULER_INTERVAL has no effect"),
        "{said}"
    );
    // What is for workers of Bananas is nothing to others, and a group that was said goes before routes that were not.
    let others = [
        ("JOB_TIMEOUT", "soon"),
        ("MAX_RETRIES", "x"),
        ("WORKER_ROUTING_KEYS", "gpu"),
    ];
    let (event, _) = start(&["--type", "osis", "--group", "g"], &others);
    assert_eq!(event["group"], "g");
    let (event, _) = start(&["--type", "osis"], &others);
    assert_eq!(event["routes"], "gpu");
    for (variable, value) in [
        ("JOB_TIMEOUT", "soon"),
        ("MAX_RETRIES", "x"),
        ("WORKER_ROUTING_KEYS", "team@alpha"),
    ] {
        let mut command = ground.command(&["worker", "--protocol", "bananas"]);
        command.env(variable, value);
        let said = crate::common::Running::start(command)
            .ended()
            .exits(2)
            .stderr;
        assert!(said.contains(variable) && said.contains(value), "{said}");
    }
}

/// In the examples: a job goes to whoever takes from its route first.
#[test]
fn the_workers_of_a_route_have_handlers_for_its_jobs() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/bananas");
    let lines = |name: &str, key: &str| -> Vec<String> {
        let text = std::fs::read_to_string(folder.join(name)).unwrap();
        let behind = text.split_once(key).unwrap().1.to_owned();
        let lines = behind
            .lines()
            .skip(1)
            .take_while(|line| line.starts_with("    "));
        lines.map(|line| line.trim().to_owned()).collect()
    };
    let all = lines("default.yaml", "handlers:");
    for handler in lines("gpu.yaml", "handlers:") {
        assert!(all.contains(&handler), "{handler}");
    }
}

/// Options and variables override the settings file.
#[test]
fn a_file_says_what_a_worker_is_to_do() {
    let Some(ground) = Ground::embedded() else {
        return;
    };
    std::fs::create_dir(ground.path("handlers")).unwrap();
    ground.file("handlers/count.rhai", COUNT);
    ground.file(
        "worker.yaml",
        "worker:\n  routing_keys: [gpu, eu-1]\n  handlers: [count, other]\n",
    );
    let config = ["--protocol", "bananas", "--config", "worker.yaml"];
    let other = ["--handler", "other=handlers/count.rhai"];
    let routes = |more: &[&str]| {
        let args = [&["worker", "--json"], &config[..], &other, more].concat();
        let mut worker = ground.start(&args);
        let event = json(&worker.line());
        let submit = [
            "bananas",
            "submit",
            "count",
            "{\"items\":[1,2]}",
            "--wait",
            "60",
        ];
        let done = ground.run(&[&submit[..], &["--route", "eu-1"]].concat());
        assert_eq!(done.ok().stdout.trim(), "2");
        worker.stop();
        event["routes"].clone()
    };
    assert_eq!(routes(&[]), json("[\"gpu\",\"eu-1\"]"));
    assert_eq!(routes(&["--routes", "eu-1"]), json("[\"eu-1\"]"));
    let said = ground
        .run(&[&["worker"], &config[..]].concat())
        .exits(2)
        .stderr;
    assert!(
        said.contains("worker.yaml") && said.contains("other"),
        "{said}"
    );
}

/// The three workers of the seed, from the folder of examples: each takes what is for it, and one helps another.
#[test]
fn the_workers_of_the_seed_run() {
    let Some(ground) = Ground::redis() else {
        return;
    };
    let Some(python) = need(Tool::Python) else {
        return;
    };
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/bananas");
    let start = |name: &str| {
        let config = examples.join(name);
        let args = [
            "worker",
            "--json",
            "--protocol",
            "bananas",
            "--config",
            config.to_str().unwrap(),
        ];
        let mut command = ground.command(&args);
        command.env("MESHWORK_PYTHON", &python);
        let mut worker = crate::common::Running::start(command);
        (json(&worker.line())["routes"].clone(), worker)
    };
    let run = |name: &str, payload: &str, route: &str| {
        let submit = [
            "bananas", "submit", name, payload, "--route", route, "--wait", "60",
        ];
        ground.run(&submit).ok().stdout.trim().to_owned()
    };
    let stop = |worker: crate::common::Running| {
        worker.stop();
    };
    let (routes, gpu) = start("gpu.yaml");
    assert_eq!(routes, json("[\"gpu\"]"));
    let points = "{\"points\":[[0,1],[1,3],[2,5]]}";
    let line = json(&run("train_model", points, "gpu"));
    assert_eq!(line, json("{\"slope\":2.0,\"intercept\":1.0}"));
    stop(gpu);
    let (routes, default) = start("default.yaml");
    assert_eq!(routes, json("[\"default\",\"gpu\"]"));
    let (_, email) = start("email.yaml");
    assert_eq!(run("process_data", "{\"numbers\":[1,2,3]}", "default"), "6");
    let mail = run(
        "send_email",
        "{\"to\":\"a@example.com\",\"subject\":\"Hello\"}",
        "email",
    );
    assert!(mail.contains("Subject: Hello"), "{mail}");
    let size = json(&run(
        "process_image",
        "{\"width\":2560,\"height\":1440}",
        "gpu",
    ));
    assert_eq!(size, json("{\"width\":1280,\"height\":720}"));
    stop(default);
    stop(email);
}

/// A schedule is kept, runs its slots, and is forgotten.
#[test]
fn a_schedule_runs() {
    let Some(ground) = Ground::embedded() else {
        return;
    };
    let add = [
        "bananas",
        "schedule",
        "add",
        "often",
        "count",
        "{\"items\":[1,2]}",
        "--cron",
        "* * * * * *",
    ];
    ground.run(&add).ok();
    ground.run(&add).exits(2);
    ground
        .run(&[&add[..], &["--replace", "--json"]].concat())
        .ok();
    let worker = started(&ground, &[]);
    let listed = || {
        ground
            .run(&["bananas", "schedule", "list", "--json"])
            .ok()
            .json()
    };
    let runs = |least: u64| {
        eventually("a slot runs", || {
            listed()["run_count"].as_u64().filter(|runs| *runs >= least)
        })
    };
    let (first, line) = (runs(1), listed());
    assert_eq!(
        (&line["cron"], &line["name"]),
        (&json("\"* * * * * *\""), &json("\"count\""))
    );
    assert!(
        line["last_run"].is_string() && line["next_run"].is_string(),
        "{line}"
    );
    assert!(runs(first + 1) > first);
    ground.run(&["bananas", "schedule", "remove", "often"]).ok();
    ground
        .run(&["bananas", "schedule", "remove", "often"])
        .exits(5);
    let rows = ground
        .run(&["bananas", "schedule", "list", "--json"])
        .ok()
        .stdout;
    assert_eq!(rows, "");
    worker.stop();
}

/// So that nobody waits for what never comes of it.
#[test]
fn what_says_nothing_is_refused() {
    let Some(ground) = Ground::embedded() else {
        return;
    };
    let twice = ["--handler", "a=b.py", "--handler", "a=c.py"];
    for (args, named) in [
        (
            vec!["bananas", "submit", "a", "--topic", "a.b"],
            "--bindings",
        ),
        (
            vec!["worker", "--type", "osis", "--foreign-jobs", "skip"],
            "--protocol bananas",
        ),
        (
            [&["worker", "--protocol", "bananas"][..], &twice].concat(),
            "given twice",
        ),
    ] {
        let said = ground.run(&args).exits(2).stderr;
        assert!(said.contains(named), "{args:?}: {said}");
    }
}

/// The command in each hint shows the job or schedule.
#[test]
fn hints_name_the_commands_for_bananas() {
    let Some(ground) = Ground::embedded() else {
        return;
    };
    for args in [["bananas", "get", "none"], ["bananas", "wait", "none"]] {
        let said = ground.run(&args).exits(5).stderr;
        assert!(
            said.contains("`meshwork queue list --protocol bananas`"),
            "{said}"
        );
    }
    let add = [
        "bananas", "schedule", "add", "often", "a", "--cron", "@daily",
    ];
    ground.run(&add).ok();
    let said = ground.run(&add).exits(2).stderr;
    assert!(
        said.contains("`meshwork schedule list --protocol bananas`"),
        "{said}"
    );
}

/// The job is stored, and says that no replica has it.
#[test]
fn a_submission_waits_for_replicas() {
    let Some(server) = RealServer::redis().start() else {
        return;
    };
    let ground = Ground::url(format!(
        "{}?wait_replicas=1&wait_timeout_ms=20",
        server.url()
    ));
    let submit = ["bananas", "submit", "count", "{}", "--id", "j1"];
    let said = ground.run(&submit).exits(3).stderr;
    assert!(said.contains("job j1 is stored, but only 0 of 1"), "{said}");
    ground.run(&["bananas", "get", "j1"]).ok();
}
