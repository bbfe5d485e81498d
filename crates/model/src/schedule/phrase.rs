//! Recurrences as people say them: `monday`, `weekdays 9:00`, `day`, `hour`.

use jiff::civil::{Time, Weekday};

use super::cron::Cron;
use super::wall_time::{time_of_day, weekday};

/// Words that name several days, and the cron field of the day of the week.
const GROUPS: [(&str, &str); 4] = [
    ("day", "*"),
    ("weekday", "MON-FRI"),
    ("weekend", "SAT,SUN"),
    ("week", "SUN"),
];

/// Returns the cron expression of a phrase. Without a time of day, the day begins at midnight.
pub(super) fn cron(text: &str) -> Option<Cron> {
    let text = text.to_ascii_lowercase();
    let fillers = ["at", "and", "on"];
    let words: Vec<_> = text
        .split([' ', ','])
        .filter(|word| !word.is_empty() && !fillers.contains(word))
        .collect();
    let expression = match words[..] {
        ["minute"] => "* * * * *".to_owned(),
        ["hour"] => "0 * * * *".to_owned(),
        [] => return None,
        _ => of_days(&words)?,
    };
    expression.parse().ok()
}

/// Returns the expression of days with at most one time of day at their end.
fn of_days(words: &[&str]) -> Option<String> {
    let (last, before) = words.split_last()?;
    let (days, time) = match time_of_day(last) {
        Some(time) => (before, time),
        None => (words, Time::midnight()),
    };
    let names: Option<Vec<_>> = days.iter().map(|day| name(day)).collect();
    let (date, days) = match days {
        ["month"] => ("1 *", "*".to_owned()),
        ["year"] => ("1 1", "*".to_owned()),
        _ => ("* *", names.filter(|names| !names.is_empty())?.join(",")),
    };
    let clock = format!("{} {}", time.minute(), time.hour());
    let clock = match time.second() {
        0 => clock,
        second => format!("{second} {clock}"),
    };
    Some(format!("{clock} {date} {days}"))
}

/// Returns the field of a day or a group of days, also in the plural.
fn name(word: &str) -> Option<&'static str> {
    let single = word.strip_suffix('s').unwrap_or(word);
    let group = GROUPS.iter().find(|(group, _)| *group == single);
    let short = |day| match day {
        Weekday::Monday => "MON",
        Weekday::Tuesday => "TUE",
        Weekday::Wednesday => "WED",
        Weekday::Thursday => "THU",
        Weekday::Friday => "FRI",
        Weekday::Saturday => "SAT",
        Weekday::Sunday => "SUN",
    };
    let day = || weekday(word).or_else(|| weekday(single)).map(short);
    group.map(|(_, field)| *field).or_else(day)
}
