//! Output of scripts and foreign names on a terminal, where control characters could do harm, and in a pipe.

use crate::common::pty::in_terminal;
use crate::common::{Ground, eventually, json, on_all_data};

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
fn a_dashboard_follows_the_width_and_gives_the_screen_back_at_ctrl_z() {
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

on_all_data! {
    fn what_has_become_of_things_is_shown_in_every_width(ground: &Ground) {
        let id = "an-id-of-one-hundred-characters-".repeat(4);
        ground.file("bad.py", "raise ValueError('no light')");
        for end in ["a", "b"] {
            let args = ["job", "enqueue", "bad.py", "--id", &format!("{}{end}", &id[..99]), "--retries", "0"];
            ground.run(&args).ok();
        }
        ground.run(&["schedule", "add", &id[..60], "bad.py", "--every", "1h"]).ok();
        let worker = ground.worker(&["--type", "python"]);
        eventually("both have failed", || {
            let all = ground.jobs();
            all.iter().all(|job| job["state"] == "failed").then_some(())
        });
        for columns in ["40", "60", "80", "200"] {
            for (args, words) in [
                (&["job", "list"][..], &["failed", "ValueErr"][..]),
                (&["dead", "list"], &["ValueErr"]),
                (&["schedule", "list"], &["next"]),
            ] {
                let mut command = ground.command(args);
                command.env("PTY_COLUMNS", columns);
                let Some(done) = in_terminal(&command, &[]) else { return };
                let shown = done.ok().stdout;
                let width: usize = columns.parse().unwrap();
                let fits = |line: &String| console::measure_text_width(line) <= width;
                assert!(on_screen(&shown).iter().all(fits), "{columns} {args:?}: {shown}");
                for word in words {
                    assert!(shown.contains(word), "{columns} {args:?} {word}: {shown}");
                }
            }
        }
        worker.stop();
    }
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
