//! Times as people write them, without a time zone: `tomorrow 9:00`, `2026-12-01 09:00`, `monday`. The caller passes in
//! the zone and the current time.

use std::str::FromStr;

use jiff::Timestamp;
use jiff::civil::{Date, Time, Weekday};
use jiff::tz::TimeZone;

use super::zone::Zone;

/// Formats of a time of day, for jiff.
const TIMES: [&str; 4] = ["%H:%M:%S", "%H:%M", "%I:%M%p", "%I%p"];
/// Format of a date, for jiff.
const DATE: &str = "%Y-%m-%d";
/// Names of the days of the week.
const DAYS: [(&str, Weekday); 7] = [
    ("monday", Weekday::Monday),
    ("tuesday", Weekday::Tuesday),
    ("wednesday", Weekday::Wednesday),
    ("thursday", Weekday::Thursday),
    ("friday", Weekday::Friday),
    ("saturday", Weekday::Saturday),
    ("sunday", Weekday::Sunday),
];
/// Shortest name of a day, in letters: shorter ones are ambiguous.
const MIN_DAY_NAME: usize = 3;

/// Direction in which a time without a date, or with a day of the week, is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// The first such time after now.
    Next,
    /// The last such time up to now.
    Last,
}

/// A day and a time of day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WallTime {
    day: Day,
    time: Time,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Day {
    On(Date),
    /// In days from today.
    Relative(i32),
    Weekday(Weekday),
    Any,
}

/// A text that is not such a time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no time: give a day and a time of day, as tomorrow 9:00, monday or 2026-12-01 09:00"
)]
pub struct WallTimeError(String);

impl FromStr for WallTime {
    type Err = WallTimeError;

    /// Parses a day, a time of day, or both; case does not matter. A day alone is its midnight.
    fn from_str(text: &str) -> Result<Self, WallTimeError> {
        read(&text.to_ascii_lowercase()).ok_or_else(|| WallTimeError(text.to_owned()))
    }
}

fn read(text: &str) -> Option<WallTime> {
    let words: Vec<_> = text
        .split_whitespace()
        .filter(|word| *word != "at")
        .collect();
    let (day, time) = match words[..] {
        [word] => match (day_of(word), word.split_once('t')) {
            (Some(day), _) => (day, Time::midnight()),
            (None, Some((date, time))) if date_of(date).is_some() => {
                (Day::On(date_of(date)?), time_of_day(time)?)
            }
            (None, _) => (Day::Any, time_of_day(word)?),
        },
        [day, time] => (day_of(day)?, time_of_day(time)?),
        _ => return None,
    };
    Some(WallTime { day, time })
}

fn day_of(word: &str) -> Option<Day> {
    match word {
        "yesterday" => Some(Day::Relative(-1)),
        "today" => Some(Day::Relative(0)),
        "tomorrow" => Some(Day::Relative(1)),
        _ => date_of(word)
            .map(Day::On)
            .or_else(|| weekday(word).map(Day::Weekday)),
    }
}

fn date_of(word: &str) -> Option<Date> {
    let is_plain =
        word.len() == "2026-12-01".len() && word.starts_with(|c: char| c.is_ascii_digit());
    is_plain.then(|| Date::strptime(DATE, word).ok())?
}

/// Parses the name of a day of the week, or its first letters: `monday`, `mon`.
pub(super) fn weekday(word: &str) -> Option<Weekday> {
    let of_word = |(name, _): &&(&str, Weekday)| name.starts_with(word);
    let day = DAYS
        .iter()
        .find(of_word)
        .filter(|_| word.len() >= MIN_DAY_NAME);
    day.map(|(_, day)| *day)
}

/// Parses a time of day: `9:00`, `17:30:05`, `9am`, `noon`.
pub(super) fn time_of_day(word: &str) -> Option<Time> {
    match word {
        "midnight" => Some(Time::midnight()),
        "noon" => Some(Time::constant(12, 0, 0, 0)),
        _ => TIMES
            .iter()
            .find_map(|format| Time::strptime(format, word).ok()),
    }
}

impl WallTime {
    /// Returns the moment in a zone, in milliseconds since 1970. A time that the clock skips is moved to the time after
    /// the change; of a repeated time, the first one counts. `None` before 1970 and after the year 9999.
    #[must_use]
    pub fn ms(self, now: u64, zone: &Zone, direction: Direction) -> Option<u64> {
        let now = Timestamp::from_millisecond(i64::try_from(now).ok()?).ok()?;
        let today = zone.rules().to_datetime(now).date();
        let moment = |date: Date| moment(date, self.time, zone.rules());
        let first = match (self.day, direction) {
            (Day::On(date), _) => return ms(moment(date)?),
            (Day::Relative(days), _) => return ms(moment(after(today, days)?)?),
            (Day::Any, _) => today,
            (Day::Weekday(day), Direction::Next) => {
                after(today, i32::from(today.weekday().until(day)))?
            }
            (Day::Weekday(day), Direction::Last) => {
                after(today, -i32::from(today.weekday().since(day)))?
            }
        };
        let period = if self.day == Day::Any { 1 } else { 7 };
        let found = moment(first)?;
        match direction {
            Direction::Next if found <= now => ms(moment(after(first, period)?)?),
            Direction::Last if found > now => ms(moment(after(first, -period)?)?),
            _ => ms(found),
        }
    }
}

fn after(date: Date, days: i32) -> Option<Date> {
    date.checked_add(jiff::Span::new().days(days)).ok()
}

fn moment(date: Date, time: Time, zone: &TimeZone) -> Option<Timestamp> {
    let local = date.to_datetime(time);
    zone.to_ambiguous_timestamp(local).compatible().ok()
}

fn ms(moment: Timestamp) -> Option<u64> {
    u64::try_from(moment.as_millisecond()).ok()
}
