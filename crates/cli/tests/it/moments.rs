//! Times as people write them: in the local zone or that of `--tz`, and the answer has the time that was meant.

use crate::common::{Done, Ground, Running, on_all_data};

/// Runs the command on a host in Nepal.
fn in_nepal(ground: &Ground, args: &[&str]) -> Done {
    let mut command = ground.command(args);
    command.env("TZ", "Asia/Kathmandu");
    Running::start(command).ended()
}

on_all_data! {
    fn a_job_runs_at_a_time_of_the_local_zone_or_of_the_option(ground: &Ground) {
        ground.file("a.rhai", "1");
        for (id, at, zone, local, moment) in [
            ("j1", "2099-12-01 09:00", &[][..], "2099-12-01T09:00:00+05:45", "2099-12-01T03:15:00.000Z"),
            ("j2", "2099-12-01 9am", &["--tz", "Europe/Brussels"], "2099-12-01T09:00:00+01:00", "2099-12-01T08:00:00.000Z"),
            ("j3", "2099-12-01", &["--tz", "UTC"], "2099-12-01T00:00:00Z", "2099-12-01T00:00:00.000Z"),
        ] {
            let args = [&["enqueue", "a.rhai", "--id", id, "--at", at], zone].concat();
            let done = in_nepal(ground, &args).ok();
            assert!(done.stderr.contains(&format!("runs at {local}\n")), "{}", done.stderr);
            assert_eq!(ground.run(&["show", id, "--json"]).ok().json()["next_run_at"], moment);
        }
        let done = in_nepal(ground, &["enqueue", "a.rhai", "--id", "j4", "--at", "tomorrow 9:00"]).ok();
        assert!(done.stderr.contains("T09:00:00+05:45\n"), "{}", done.stderr);
        let exact = in_nepal(ground, &["enqueue", "a.rhai", "--id", "j5", "--at", "2099-12-01T09:00:00Z"]).ok();
        assert!(!exact.stderr.contains("runs at"), "{}", exact.stderr);
        let lines = "{\"script\":\"1\",\"type\":\"osis\",\"id\":\"l1\",\"at\":\"2099-12-01 09:00\"}\n\
                     {\"script\":\"1\",\"type\":\"osis\",\"id\":\"l2\",\"at\":\"2099-12-01 09:00\",\"tz\":\"UTC\"}\n";
        ground.file("jobs", lines);
        in_nepal(ground, &["enqueue", "--jsonl", "jobs", "--tz", "Europe/Brussels"]).ok();
        for (id, moment) in [("l1", "2099-12-01T08:00:00.000Z"), ("l2", "2099-12-01T09:00:00.000Z")] {
            assert_eq!(ground.run(&["show", id, "--json"]).ok().json()["next_run_at"], moment);
        }
        let done = ground.run(&["enqueue", "a.rhai", "--at", "soon"]).exits(2);
        assert!(done.stderr.contains("'tomorrow 9:00'"), "{}", done.stderr);
    }

    fn lists_are_limited_by_days(ground: &Ground) {
        ground.file("a.rhai", "1");
        ground.run(&["enqueue", "a.rhai", "--id", "j1"]).ok();
        let since = in_nepal(ground, &["list", "--since", "yesterday"]).ok();
        assert!(since.stdout.contains("j1"), "{}", since.stdout);
        assert!(since.stderr.starts_with("since 2") && since.stderr.contains("T00:00:00+05:45\n"), "{}", since.stderr);
        assert!(!ground.run(&["list", "--until", "yesterday"]).ok().stdout.contains("j1"));
        let zone = ["--tz", "Europe/Brussels"];
        for args in [&["events"][..], &["dead", "list"]] {
            let done = ground.run(&[args, &["--since", "2026-01-31 12:00"], &zone].concat()).ok();
            assert_eq!(done.stderr, "since 2026-01-31T12:00:00+01:00\n");
        }
    }

    fn a_schedule_runs_on_days_of_the_week(ground: &Ground) {
        ground.file("a.rhai", "1");
        for (name, every, zone, meant) in [
            ("s1", "monday", &[][..], "s1 added as '0 0 * * MON' in Asia/Kathmandu, next 2"),
            ("s2", "weekdays 9:00", &["--tz", "Europe/Brussels"], "s2 added as '0 9 * * MON-FRI' in Europe/Brussels, next 2"),
            ("s3", "day", &["--tz", "UTC"], "s3 added as '0 0 * * *' in UTC, next 2"),
            ("s4", "hour", &["--tz", "UTC"], "s4 added as '0 * * * *' in UTC, next 2"),
        ] {
            let args = [&["schedule", "add", name, "a.rhai", "--every", every], zone].concat();
            let done = in_nepal(ground, &args).ok();
            assert!(done.stdout.starts_with(meant), "{}", done.stdout);
        }
        let shown = ground.run(&["schedule", "show", "s2", "--json"]).ok().json();
        assert_eq!((&shown["rhythm"], &shown["zone"]), (&"0 9 * * MON-FRI".into(), &"Europe/Brussels".into()));
        let args = ["schedule", "add", "s5", "a.rhai", "--cron", "@daily", "--start", "2099-01-01", "--tz", "Europe/Brussels"];
        let done = in_nepal(ground, &args).ok();
        assert_eq!(done.stderr.lines().next_back(), Some("starts at 2099-01-01T00:00:00+01:00"));
        assert_eq!(done.stdout, "s5 added, next 2098-12-31T23:00:00.000Z\n");
        let done = ground.run(&["schedule", "add", "s6", "a.rhai", "--every", "blue moon"]).exits(2);
        assert!(done.stderr.contains("monday"), "{}", done.stderr);
    }
}

#[test]
fn the_next_days_need_no_server() {
    let ground = Ground::url("redis://127.0.0.1:1");
    let args = ["schedule", "next", "--every", "mon,fri 9:00"];
    let after = ["--after", "2026-11-27 09:00"];
    let there = in_nepal(&ground, &[&args[..], &after].concat()).ok();
    assert_eq!(there.stdout, "2026-11-30T09:00:00+05:45\n");
    let zone = ["--tz", "Europe/Brussels", "-n", "2"];
    let other = in_nepal(&ground, &[&args[..], &after, &zone].concat()).ok();
    assert_eq!(
        other.stdout,
        "2026-11-30T09:00:00+01:00\n2026-12-04T09:00:00+01:00\n"
    );
}
