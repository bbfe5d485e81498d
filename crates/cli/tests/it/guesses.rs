//! Command lines that users of other job systems type first: each works, or its error names the command or option to use.

use crate::common::{Ground, on_all_data};

/// Result of a guess.
enum Wanted {
    /// The command does it; stdout has this text.
    Works(&'static str),
    /// The error names this.
    Says(&'static str),
}
use Wanted::{Says, Works};

/// Share of guesses that must lead to the command, in percent.
const LEAST: usize = 90;

const OF_JOBS: [(&str, Wanted); 33] = [
    ("enqueue f.rhai --id j2", Works("j2")),
    ("list", Works("j1")),
    ("ps", Works("j1")),
    ("status j1", Works("queued")),
    ("show j1", Works("40 + 2")),
    ("why j1", Works("no worker listens to")),
    ("job why j1", Works("no worker listens to")),
    ("job status j1", Works("queued")),
    ("wait j1 --timeout 0", Says("j1")),
    ("result j1", Says("has no result yet")),
    ("logs j1", Works("")),
    ("cancel j1", Works("j1 cancelled")),
    ("retry j1", Works("j1 queued")),
    ("job stop j1", Works("j1 cancelled")),
    ("job list --failed", Works("state")),
    ("list --state cancelled", Works("j1")),
    ("job retry --state cancelled --yes", Works("j1 queued")),
    ("job ls", Says("`meshwork job list`")),
    ("job rm j1", Says("`meshwork job delete`")),
    ("job kill j1", Says("`meshwork job cancel`")),
    ("job get j1", Says("`meshwork job show`")),
    ("job inspect j1", Says("`meshwork job show`")),
    ("job add f.rhai", Says("`meshwork job enqueue`")),
    ("job rerun j1", Says("`meshwork job retry`")),
    ("kill j1", Says("`meshwork cancel`")),
    ("jobs", Says("`meshwork job list`")),
    ("failed", Says("`meshwork list --failed`")),
    (
        "job show --id j1",
        Says("give it without --id: `meshwork job show ID`"),
    ),
    ("job list --all", Says("`--limit`")),
    ("job list -n 5", Says("`--limit`")),
    ("enqueue f.rhai --countdown 10", Says("`--delay`")),
    ("enqueue f.rhai --max-retries 3", Says("`--retries`")),
    ("enqueue f.rhai --queue osis", Says("`--type`")),
];

const OF_THE_REST: [(&str, Wanted); 30] = [
    ("queue count", Works("osis")),
    ("queue set osis --concurrency 3", Works("concurrency 3")),
    ("queue ls", Says("`meshwork queue list`")),
    ("queue show", Says("`meshwork queue stats`")),
    ("queue clear osis", Says("`meshwork queue purge`")),
    (
        "queue pause --queue osis",
        Says("`meshwork queue pause QUEUE`"),
    ),
    ("queues", Says("`meshwork queue list`")),
    ("stats", Says("`meshwork queue stats`")),
    ("pause osis", Says("`meshwork queue pause`")),
    ("purge osis", Says("`meshwork queue purge`")),
    ("top", Says("`meshwork queue stats --watch`")),
    ("monitor", Says("`meshwork queue stats --watch`")),
    ("workers", Says("`meshwork worker list`")),
    ("worker start", Says("`meshwork worker`")),
    ("worker run", Says("`meshwork worker`")),
    ("worker -c 4", Says("`--concurrency`")),
    ("start", Says("`meshwork worker`")),
    ("serve", Says("`meshwork supervisor`")),
    ("dlq", Says("`meshwork dead list`")),
    ("dead replay --all --yes", Works("")),
    ("ping", Says("`meshwork doctor`")),
    ("cron list", Works("")),
    ("schedule ls", Says("`meshwork schedule list`")),
    ("schedule create n f.rhai", Says("`meshwork schedule add`")),
    ("schedule rm n", Says("`meshwork schedule remove`")),
    ("backup", Says("`meshwork export`")),
    (
        "export --to redis://other:6379",
        Says("`meshwork export FILE`, then `meshwork import FILE`"),
    ),
    (
        "import --from redis://other:6379",
        Says("`meshwork export FILE` with REDIS_URL"),
    ),
    (
        "schedule add m f.rhai --every monday",
        Works("m added as '0 0 * * MON'"),
    ),
    ("list --since yesterday", Works("j1")),
];

on_all_data! {
    fn guesses_lead_to_the_command(ground: &Ground) {
        ground.file("f.rhai", "40 + 2");
        ground.run(&["job", "enqueue", "f.rhai", "--id", "j1"]).ok();
        let (mut failures, mut all) = (Vec::new(), 0);
        for (line, wanted) in OF_JOBS.iter().chain(&OF_THE_REST) {
            let words: Vec<_> = line.split(' ').collect();
            let done = ground.run(&words);
            let leads = match wanted {
                Works(text) => done.code == Some(0) && done.stdout.contains(text),
                Says(text) => done.code != Some(0) && done.stderr.contains(text),
            };
            // The wrong tip: a value cannot be the wanted option.
            if !leads || done.stderr.contains("as a value") {
                failures.push(format!("{line}: {done:#?}"));
            }
            all += 1;
        }
        assert_eq!(all, 63);
        assert!(failures.is_empty() || failures.len() * 100 <= all * (100 - LEAST), "{}", failures.join("\n"));
    }

    fn short_forms_are_the_commands_of_job(ground: &Ground) {
        ground.file("f.rhai", "40 + 2");
        let id = ground.run(&["--json", "enqueue", "f.rhai"]).ok().json()["id"].clone();
        let id = id.as_str().unwrap();
        for (short, whole) in [("show", "show"), ("status", "show"), ("why", "why"), ("list", "list"), ("ps", "list")] {
            let mut args = vec!["job", whole, "--json"];
            let mut word = vec![short, "--json"];
            if whole != "list" {
                args.push(id);
                word.push(id);
            }
            assert_eq!(ground.run(&word).ok().stdout, ground.run(&args).ok().stdout, "{short}");
        }
        let why = ground.run(&["why", id, "--json"]).ok().json();
        assert_eq!(why["status"], "dispatched");
        let reasons = why["reasons"].as_array().unwrap();
        assert!(reasons.iter().any(|reason| reason.as_str().unwrap().contains("no worker listens")), "{why}");
        assert!(ground.run(&["--help"]).ok().stdout.contains("`meshwork enqueue` is `meshwork job enqueue`"));
        assert!(ground.run(&["help", "enqueue"]).ok().stdout.contains("--depends-on"));
    }

    /// The hint stands before the usage, the usage names no other options, and an argument commands no terminal.
    fn an_error_of_the_command_line_can_be_read(ground: &Ground) {
        for (words, parts) in [
            (&["status"][..], &["<ID>\n\nhint: `meshwork list`", "\n\nUsage: meshwork job show"][..]),
            (&["worker", "--processes", "4"], &["\n\nhint: --concurrency is the number", "Usage: meshwork worker [OPTIONS]"]),
            (&["ui"], &["'ui'\n\nhint: `meshwork dashboard`\n\nUsage: meshwork"]),
            (&["job", "cancel"], &["<ID…|--all|FILTER>\n\nUsage: meshwork job cancel [OPTIONS] <ID…|--all|FILTER>\n"]),
            (&["job", "list", "--\u{1b}[31mx"], &["'--\\u{1b}[31mx'"]),
            (&["a\u{1b}]0;t\u{7}\nstate finished"], &["'a\\u{1b}]0;t\\u{7}\\nstate finished'"]),
        ] {
            let done = ground.run(words).exits(2);
            for part in parts {
                assert!(done.stderr.contains(part), "{words:?}: {part:?} in {}", done.stderr);
            }
            assert!(!done.stderr.contains('\u{1b}'), "{:?}", done.stderr);
            assert!(!done.stderr.contains("Usage: meshwork worker --processes"), "{}", done.stderr);
        }
        let help = ground.run(&["batch", "add", "-h"]).ok().stdout;
        assert!(help.contains("Usage: meshwork batch add [OPTIONS] <BATCH> <FILE>..."), "{help}");
    }

    fn a_command_that_waits_prints_the_end_of_a_log(ground: &Ground) {
        ground.file("f.py", "for n in range(5000): print('line', n)\nresult = 1");
        let _worker = ground.worker(&["--type", "python"]);
        let id = ground.run(&["enqueue", "f.py"]).ok().stdout;
        let id = id.trim();
        for words in [["wait", id], ["result", id]] {
            let done = ground.run(&words).ok();
            assert_eq!(done.stdout, "1\n");
            assert!(done.stderr.contains(&format!("earlier lines: `meshwork job logs {id}`")), "{}", done.stderr);
            assert!(done.stderr.ends_with("line 4999\n") && done.stderr.lines().count() == 11, "{}", done.stderr);
        }
    }

    fn arguments_of_programs_keep_their_tip(ground: &Ground) {
        ground.file("f.rhai", "1");
        let done = ground.run(&["run", "f.rhai", "--color"]).exits(2);
        assert!(done.stderr.contains("-- --color"), "{}", done.stderr);
    }

    fn all_queues_and_all_workers_at_once(ground: &Ground) {
        ground.file("f.rhai", "1");
        ground.file("f.sh", "echo 1");
        ground.run(&["queue", "pause", "--all"]).ok();
        ground.run(&["enqueue", "f.rhai", "--priority", "high"]).ok();
        ground.run(&["enqueue", "f.sh"]).ok();
        let asks = ground.run(&["queue", "pause", "--all"]).exits(2);
        assert!(asks.stderr.contains("to pause 2 queues needs a confirmation"), "{}", asks.stderr);
        let paused = |wanted: bool| {
            let set = ground.run(&["queue", "limit", "show", "--json"]).ok().jsons();
            set.iter().filter(|queue| queue["paused"] == wanted).count()
        };
        assert_eq!(paused(true), 0);
        ground.run(&["queue", "pause", "--all", "--yes"]).ok();
        assert_eq!(paused(true), 2);
        ground.run(&["queue", "resume", "--all", "--yes"]).ok();
        assert_eq!(paused(true), 0);
        ground.run(&["queue", "pause"]).exits(2);
        ground.run(&["queue", "pause", "osis", "--all"]).exits(2);
        ground.run(&["worker", "stop", "--all", "--yes"]).ok();
        let one = ground.worker(&["--type", "osis", "--lease", "3"]);
        let two = ground.worker(&["--type", "exec", "--lease", "3"]);
        ground.run(&["worker", "stop", "--all"]).exits(2);
        let quiet = ground.run(&["worker", "quiet", "--all", "--yes", "--json"]).ok().jsons();
        assert_eq!(quiet.len(), 2);
        ground.run(&["worker", "stop", "--all", "--yes"]).ok();
        one.ended().ok();
        two.ended().ok();
    }
}

/// A URL in the environment is no part of what is to be typed.
#[test]
fn a_usage_names_no_option_of_the_environment() {
    let ground = Ground::url("redis://127.0.0.1:1");
    for args in [
        &["job", "show"][..],
        &["job", "nosuch"],
        &["queue", "limit", "set"],
        &["enqueue", "a.rhai", "--nosuch"],
        &["job", "cancel", "a", "--all"],
        &["batch", "add"],
    ] {
        let said = ground.run(args).exits(2).stderr;
        assert!(said.contains("Usage: meshwork"), "{args:?}: {said}");
        assert!(!said.contains("--redis"), "{args:?}: {said}");
    }
}
