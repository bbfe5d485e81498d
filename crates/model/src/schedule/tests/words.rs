//! Times and recurrences in words.

use super::super::timing::{Recurrence, Timing};
use super::super::wall_time::{Direction, WallTime};
use super::super::zone::Zone;
use crate::time::{iso, parse_iso};

/// Friday, in winter.
const NOW: &str = "2026-11-27T10:30:00Z";

fn meant(text: &str, zone: &str, direction: Direction) -> String {
    let time: WallTime = text.parse().unwrap();
    let zone: Zone = zone.parse().unwrap();
    let ms = time.ms(parse_iso(NOW).unwrap(), &zone, direction);
    iso(ms.unwrap())[..19].to_owned()
}

#[test]
fn days_and_times_are_those_of_the_zone() {
    for (text, moment) in [
        ("2026-12-01 09:00", "2026-12-01T08:00:00"),
        ("2026-12-01T09:00:30", "2026-12-01T08:00:30"),
        ("2026-12-01", "2026-11-30T23:00:00"),
        ("2026-07-01 9:00", "2026-07-01T07:00:00"),
        ("tomorrow 9:00", "2026-11-28T08:00:00"),
        ("Tomorrow at 9am", "2026-11-28T08:00:00"),
        ("today 9:30pm", "2026-11-27T20:30:00"),
        ("yesterday", "2026-11-25T23:00:00"),
        ("yesterday noon", "2026-11-26T11:00:00"),
        // The clock skips this hour.
        ("2027-03-28 02:30", "2027-03-28T01:30:00"),
    ] {
        for direction in [Direction::Next, Direction::Last] {
            assert_eq!(meant(text, "Europe/Brussels", direction), moment, "{text}");
        }
    }
    // It is Saturday there already.
    let far = meant("today", "Pacific/Kiritimati", Direction::Next);
    assert_eq!(far, "2026-11-27T10:00:00");
}

#[test]
fn times_without_a_date_are_the_next_or_the_last() {
    for (text, next, last) in [
        ("10:31", "2026-11-27T10:31:00", "2026-11-26T10:31:00"),
        ("10:30", "2026-11-28T10:30:00", "2026-11-27T10:30:00"),
        ("friday", "2026-12-04T00:00:00", "2026-11-27T00:00:00"),
        ("fri 11:00", "2026-11-27T11:00:00", "2026-11-20T11:00:00"),
        ("monday", "2026-11-30T00:00:00", "2026-11-23T00:00:00"),
        ("thurs 9am", "2026-12-03T09:00:00", "2026-11-26T09:00:00"),
    ] {
        assert_eq!(meant(text, "UTC", Direction::Next), next, "{text}");
        assert_eq!(meant(text, "UTC", Direction::Last), last, "{text}");
    }
}

#[test]
fn other_texts_are_no_times() {
    for text in [
        "",
        "soon",
        "mo",
        "25:00",
        "9",
        "2026-02-30",
        "2026-01-31+01:00",
        "tomorrow 9:00 x",
        "9:00 tomorrow 9:00",
        "13pm",
        "2026-12-01T",
        "-1",
        "+1",
        "2026-01-31T12:00:00Z",
    ] {
        assert!(text.parse::<WallTime>().is_err(), "{text}");
    }
    let before: WallTime = "1969-12-31".parse().unwrap();
    assert_eq!(before.ms(0, &Zone::default(), Direction::Last), None);
}

#[test]
fn phrases_are_cron_expressions() {
    for (text, rhythm) in [
        ("monday", "0 0 * * MON"),
        ("Mondays 9:00", "0 9 * * MON"),
        ("mon,thu at 17:30", "30 17 * * MON,THU"),
        ("tuesday and thursday 9am", "0 9 * * TUE,THU"),
        ("day", "0 0 * * *"),
        ("day 2:30", "30 2 * * *"),
        ("weekdays 9:00", "0 9 * * MON-FRI"),
        ("weekend noon", "0 12 * * SAT,SUN"),
        ("hour", "0 * * * *"),
        ("minute", "* * * * *"),
        ("week", "0 0 * * SUN"),
        ("month 4:05:06", "6 5 4 1 * *"),
        ("year", "0 0 1 1 *"),
        ("90m", "@every 1h30m"),
        ("2 hours", "@every 2h"),
    ] {
        let read = Recurrence::every(text).unwrap();
        assert_eq!(read.to_string(), rhythm, "{text}");
        assert_eq!(rhythm.parse(), Ok(read), "{text}");
    }
    for text in [
        "",
        "9:00",
        "hour 9:00",
        "monday 9",
        "month monday",
        "noon",
        "0 9 * * MON",
        "blue",
    ] {
        let error = Recurrence::every(text).unwrap_err().to_string();
        assert!(error.contains("monday"), "{text}: {error}");
    }
}

#[test]
fn a_day_of_a_schedule_is_that_of_its_zone() {
    let mut timing = Timing::new(Recurrence::every("monday 9:00").unwrap());
    timing.zone = "Europe/Brussels".parse().unwrap();
    let next = timing.next(parse_iso(NOW).unwrap()).unwrap();
    assert_eq!(iso(next), "2026-11-30T08:00:00.000Z");
}
