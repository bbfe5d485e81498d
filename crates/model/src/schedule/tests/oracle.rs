//! Against an oracle that goes from minute to minute and looks at the clock: slow, and simple enough to be
//! right. It knows of the rhythm only which minutes of which hours of which days it names.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use proptest::prelude::*;

use super::timing;

/// Zones, and a day around which their clocks change.
const CHANGES: [(&str, &str); 10] = [
    ("Europe/Brussels", "2026-03-29T01:00:00Z"),
    ("Europe/Brussels", "2026-10-25T01:00:00Z"),
    ("America/New_York", "2026-03-08T07:00:00Z"),
    ("America/New_York", "2026-11-01T06:00:00Z"),
    ("America/Santiago", "2026-09-06T04:00:00Z"),
    ("Australia/Lord_Howe", "2026-04-04T15:00:00Z"),
    ("Australia/Lord_Howe", "2026-10-03T15:30:00Z"),
    ("Africa/Casablanca", "2026-03-22T02:00:00Z"),
    ("Pacific/Apia", "2011-12-30T10:00:00Z"),
    ("Asia/Kathmandu", "2026-02-28T18:15:00Z"),
];
const MINUTE: i64 = 60_000;

#[derive(Debug, Clone)]
struct Named {
    minutes: Vec<i8>,
    hours: Vec<i8>,
    weekdays: Vec<i8>,
    /// As it is written; nothing where it is `*`.
    star_minutes: bool,
    star_hours: bool,
}

impl Named {
    fn text(&self) -> String {
        let list = |values: &[i8]| {
            let values: Vec<_> = values.iter().map(ToString::to_string).collect();
            values.join(",")
        };
        let minutes = if self.star_minutes {
            "*".to_owned()
        } else {
            list(&self.minutes)
        };
        let hours = if self.star_hours {
            "*".to_owned()
        } else {
            list(&self.hours)
        };
        format!("{minutes} {hours} * * {}", list(&self.weekdays))
    }

    fn shows(&self, time: DateTime) -> bool {
        (self.star_minutes || self.minutes.contains(&time.minute()))
            && (self.star_hours || self.hours.contains(&time.hour()))
            && self
                .weekdays
                .contains(&time.date().weekday().to_sunday_zero_offset())
    }
}

fn named() -> impl Strategy<Value = Named> {
    let some = |most: i8| prop::collection::vec(0..most, 1..4);
    let weekdays = prop_oneof![Just(vec![0, 1, 2, 3, 4, 5, 6]), some(7)];
    (
        some(60),
        some(5),
        weekdays,
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.3),
    )
        .prop_map(
            |(minutes, hours, weekdays, star_minutes, star_hours)| Named {
                minutes,
                hours,
                weekdays,
                star_minutes,
                star_hours,
            },
        )
}

fn clock(zone: &TimeZone, ms: i64) -> DateTime {
    zone.to_datetime(Timestamp::from_millisecond(ms).unwrap())
}

/// The slots after `from` and up to `until`.
fn oracle(named: &Named, zone: &TimeZone, from: i64, until: i64) -> Vec<u64> {
    let by_the_clock = named.star_minutes || named.star_hours;
    let mut slots = Vec::new();
    // The latest time that the clock has shown: a day earlier is enough to know it.
    let mut shown = clock(zone, from - 48 * 60 * MINUTE);
    let mut at = from - 48 * 60 * MINUTE;
    while at < until {
        at += MINUTE;
        let now = clock(zone, at);
        let due = if by_the_clock {
            named.shows(now)
        } else {
            // All minutes that are new, also those that the clock leapt over.
            let mut due = false;
            while shown < now {
                shown = shown.checked_add(jiff::Span::new().minutes(1)).unwrap();
                due |= named.shows(shown);
            }
            due
        };
        if due && at > from {
            slots.push(u64::try_from(at).unwrap());
        }
    }
    slots
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn slots_are_what_one_sees_on_the_clock(
        named in named(),
        change in 0..CHANGES.len(),
        before in 0i64..2000,
        seconds in 0i64..60,
    ) {
        let (zone, moment) = CHANGES[change];
        let change: Timestamp = moment.parse().unwrap();
        let timing = timing(&named.text(), zone);
        let from = change.as_millisecond() - before * MINUTE;
        let until = change.as_millisecond() + 2000 * MINUTE;
        let expected = oracle(&named, timing.zone.rules(), from, until);
        let after = u64::try_from(from).unwrap();
        let slots: Vec<_> = timing.upcoming(after).take_while(|slot| *slot <= until as u64).collect();
        prop_assert_eq!(&slots, &expected, "{} in {}", named.text(), zone);
        // From wherever one asks, the next one is the same.
        let query = after + (seconds as u64) * 1000 + 1000 * 60 * 30;
        prop_assert_eq!(timing.next(query), timing.upcoming(after).find(|slot| *slot > query));
        // And so are the last ones.
        let last = expected.len().saturating_sub(7);
        prop_assert_eq!(timing.latest(after, until as u64, 7), &expected[last..]);
    }
}
