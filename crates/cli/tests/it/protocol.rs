//! `--protocol`: the same nouns for Meshwork's own jobs, jobs of Bananas and actions of Nooble4, each with its own options.

use crate::common::{Ground, on_all_data};

/// The help of a command.
fn help(ground: &Ground, args: &[&str]) -> String {
    ground.run(&[args, &["--help"]].concat()).ok().stdout
}

on_all_data! {
    fn each_protocol_shows_its_own_options(ground: &Ground) {
        let hero = help(ground, &["worker"]);
        let bananas = help(ground, &["worker", "--protocol", "bananas"]);
        let nooble = help(ground, &["worker", "--protocol=nooble"]);
        for (text, own) in [
            (&hero, &["--type", "--retain-age", "--protocol", "--concurrency"][..]),
            (&bananas, &["--handler", "--job-timeout", "--foreign-jobs", "--concurrency", "worker --protocol bananas ["]),
            (&nooble, &["--handler", "--name", "--max-attempts", "worker --protocol nooble ["]),
        ] {
            for word in own {
                assert!(text.contains(word), "{word}: {text}");
            }
        }
        for word in ["--handler", "--job-timeout", "--client-variant", "--no-scheduler"] {
            assert!(!hero.contains(word), "{word}: {hero}");
        }
        assert!(!bananas.contains("--type") && !nooble.contains("--retain-age"));
        assert_eq!(bananas, help(ground, &["worker", "--protocol=bananas"]));
        for noun in ["job", "queue", "dead", "schedule"] {
            let text = help(ground, &[noun]);
            assert!(text.contains("--protocol") && !text.contains("--prefix"), "{text}");
            let text = help(ground, &[noun, "--protocol", "bananas"]);
            assert!(text.contains(&format!("meshwork {noun} --protocol bananas")), "{text}");
        }
    }

    /// The nouns of Bananas print what its commands of before print.
    fn nouns_mean_the_same_as_the_commands_of_before(ground: &Ground) {
        let submit = ["job", "enqueue", "--protocol", "bananas", "count", "{\"a\":1}", "--id", "j1", "--route", "gpu"];
        assert_eq!(ground.run(&submit).ok().stdout, "j1\n");
        let limit = ["queue", "limit", "set", "gpu", "--concurrency", "2", "--protocol", "bananas"];
        ground.run(&limit).ok();
        let cron = ["cron", "add", "--protocol", "bananas", "nightly", "count", "--cron", "0 2 * * *"];
        ground.run(&cron).ok();
        for (noun, before) in [
            (&["job", "show", "j1"][..], &["get", "j1"][..]),
            (&["job", "status", "j1"], &["get", "j1"]),
            (&["queue", "list"], &["queues"]),
            (&["queue", "limit", "show"], &["limit", "show"]),
            (&["dead", "list"], &["dead"]),
            (&["schedule", "list"], &["schedule", "list"]),
        ] {
            for json in [&[][..], &["--json"]] {
                let noun = ground.run(&[noun, &["--protocol", "bananas"], json].concat()).ok();
                let before = ground.run(&[&["bananas"], before, json].concat()).ok();
                assert_eq!((noun.stdout, noun.stderr), (before.stdout, before.stderr));
            }
        }
        let none = ["dead", "retry", "none", "--protocol", "bananas"];
        assert_eq!(ground.run(&none).exits(1).stderr, ground.run(&["bananas", "dead", "replay", "none"]).exits(1).stderr);
        let nooble = ["dead", "list", "--protocol", "nooble", "embedding"];
        assert_eq!(ground.run(&nooble).ok().stdout, ground.run(&["action", "dead", "list", "embedding"]).ok().stdout);
    }

    fn what_is_another_protocols_is_named(ground: &Ground) {
        for (args, words) in [
            (&["worker", "--type", "osis", "--job-timeout", "5m"][..], "--protocol bananas"),
            (&["worker", "--protocol", "bananas", "--retain-age", "5m"], "--protocol jobs"),
            (&["worker", "--protocol", "nooble", "--type", "osis"], "--protocol jobs"),
            (&["worker", "--protocol", "celery"], "possible values"),
            (&["worker", "--protocol"], "a value is required"),
            (&["job", "list", "--protocol", "nooble"], "meshwork action call"),
            (&["job", "list", "--protocol", "bananas"], "unrecognized subcommand"),
            (&["job", "show", "j", "--delay", "1h"], "unexpected argument"),
            (&["queue", "pause", "q", "--protocol", "bananas"], "unrecognized subcommand"),
        ] {
            let before = ground.stored();
            let said = ground.run(args).exits(2).stderr;
            assert!(said.contains(words), "{args:?}: {said}");
            assert_eq!(ground.stored(), before);
        }
        let said = ground.run(&["job", "show", "j", "--delay", "1h"]).exits(2).stderr;
        assert!(!said.contains("--protocol"), "{said}");
    }
}
