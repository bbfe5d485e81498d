//! Output of scripts and foreign names on a terminal, where control characters could do harm, and in a pipe.

use meshwork_test_servers::fakes::mycelium::hosted::FakeMycelium;
use meshwork_test_servers::servers::RealServer;

use crate::common::pty::in_terminal;
use crate::common::{Ground, Running, eventually, json, on_all_data};

/// A command to a terminal, as scripts print it.
const RED: &str = "\u{1b}[31m";
/// The same with a control character of ISO 8859, which some terminals obey.
const C1: &str = "\u{9b}31m";

/// Prints them to stdout and stderr, and returns them.
const SCRIPT: &str = r#"
import sys
print("\x1b[31mout \u009b31m")
print("\x1b[31merr", file=sys.stderr)
result = "\x1b[31mres \u009b31m"
"#;

fn ended(ground: &Ground) {
    ground.file("a.py", SCRIPT);
    ground.run(&["job", "enqueue", "a.py", "--id", "a"]).ok();
    let worker = ground.worker(&["--type", "python"]);
    ground.run(&["job", "wait", "a"]).ok();
    worker.stop();
}

on_all_data! {
    fn a_terminal_gets_no_commands_of_scripts(ground: &Ground) {
        ended(ground);
        for (args, word) in [
            (&["job", "result", "a"][..], "res"),
            (&["job", "wait", "a"], "res"),
            (&["job", "logs", "a"], "out"),
            (&["job", "logs", "a"], "err"),
            (&["job", "logs", "-f", "a"], "err"),
            (&["run", "a.py"], "res"),
        ] {
            let Some(done) = in_terminal(&ground.command(args), &[]) else { return };
            let shown = done.ok().stdout;
            assert!(!shown.contains(RED) && !shown.contains(C1), "{args:?}: {shown:?}");
            assert!(shown.contains(&format!("\u{fffd}[31m{word}")), "{args:?}: {shown:?}");
            let raw = [args, &["--raw"]].concat();
            let shown = in_terminal(&ground.command(&raw), &[]).unwrap().ok().stdout;
            assert!(shown.contains(&format!("{RED}{word}")), "{args:?}: {shown:?}");
        }
    }

    fn a_pipe_gets_the_bytes(ground: &Ground) {
        ended(ground);
        let result = format!("{RED}res {C1}\n");
        assert_eq!(ground.run(&["job", "result", "a"]).ok().stdout, result);
        let logs = ground.run(&["job", "logs", "-f", "a"]).ok();
        assert_eq!(logs.stdout, format!("{RED}out {C1}\n"));
        assert!(logs.stderr.contains(&format!("{RED}err")), "{logs:?}");
        let done = ground.run(&["run", "a.py"]).ok();
        assert_eq!(done.stdout, result);
        assert!(done.stderr.contains(&format!("{RED}out {C1}")), "{done:?}");
    }

    fn json_has_no_control_characters(ground: &Ground) {
        ended(ground);
        let done = ground.run(&["job", "result", "a", "--json"]).ok();
        let odd = |c: char| c.is_control() && c != '\n';
        assert!(!done.stdout.contains(odd), "{:?}", done.stdout);
        assert_eq!(done.json()["output"], format!("{RED}res {C1}"));
        ground.file("b.rhai", "\"{\\\"a\\\":\\\"\\u202e\\u009b\\\"}\"");
        let done = ground.run(&["run", "b.rhai", "--json"]).ok();
        assert!(!done.stdout.contains(['\u{202e}', '\u{9b}']), "{:?}", done.stdout);
        let value = &done.json()["output"];
        assert!(*value == json("{\"a\":\"\u{202e}\u{9b}\"}") || value.is_string(), "{value}");
    }
}

/// Returns the lines that stay on a screen, without colours and other commands to the terminal.
fn on_screen(text: &str) -> Vec<String> {
    let text = console::strip_ansi_codes(text);
    // What follows a carriage return overwrites the line.
    let shown = |line: &str| {
        let line = line.trim_end_matches('\r');
        line.rsplit('\r')
            .next()
            .unwrap_or_default()
            .trim_end()
            .to_owned()
    };
    text.split('\n').map(shown).collect()
}

on_all_data! {
    /// The terminal of these tests has 80 columns.
    fn nothing_wraps_in_80_columns(ground: &Ground) {
        let long = "0123456789".repeat(12);
        ground.file("bad.py", format!("raise ValueError('{long}')"));
        let group = format!("group-{}", &long[..20]);
        ground.run(&["job", "enqueue", "bad.py"]).ok();
        ground.run(&["job", "enqueue", "bad.py", "--group", &group]).ok();
        let worker = ground.worker(&["--type", "python", "--instance", "an-instance-with-a-name"]);
        ground.job_that_is("failed");
        for (args, columns) in [
            (&["job", "list"][..], &["id", "state", "error"][..]),
            (&["dead", "list"], &["id", "reason", "error"]),
            (&["worker", "list"], &["type", "jobs", "slots", "id"]),
            (&["queue", "list"], &["queue", "waiting", "running", "listeners"]),
            (&["queue", "stats", "--interval", "0.5"], &["queue", "waiting", "workers", "errors"]),
            (&["queue", "limit", "show"], &["queue", "set"]),
            (&["schedule", "list"], &["name"]),
            (&["batch", "list"], &["id", "state"]),
        ] {
            let Some(done) = in_terminal(&ground.command(args), &[]) else { return };
            let lines = on_screen(&done.ok().stdout);
            for line in &lines {
                assert!(console::measure_text_width(line) <= 80, "{args:?}: {line}");
            }
            let head = lines.iter().find(|line| line.contains(columns[0]) && line.contains("  "));
            let head: Vec<_> = head.unwrap().split("  ").map(str::trim).collect();
            for column in columns {
                assert!(head.contains(column), "{args:?} {column}: {lines:#?}");
            }
        }
        worker.stop();
    }

    fn the_dashboard_keeps_workers_and_errors_in_80_columns(ground: &Ground) {
        ended(ground);
        ground.file("bad.py", "raise ValueError(1)");
        ground.run(&["run", "bad.py"]).exits(1);
        let watch = ground.command(&["queue", "stats", "--watch", "--interval", "0.5"]);
        let Some(done) = in_terminal(&watch, &[("script 1", "\u{3}")]) else { return };
        let lines = on_screen(&done.stdout);
        assert!(lines.iter().all(|line| console::measure_text_width(line) <= 80), "{lines:#?}");
        let head = lines.iter().find(|line| line.contains("waiting")).unwrap();
        assert!(head.contains("workers") && head.contains("errors"), "{head}");
    }
}

#[test]
fn a_dashboard_follows_the_width_gives_the_screen_back_at_ctrl_z_and_ends_with_q() {
    let Some(ground) = Ground::embedded() else {
        return;
    };
    let watch = ground.command(&["queue", "stats", "--watch", "--interval", "3600"]);
    let steps = [
        ("queue", "\u{1a}"),
        ("queue", "columns 40"),
        ("queue", "\u{3}"),
    ];
    let Some(done) = in_terminal(&watch, &steps) else {
        return;
    };
    let shown = done.ok().stdout;
    in_terminal(&watch, &[("queue", "xq")]).unwrap().ok();
    for (code, times) in [("\u{1b}[?1049h", 2), ("\u{1b}[?1049l", 2)] {
        assert_eq!(shown.matches(code).count(), times, "{code:?}: {shown:?}");
    }
    let last = shown.rsplit("\u{1b}[H").next().unwrap();
    let narrow = |line: &String| console::measure_text_width(line) <= 40;
    assert!(on_screen(last).iter().all(narrow), "{last:?}");
}

#[test]
fn a_dumb_terminal_gets_no_escapes() {
    let Some(ground) = Ground::embedded() else {
        return;
    };
    ground.file("f.yaml", "flow: f\njobs: {a: {script: '1', type: osis}}\n");
    ground.file("one.rhai", "1");
    for args in [
        &["flow", "run", "f.yaml"][..],
        &["run", "one.rhai"],
        &["queue", "stats"],
        &["job", "list"],
    ] {
        let mut command = ground.command(args);
        command.env("TERM", "dumb");
        let Some(done) = in_terminal(&command, &[]) else {
            return;
        };
        let shown = done.ok().stdout;
        assert!(!shown.contains('\u{1b}'), "{args:?}: {shown:?}");
    }
}

/// Commands that make things; NAME is as long as names can be, with another end the second time.
const MADE: [&str; 7] = [
    "job enqueue bad.py --id NAME-and-as-many-characters-again-for-the-id-of-a-job --retries 0",
    "schedule add NAME bad.py --every 1h",
    "batch create --id NAME --name NAME",
    "key create NAME --scope viewer --expires +90d",
    "schedule add --protocol bananas NAME count --cron @daily",
    "queue pause python:group:NAME --create",
    "queue limit set --protocol bananas NAME --concurrency 2",
];

/// Things whose ids and names are long: failed, paused, scheduled.
fn long_things(ground: &Ground) -> Running {
    let name = "a-name-of-sixty-characters-".repeat(3);
    let name = &name[..59];
    ground.file("bad.py", "raise ValueError('no light')");
    for end in ["a", "b"] {
        for line in MADE {
            let line = line.replace("NAME", &format!("{name}{end}"));
            ground.run(&line.split(' ').collect::<Vec<_>>()).ok();
        }
    }
    ground.run(&["schedule", "pause", &format!("{name}b")]).ok();
    let jobs = "{a: {script: 'throw 1', type: osis}}";
    ground.file(
        "flow.yaml",
        format!("flow: {}\njobs: {jobs}\n", &name[..50]),
    );
    ground.run(&["flow", "run", "flow.yaml"]).exits(1);
    ground.run(&["flow", "deploy", "flow.yaml"]).ok();
    let context = ground.run(&["context", "list", "--json"]).ok().json();
    let context = context["id"].to_string();
    ground.run(&["message", "send", &context, name]).ok();
    ground.run(&["runner", "register", "--type", "python"]).ok();
    let worker = ground.worker(&["--type", "python", "--instance", name]);
    eventually("both have failed", || {
        let all = ground.jobs();
        all.iter().all(|job| job["state"] == "failed").then_some(())
    });
    worker
}

/// Things of other systems and nodes: a dead letter of each, a part without new jobs, a type that migrates, another node.
fn other_things(ground: &Ground, bob: &Ground) {
    let name = "a-name-of-sixty-characters-".repeat(3);
    ground.file("fail.rhai", "throw \"no light\"");
    let handler = "demo.fail=fail.rhai";
    let args = ["service", "--name", "demo", "--handler", handler];
    let mut service = ground.start(&[&args[..], &["--max-attempts", "1", "--json"]].concat());
    service.line();
    let failed = ["action", "send", "demo.fail", "{}"];
    ground.run(&failed).ok();
    eventually("the action is a dead letter", || {
        let dead = ground.run(&["action", "dead", "list", "demo"]).ok().stdout;
        dead.contains("no light").then_some(())
    });
    service.stop();
    let worker = ground.worker(&["--protocol", "bananas", "--handler", "shot=fail.rhai"]);
    let job = format!("bananas submit shot --id {name} --max-retries 1 --wait 60");
    ground.run(&job.split(' ').collect::<Vec<_>>()).exits(1);
    worker.stop();
    // Its parts are contexts, of which many commands expect one.
    let queue = format!("python:group:{}", &name[..59]);
    for parts in ["2", "1"] {
        bob.run(&["queue", "spread", &queue, "--parts", parts]).ok();
    }
    ground.run(&["migrate", "start", "--type", "osis"]).ok();
    let daemon = FakeMycelium::start(&[]);
    let card = bob.run(&["mesh", "card", "--mycelium", &daemon.url()]);
    let card = ground.file("bob.card", card.ok().stdout);
    let trust = [
        "mesh",
        "trust",
        card.to_str().unwrap(),
        "--name",
        &name[..32],
    ];
    ground.run(&trust).ok();
}

/// The address of a database with a row of an outbox that waits.
#[cfg(feature = "outbox")]
fn outbox(ground: &Ground) -> String {
    use meshwork_outbox::sqlx::{SqlitePool, query};
    let url = format!("sqlite://{}", ground.file("app.db", "").display());
    ground.run(&["outbox", "migrate", "--database", &url]).ok();
    let insert = "INSERT INTO meshwork_outbox (id, job) VALUES ('row', '{}')";
    crate::common::wait(async {
        let pool = SqlitePool::connect(&url).await.unwrap();
        query(insert).execute(&pool).await.unwrap();
    });
    url
}

/// Every command that prints a table of things, with the words that stay in each width.
const LISTS: [(&str, &[&str]); 25] = [
    ("action dead list demo", &["id", "error", "Runtime"]),
    ("mesh peers", &["name", "state", "trusted"]),
    ("migrate status", &["type", "phase", "dual", "waiting"]),
    ("queue spread", &["queue", "part", "no new"]),
    ("dead list --protocol bananas", &["id", "error", "Runtime"]),
    ("queue list --protocol bananas", &["list", "jobs"]),
    ("job list", &["state", "failed", "error", "ValueErr"]),
    ("dead list", &["reason", "failed", "error", "ValueErr"]),
    (
        "dead list --groups",
        &["reason", "failed", "error", "ValueErr"],
    ),
    ("schedule list", &["next", "20", "paused"]),
    ("batch list", &["state", "open"]),
    ("worker list", &["type", "python", "state", "id"]),
    ("queue list", &["queue", "waiting", "paused"]),
    ("queue limit show", &["queue", "paused"]),
    ("queue stats --interval 0.5", &["queue", "python"]),
    ("flow list", &["status", "error", "id", "name"]),
    ("flow list --deployed", &["name", "actor"]),
    ("message list", &["message", "status", "outcome"]),
    ("actor list", &["id", "state", "trusted"]),
    ("context list", &["id", "layout", "db"]),
    ("runner list", &["id", "running", "no"]),
    ("key list", &["name", "expires", "20"]),
    ("runtime list", &["type", "missing"]),
    ("schedule list --protocol bananas", &["next", "20", "T"]),
    (
        "queue limit show --protocol bananas",
        &["route", "set", "concurrency 2"],
    ),
];

#[test]
fn what_has_become_of_things_is_shown_in_every_width() {
    // Contexts are databases, so that the node needs a server of its own.
    let Some(server) = RealServer::redis().start() else {
        return;
    };
    let Some(of_bob) = RealServer::redis().start() else {
        return;
    };
    let ground = Ground::url(server.url());
    let worker = long_things(&ground);
    let bob = Ground::url(of_bob.url());
    other_things(&ground, &bob);
    let (ground, bob) = (&ground, &bob);
    let mut lists = LISTS.to_vec();
    #[cfg(feature = "outbox")]
    let outbox = format!("outbox list --database {}", outbox(ground));
    #[cfg(feature = "outbox")]
    lists.push((&outbox, &["id", "state", "waiting", "error"]));
    let lists = &lists;
    let shown_in = |columns: &str, args: &str| {
        let of = if args == "queue spread" { bob } else { ground };
        let mut command = of.command(&args.split(' ').collect::<Vec<_>>());
        command.env("PTY_COLUMNS", columns);
        in_terminal(&command, &[]).map(|done| done.ok().stdout)
    };
    std::thread::scope(|threads| {
        for columns in ["40", "60", "80", "200"] {
            let shown_in = &shown_in;
            threads.spawn(move || {
                for (args, words) in lists {
                    let Some(shown) = shown_in(columns, args) else {
                        return;
                    };
                    let width: usize = columns.parse().unwrap();
                    // A note is no part of the table.
                    let is_note = |line: &String| line.contains(" waiting, the first ");
                    let fits =
                        |line: &String| console::measure_text_width(line) <= width || is_note(line);
                    assert!(
                        on_screen(&shown).iter().all(fits),
                        "{columns} {args}: {shown}"
                    );
                    for word in *words {
                        assert!(shown.contains(word), "{columns} {args} {word}: {shown}");
                    }
                }
            });
        }
    });
    worker.stop();
}

#[test]
fn q_ends_the_watch_of_a_batch() {
    let Some(ground) = Ground::embedded() else {
        return;
    };
    ground.file("one.rhai", "1");
    ground.run(&["batch", "create", "--id", "b"]).ok();
    ground.run(&["batch", "add", "b", "one.rhai"]).ok();
    let watch = ground.command(&["batch", "status", "b", "--watch"]);
    let Some(done) = in_terminal(&watch, &[("0/1", "q")]) else {
        return;
    };
    let done = done.exits(130);
    assert!(done.stdout.contains("batch b goes on"), "{done:?}");
}

#[test]
fn names_of_others_are_made_visible_by_doctor_and_metrics() {
    let Some(ground) = Ground::redis() else {
        return;
    };
    ground.raw("HSET hero:job:j id j script 1 script_type x status dispatched");
    ground.raw("LPUSH \"hero:q:work:type:\\x1b[31mx\" j");
    let done = ground.run(&["doctor"]);
    let shown = "\u{fffd}[31mx (1 waiting)";
    assert!(done.stdout.contains(shown), "{done:?}");
    assert!(!done.stdout.contains(RED), "{done:?}");
    let Some(done) = in_terminal(&ground.command(&["metrics"]), &[]) else {
        return;
    };
    assert!(!done.stdout.contains(RED), "{:?}", done.stdout);
}
