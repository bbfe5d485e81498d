//! Options and values for Bananas that are refused before anything is done, each by its name.

use crate::common::{Ground, Running};

#[test]
fn what_cannot_be_meant_is_refused() {
    let Some(ground) = Ground::embedded() else {
        return;
    };
    ground.file("a.js", "");
    let bananas = ["worker", "--protocol", "bananas"];
    for (args, named) in [
        (vec!["worker"], "--type"),
        (vec!["worker", "--protocol", "jobs"], "--type"),
        (
            vec!["worker", "--type", "osis", "--handler", "a=a.py"],
            "--handler",
        ),
        ([&bananas[..], &["--routes", "a b"]].concat(), "routing key"),
        ([&bananas[..], &["--type", "osis"]].concat(), "--type"),
        ([&bananas[..], &["--group", "gpu"]].concat(), "--group"),
        (
            [&bananas[..], &["--retain-count", "5"]].concat(),
            "--retain-count",
        ),
        ([&bananas[..], &["--handler", "a"]].concat(), "NAME=FILE"),
        ([&bananas[..], &["--handler", "a=a.js"]].concat(), "a.js"),
        (
            [&bananas[..], &["--handler", "a=none.py"]].concat(),
            "none.py",
        ),
        ([&bananas[..], &["--job-timeout", "soon"]].concat(), "90s"),
        (
            [&bananas[..], &["--client-variant", "rust"]].concat(),
            "go-routed",
        ),
        (
            [&bananas[..], &["--config", "none.yaml"]].concat(),
            "none.yaml",
        ),
    ] {
        let said = ground.run(&args).exits(2).stderr;
        assert!(said.contains(named), "{args:?}: {said}");
    }
    let mut command = ground.command(&bananas);
    command.env("WORKER_CONCURRENCY", "none");
    let said = Running::start(command).ended().exits(2).stderr;
    assert!(said.contains("WORKER_CONCURRENCY"), "{said}");
}

#[test]
fn jobs_and_schedules_that_cannot_be_meant_are_refused() {
    let Some(ground) = Ground::embedded() else {
        return;
    };
    for (args, named) in [
        (
            vec![
                "bananas",
                "schedule",
                "add",
                "a",
                "a",
                "--cron",
                "0 0 30 2 *",
            ],
            "30 2",
        ),
        (
            vec![
                "bananas", "schedule", "add", "a", "a", "{", "--cron", "@daily",
            ],
            "no JSON",
        ),
        (vec!["bananas", "submit", "a", "{no json"], "no JSON"),
        (vec!["bananas", "submit", ""], "no name"),
        (
            vec!["bananas", "submit", "a", "--route", "team@alpha"],
            "routing key",
        ),
        (
            vec!["bananas", "submit", "a", "--priority", "urgent"],
            "urgent",
        ),
    ] {
        let said = ground.run(&args).exits(2).stderr;
        assert!(said.contains(named), "{args:?}: {said}");
    }
}
