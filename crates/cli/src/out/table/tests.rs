//! Tables in terminals of each width.

use super::*;

#[test]
fn columns_are_aligned() {
    let mut table = Table::new([
        Column::text("FILE"),
        Column::number("N"),
        Column::text("WORD"),
    ]);
    table.row(["a.txt", "7", "x"]);
    table.row(["long.txt", "1000", "two\nlines"]);
    assert_eq!(
        table.drawn(None),
        "FILE         N  WORD\na.txt        7  x\nlong.txt  1000  two lines"
    );
}

#[test]
fn the_last_column_is_cut_to_the_width() {
    let mut table = Table::new([Column::text("FILE"), Column::text("OUTPUT")]);
    table.row(["a.txt", "one two three four five six"]);
    let drawn = table.drawn(Some(20));
    assert!(
        drawn.lines().all(|line| line.chars().count() <= 20),
        "{drawn}"
    );
    assert_eq!(drawn.lines().count(), 2, "{drawn}");
    assert!(drawn.contains('…'), "{drawn}");
}

#[test]
fn a_narrow_terminal_omits_what_it_can_spare() {
    let table = || {
        let names = ["id", "state", "type", "created", "attempts", "error"];
        let mut table = Table::new(Column::named(names, &["attempts"])).optional(&["created"]);
        let id = "0000aaaa-1111-bbbb-2222-cccc33334444";
        let error = "ValueError: the part 4 of the input cannot be read";
        table.row([
            id,
            "cancelled",
            "python",
            "2026-11-27T13:06:00.010Z",
            "10",
            error,
        ]);
        table
    };
    for width in [80, 60, 40] {
        let drawn = table().drawn(Some(width));
        let fits = |line: &str| measure_text_width(line) <= width.into();
        assert!(drawn.lines().all(fits), "{drawn}");
        for part in ["state", "cancelled", "error", "ValueEr", "0000aaaa"] {
            assert!(drawn.contains(part), "{width}: {part}: {drawn}");
        }
        assert!(!drawn.contains("created"), "{drawn}");
    }
    assert!(table().drawn(Some(80)).contains("ValueError: the part"));
    let drawn = table().drawn(Some(20));
    assert!(
        drawn.lines().all(|line| measure_text_width(line) <= 20),
        "{drawn}"
    );
    assert_eq!(drawn.lines().count(), 2, "{drawn}");
    assert!(table().drawn(None).contains("created"));
}

#[test]
fn the_time_until_a_job_runs_stays_if_one_waits() {
    let table = |runs_in: &str| {
        let names = [
            "id", "state", RUNS_IN, "type", "created", "attempts", "error",
        ];
        let mut table = Table::new(Column::named(names, &["attempts"]));
        let id = "0000aaaa-1111-bbbb-2222-cccc33334444";
        let error = "ValueError: the part 4 of the input cannot be read";
        let created = "2026-11-27T13:06:00.010Z";
        table.row([id, "delayed", runs_in, "python", created, "10", error]);
        table
    };
    for width in [80, 60, 40] {
        let drawn = table("59 min 58 s").drawn(Some(width));
        let fits = |line: &str| measure_text_width(line) <= width.into();
        assert!(drawn.lines().all(fits), "{drawn}");
        for part in ["state", "delayed", "59 min 58 s", "Value", "0000aaa"] {
            assert!(drawn.contains(part), "{width}: {part}: {drawn}");
        }
    }
    for width in [None, Some(80)] {
        let drawn = table("").drawn(width);
        assert!(!drawn.contains(RUNS_IN), "{drawn}");
    }
}

/// Rows of several lists, whose texts are as long as they can be.
#[test]
fn states_outcomes_and_next_times_stay_in_every_width() {
    let lists: [(&[&str], &[&str]); 7] = [
        (
            &["name", "rhythm", "zone", "next", "type", ""],
            &["name", "next", "2026-11-30T09:00", "paused"],
        ),
        (
            &[
                "message",
                "type",
                "status",
                "outcome",
                "from or to",
                "created",
                "text",
            ],
            &["status", "outcome"],
        ),
        (
            &[
                "schedule", "cron", "zone", "job", "next", "last", "runs", "",
            ],
            &["2026-11-30T09:00", "paused"],
        ),
        (
            &[
                "type",
                "phase",
                "canonical",
                "marked",
                "waiting",
                "old list",
            ],
            &["phase", "paused"],
        ),
        (
            &["type", "group", "jobs", "slots", "state", "id"],
            &["state", "paused"],
        ),
        (
            &["id", "state", "jobs", "failed", "opened", "name"],
            &["state", "paused"],
        ),
        (
            &["file", "status", "words", "lines", "error"],
            &["status", "error", "paused"],
        ),
    ];
    for (names, shown) in lists {
        for width in [40, 60, 80, 200] {
            let columns = names.iter().map(|name| Column::text(*name));
            let mut table = Table::new(columns);
            for end in ["a", "b"] {
                table.row(names.iter().map(|name| match *name {
                    "next" | "last" | "opened" => "2026-11-30T09:00:00.000+01:00".to_owned(),
                    "" | "state" | "status" | "phase" => format!("paused {}", "x".repeat(80)),
                    _ => format!("{}{end}", "a-name-of-100-characters-".repeat(4)),
                }));
            }
            let drawn = table.drawn(Some(width));
            let fits = |line: &str| measure_text_width(line) <= width.into();
            assert!(drawn.lines().all(fits), "{drawn}");
            for word in shown {
                assert!(drawn.contains(word), "{width}: {word}: {drawn}");
            }
        }
    }
}

#[test]
fn a_state_is_whole_beside_fewer_columns() {
    let names = [
        "message",
        "type",
        "status",
        "outcome",
        "from or to",
        "created",
        "text",
    ];
    for width in [50, 60, 80, 200] {
        let mut table = Table::new(Column::named(names, &[])).optional(&["type"]);
        table.row([
            "1:2",
            "job",
            "acknowledged",
            "",
            "from 1",
            "2026-11-30T10:54:46.000Z",
            "a text of several words",
        ]);
        let drawn = table.drawn(Some(width));
        assert!(drawn.contains("acknowledged"), "{width}: {drawn}");
    }
}

#[test]
fn a_cut_id_has_its_unique_beginning_and_a_name_its_end() {
    let names = ["file", "id", "state"];
    let mut table = Table::new(Column::named(names, &[]));
    let name = "reports/of/the/year/2026/november/and/its/last/days/the-last-one.py";
    for end in ["a-1", "b-2"] {
        table.row([
            name,
            &format!("worker.6169.ca545d4e98590fd6.{end}-and-more"),
            "running",
        ]);
    }
    let drawn = table.drawn(Some(100));
    assert!(
        drawn.contains("fd6.a") && drawn.contains("fd6.b"),
        "{drawn}"
    );
    assert!(
        drawn.contains("reports/of/") && drawn.contains("one.py"),
        "{drawn}"
    );
    assert_eq!(drawn.matches("running").count(), 2, "{drawn}");
}
