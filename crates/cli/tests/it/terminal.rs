//! Output of scripts and foreign names on a terminal, where control characters could do harm, and in a pipe.

use crate::common::pty::in_terminal;
use crate::common::{Ground, json, on_all_data};

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
