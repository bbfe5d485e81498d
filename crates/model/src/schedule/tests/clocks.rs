//! Days on which clocks change, and leap days.

use super::{ms, slots, timing};
use crate::time::iso;

/// In Brussels, 02:00 became 03:00 at 01:00 UTC.
const SPRING: (&str, &str) = ("2026-03-28T22:59:59Z", "2026-03-29T22:00:00Z");
/// And 03:00 became 02:00 at 01:00 UTC.
const AUTUMN: (&str, &str) = ("2026-10-24T21:59:59Z", "2026-10-25T23:00:00Z");

fn in_brussels(rhythm: &str, (after, before): (&str, &str)) -> Vec<String> {
    slots(&timing(rhythm, "Europe/Brussels"), after, before)
}

#[test]
fn a_time_that_is_leapt_over_is_due_at_the_leap() {
    for rhythm in ["30 2 * * *", "0 2 * * *", "59 2 * * *"] {
        assert_eq!(
            in_brussels(rhythm, SPRING),
            ["2026-03-29T01:00"],
            "{rhythm}"
        );
    }
    // What is due then anyway is due once, and several at once are one.
    assert_eq!(in_brussels("0 3 * * *", SPRING), ["2026-03-29T01:00"]);
    assert_eq!(
        in_brussels("0,20,40 2,3 * * *", SPRING),
        ["2026-03-29T01:00", "2026-03-29T01:20", "2026-03-29T01:40"]
    );
    // The hours beside it go on as ever.
    assert_eq!(
        in_brussels("30 1,4 * * *", SPRING),
        ["2026-03-29T00:30", "2026-03-29T02:30"]
    );
    // The whole year: each day once.
    let year = slots(
        &timing("30 2 * * *", "Europe/Brussels"),
        "2025-12-31T23:00:00Z",
        "2026-12-31T23:00:00Z",
    );
    assert_eq!(year.len(), 365);
}

#[test]
fn a_time_that_is_shown_twice_is_due_the_first_time() {
    assert_eq!(in_brussels("30 2 * * *", AUTUMN), ["2026-10-25T00:30"]);
    assert_eq!(
        in_brussels("0,30 2,3 * * *", AUTUMN),
        [
            "2026-10-25T00:00",
            "2026-10-25T00:30",
            "2026-10-25T02:00",
            "2026-10-25T02:30"
        ]
    );
    // Requested in the hour that comes again.
    let timing = timing("30 2 * * *", "Europe/Brussels");
    for after in [
        "2026-10-25T00:30:00Z",
        "2026-10-25T01:10:00Z",
        "2026-10-25T01:30:00Z",
    ] {
        let next = timing.next(ms(after)).unwrap();
        assert_eq!(iso(next), "2026-10-26T01:30:00.000Z", "{after}");
    }
}

#[test]
fn what_goes_by_the_clock_goes_every_real_hour() {
    for (day, hours) in [(SPRING, 23), (AUTUMN, 25)] {
        for rhythm in ["@hourly", "30 * * * *", "@every 1h"] {
            let slots = in_brussels(rhythm, day);
            assert_eq!(slots.len(), hours, "{rhythm}");
            let steps = slots
                .windows(2)
                .map(|two| ms(&format!("{}:00Z", two[1])) - ms(&format!("{}:00Z", two[0])));
            assert!(steps.into_iter().all(|step| step == 3_600_000), "{slots:?}");
        }
        assert_eq!(in_brussels("*/10 * * * *", day).len(), hours * 6);
    }
    // A minute of one hour that the clock does not show does not come; of one that it shows twice, twice.
    assert_eq!(in_brussels("*/30 2 * * *", SPRING), Vec::<String>::new());
    assert_eq!(in_brussels("*/30 2 * * *", AUTUMN).len(), 4);
}

#[test]
fn a_clock_that_changes_by_half_an_hour() {
    // Lord Howe: 02:00 becomes 02:30 at 15:30 UTC, and 02:00 becomes 01:30 at 15:00 UTC.
    let spring = ("2026-10-03T13:29:59Z", "2026-10-04T13:00:00Z");
    let autumn = ("2026-04-04T12:59:59Z", "2026-04-05T13:30:00Z");
    let on = |rhythm, (after, before)| slots(&timing(rhythm, "Australia/Lord_Howe"), after, before);
    assert_eq!(on("15 2 * * *", spring), ["2026-10-03T15:30"]);
    assert_eq!(on("45 2 * * *", spring), ["2026-10-03T15:45"]);
    assert_eq!(on("45 1 * * *", autumn), ["2026-04-04T14:45"]);
    assert_eq!(
        on("45 * * * *", autumn)[..3],
        ["2026-04-04T13:45", "2026-04-04T14:45", "2026-04-04T15:15"]
    );
    assert_eq!(
        (
            on("*/15 * * * *", spring).len(),
            on("*/15 * * * *", autumn).len()
        ),
        (94, 98)
    );
}

#[test]
fn clocks_of_odd_offsets() {
    for (zone, rhythm, utc) in [
        ("Asia/Kathmandu", "0 6 * * *", "2026-01-01T00:15"),
        ("Asia/Kolkata", "0 6 * * *", "2026-01-01T00:30"),
        ("Pacific/Chatham", "45 13 * * *", "2026-01-01T00:00"),
        ("America/St_Johns", "0 21 * * *", "2026-01-01T00:30"),
        ("Pacific/Kiritimati", "0 14 * * *", "2026-01-01T00:00"),
    ] {
        let due = slots(
            &timing(rhythm, zone),
            "2025-12-31T23:59:59Z",
            "2026-01-02T00:00:00Z",
        );
        assert_eq!(due, [utc], "{zone}");
    }
}

#[test]
fn a_day_that_never_was() {
    // Samoa went from the 29th to the 31st of December 2011.
    let apia = |rhythm| {
        slots(
            &timing(rhythm, "Pacific/Apia"),
            "2011-12-29T12:00:00Z",
            "2011-12-31T12:00:00Z",
        )
    };
    assert_eq!(
        apia("0 12 * * *"),
        ["2011-12-29T22:00", "2011-12-30T10:00", "2011-12-30T22:00"]
    );
    assert_eq!(apia("* 12 30 12 *"), Vec::<String>::new());
}

#[test]
fn leap_days() {
    let leap = timing("0 0 29 2 *", "UTC");
    let years = slots(&leap, "2095-01-01T00:00:00Z", "2109-01-01T00:00:00Z");
    assert_eq!(
        years,
        ["2096-02-29T00:00", "2104-02-29T00:00", "2108-02-29T00:00"]
    );
    let by_the_clock = timing("* * 29 2 *", "America/New_York");
    let next = by_the_clock.next(ms("2026-01-01")).unwrap();
    assert_eq!(iso(next), "2028-02-29T05:00:00.000Z");
    let last = timing("0 12 L 2 *", "UTC");
    let years = slots(&last, "2027-01-01T00:00:00Z", "2029-01-01T00:00:00Z");
    assert_eq!(years, ["2027-02-28T12:00", "2028-02-29T12:00"]);
}

#[test]
fn starts_and_ends() {
    let mut timing = timing("@every 7m", "UTC");
    assert_eq!(timing.next(0), Some(420_000));
    timing.start = Some(ms("2026-01-01T00:00:01Z"));
    timing.end = Some(ms("2026-01-01T00:14:01Z"));
    let due: Vec<_> = timing.upcoming(0).map(iso).collect();
    assert_eq!(
        due,
        [
            "2026-01-01T00:00:01.000Z",
            "2026-01-01T00:07:01.000Z",
            "2026-01-01T00:14:01.000Z"
        ]
    );
    timing.rhythm = "0 0 1 1 *".parse().unwrap();
    assert_eq!(timing.next(0), None);
    timing.start = Some(ms("2026-01-01"));
    assert_eq!(timing.next(0), Some(ms("2026-01-01")));
}
