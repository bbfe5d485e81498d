//! The words that people try first: each does what it says, whether it is the main word or another one for it.

use crate::common::{Ground, on_all_data};

on_all_data! {
    /// One line for each thing that is wanted, with the first word that comes to mind.
    fn the_first_guess_works(ground: &Ground) {
        ground.file("f.rhai", "40 + 2");
        ground.file("bad.rhai", "throw \"no disk\"");
        let mut failures = Vec::new();
        let mut tried = |args: &[&str], word: &str| {
            let done = ground.run(args);
            if done.code != Some(0) || !done.stdout.contains(word) {
                failures.push(format!("{args:?} has no {word:?}: {done:#?}"));
            }
        };
        tried(&["--version"], "meshwork ");
        tried(&["completions", "bash"], "meshwork");
        tried(&["job", "enqueue", "f.rhai", "--id", "j1"], "j1");
        tried(&["job", "list", "--state", "queued"], "j1");
        tried(&["job", "show", "j1"], "40 + 2");
        tried(&["job", "cancel", "j1"], "j1 cancelled");
        tried(&["job", "list", "--status", "cancelled"], "j1");
        tried(&["job", "submit", "f.rhai", "--id", "j2", "--delay", "1h"], "j2");
        tried(&["worker", "list"], "version");
        tried(&["worker", "--help"], "--concurrency");
        tried(&["cron", "add", "nightly", "--cron", "30 2 * * *", "f.rhai"], "nightly");
        ground.run(&["job", "submit", "f.rhai", "--id", "j3"]).ok();
        tried(&["queue", "purge", "osis", "--yes"], "j3 deleted");
        ground.run(&["job", "submit", "bad.rhai", "--id", "d1"]).ok();
        let worker = ground.worker(&["--type", "osis"]);
        ground.run(&["job", "wait", "d1"]).exits(1);
        tried(&["job", "enqueue", "f.rhai", "--id", "j4", "--wait"], "42");
        tried(&["job", "result", "j4"], "42");
        tried(&["logs", "j4"], "");
        worker.kill();
        tried(&["dead", "retry", "--all", "--yes"], "d1 queued");
        assert!(failures.is_empty(), "{failures:#?}");
        let done = ground.run(&["config", "--port", "80"]).exits(2);
        assert!(done.stderr.contains("docs/operations.md"), "{}", done.stderr);
    }

    /// Other words for a command do the same, and help shows them.
    fn other_words_do_the_same(ground: &Ground) {
        ground.file("f.rhai", "1");
        ground.run(&["job", "submit", "f.rhai", "--id", "j1", "--in", "1h"]).ok();
        for word in ["status", "show"] {
            let job = ground.run(&["job", word, "j1", "--json"]).ok().json();
            assert_eq!((&job["script"], &job["status"]), (&"1".into(), &"dispatched".into()));
            assert!(job["next_run_at"].is_string(), "{job}");
        }
        assert_eq!(ground.run(&["job", "stop", "j1"]).ok().stdout, "j1 cancelled\n");
        ground.run(&["dead", "replay", "--all", "--yes"]).ok();
        let help = ground.run(&["job", "--help"]).ok().stdout;
        for words in ["[alias: stop]", "[alias: status]", "[alias: submit]"] {
            assert!(help.contains(words), "{words}: {help}");
        }
        let help = ground.run(&["job", "submit", "--help"]).ok().stdout;
        assert!(help.contains("--delay") && help.contains("[alias: --in]"), "{help}");
    }

    fn a_result_is_there_when_the_job_has_ended(ground: &Ground) {
        ground.file("f.rhai", "1");
        ground.run(&["job", "submit", "f.rhai", "--id", "j1"]).ok();
        let early = ground.run(&["job", "result", "j1"]).exits(4);
        assert!(early.stderr.contains("has no result yet") && early.stderr.contains("--wait"), "{}", early.stderr);
        ground.run(&["job", "result", "j1", "--wait=10ms"]).exits(4);
        ground.run(&["job", "result", "none"]).exits(5);
        ground.run(&["job", "result", "j1", "--wait=soon"]).exits(2);
        let worker = ground.worker(&["--type", "osis"]);
        assert_eq!(ground.run(&["job", "result", "j1", "--wait=1m"]).ok().stdout, "1\n");
        let job = ground.run(&["job", "enqueue", "f.rhai", "--wait=1m", "--json"]).ok().json();
        assert_eq!((&job["status"], &job["output"]), (&"finished".into(), &1.into()));
        worker.kill();
    }

    fn a_job_is_shown_with_all_that_it_is_made_of(ground: &Ground) {
        ground.file("long.rhai", format!("// {}\nINPUT", "x".repeat(8000)));
        let args = ["job", "submit", "long.rhai", "--id", "j1", "--input", "{\"a\":1}"];
        ground.run(&args).ok();
        ground.run(&["queue", "pause", "osis"]).ok();
        let text = ground.run(&["job", "show", "j1"]).ok().stdout;
        for part in ["state        queued", "held by      its queue is paused", "attempts     0", "created  ", "\nscript:\n// xxx", "bytes more", "\ninput:\n{\"a\":1}"] {
            assert!(text.contains(part), "{part:?}: {text}");
        }
        ground.run(&["queue", "resume", "osis"]).ok();
        let worker = ground.worker(&["--type", "osis"]);
        ground.run(&["job", "wait", "j1"]).ok();
        worker.kill();
        let text = ground.run(&["job", "show", "j1"]).ok().stdout;
        assert!(text.contains("\nresult:\n"), "{text}");
        let json = ground.run(&["job", "show", "j1", "--json"]).ok().json();
        assert!(json["script"].as_str().unwrap().ends_with("INPUT") && json["input"] == "{\"a\":1}", "{json}");
    }
}
