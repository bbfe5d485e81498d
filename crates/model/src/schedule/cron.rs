//! Cron expressions and the clock times that they match. The syntax is croner's. Fields are checked here first, so
//! that an error names the field. `timing` converts clock times to moments.

use std::fmt;
use std::str::FromStr;

use croner::parser::{CronParser, Seconds, Year};
use jiff::civil::{DateTime, date};

/// Greatest length of an expression, in bytes. Every minute of an hour by name takes 169.
pub const MAX_EXPRESSION: usize = 512;

/// Shorthands and their expressions.
const NICKNAMES: [(&str, &str); 7] = [
    ("@hourly", "0 * * * *"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@weekly", "0 0 * * 0"),
    ("@monthly", "0 0 1 * *"),
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
];
/// Names of the fields and their values, besides `*`, lists, ranges and steps.
const FIELDS: [(&str, &str); 6] = [
    ("second", "0 to 59"),
    ("minute", "0 to 59"),
    ("hour", "0 to 23"),
    (
        "day of the month",
        "1 to 31, L (the last), LW (the last working day) or 15W (the working day next to the 15th)",
    ),
    ("month", "1 to 12 or JAN to DEC"),
    (
        "day of the week",
        "0 to 7 or SUN to SAT, FRI#2 (the second of the month), FRI#L (the last), and + in front where \
         the day of the month must fit too",
    ),
];
const MONTHS: [&str; 12] = [
    "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC",
];
const DAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/// The reason why a cron expression was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CronError {
    /// The number of fields is wrong.
    #[error(
        "a cron expression has 5 fields (minute, hour, day of the month, month, day of the week), or 6 with \
         the second first; {text:?} has {count}"
    )]
    Count {
        /// The expression.
        text: String,
        /// Number of fields.
        count: usize,
    },
    /// A field is not valid.
    #[error(
        "the {field} {value:?} is not possible: give {allowed}, or *, a list (1,5), a range (1-5) or steps \
         (*/5, 10-20/5) of these"
    )]
    Field {
        /// Name of the field.
        field: &'static str,
        /// Text of the field.
        value: String,
        /// Valid values.
        allowed: &'static str,
    },
    /// The shorthand is unknown.
    #[error(
        "{0:?} is not known: give @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually or \
         @every 30s"
    )]
    Nickname(String),
    /// croner refuses the expression for another reason.
    #[error("the cron expression {text:?} is not possible: {why}")]
    Other {
        /// The expression.
        text: String,
        /// Message of croner.
        why: String,
    },
    /// No month has such a day.
    #[error("the cron expression {0:?} never fires: no month has such a day")]
    Never(String),
    /// The expression is too long.
    #[error("a cron expression has at most {MAX_EXPRESSION} bytes, not {0}")]
    TooLong(usize),
}

/// A cron expression that has at least one slot.
#[derive(Debug, Clone)]
pub struct Cron {
    text: String,
    cron: Box<croner::Cron>,
    by_the_clock: bool,
}

impl Cron {
    /// Returns whether the expression follows the real clock, like Vixie cron's wildcard jobs: its minute or hour
    /// begins with `*`. Other expressions name fixed times of a day.
    #[must_use]
    pub fn is_by_the_clock(&self) -> bool {
        self.by_the_clock
    }

    /// Returns the first matching clock time after `from`, or at `from` if `inclusive`.
    pub(super) fn next(&self, from: DateTime, inclusive: bool) -> Option<DateTime> {
        self.cron.find_next_occurrence(&from, inclusive).ok()
    }
}

impl FromStr for Cron {
    type Err = CronError;

    fn from_str(text: &str) -> Result<Self, CronError> {
        if text.len() > MAX_EXPRESSION {
            return Err(CronError::TooLong(text.len()));
        }
        let text = text.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
        let meant = if text.starts_with('@') {
            let known = NICKNAMES
                .iter()
                .find(|(name, _)| text.eq_ignore_ascii_case(name));
            known.ok_or_else(|| CronError::Nickname(text.clone()))?.1
        } else {
            &text
        };
        let fields: Vec<_> = meant.split(' ').collect();
        if meant.is_empty() || !(5..=6).contains(&fields.len()) {
            let count = if meant.is_empty() { 0 } else { fields.len() };
            return Err(CronError::Count { text, count });
        }
        let first = FIELDS.len() - fields.len();
        for (at, value) in (first..).zip(&fields) {
            if !value.split(',').all(|item| known(at, item)) {
                return Err(not_possible(at, value));
            }
        }
        let hours = 2 - first;
        let stars = |at: usize| fields[at].starts_with('*');
        let by_the_clock = stars(hours) || stars(hours - 1);
        let cron = parse(meant).map_err(|why| {
            let wrong = (first..)
                .zip(&fields)
                .find(|(at, value)| !alone(*at, value));
            let other = || CronError::Other {
                text: text.clone(),
                why: why.to_string(),
            };
            wrong.map_or_else(other, |(at, value)| not_possible(at, value))
        })?;
        let cron = Self {
            text,
            cron: Box::new(cron),
            by_the_clock,
        };
        // The calendar repeats itself: an expression without a match from here on has none.
        match cron.next(date(2000, 1, 1).at(0, 0, 0, 0), true) {
            Some(_) => Ok(cron),
            None => Err(CronError::Never(cron.text)),
        }
    }
}

fn parse(text: &str) -> Result<croner::Cron, croner::errors::CronError> {
    CronParser::builder()
        .seconds(Seconds::Optional)
        .year(Year::Disallowed)
        .build()
        .parse(text)
}

/// Returns whether croner accepts a field alone.
fn alone(at: usize, value: &str) -> bool {
    let mut fields = ["*"; FIELDS.len()];
    fields[at] = value;
    parse(&fields.join(" ")).is_ok()
}

fn not_possible(at: usize, value: &str) -> CronError {
    let (field, allowed) = FIELDS[at];
    CronError::Field {
        field,
        value: value.to_owned(),
        allowed,
    }
}

/// Returns whether an item of a list has words of its field. croner would accept others as well.
fn known(at: usize, item: &str) -> bool {
    let item = item.to_ascii_uppercase();
    let word = |word: &str| match at {
        3 => ["", "L", "W", "LW"].contains(&word),
        4 => word.is_empty() || MONTHS.contains(&word),
        5 => {
            word.is_empty() || word == "L" || DAYS.contains(&word.strip_suffix('L').unwrap_or(word))
        }
        _ => word.is_empty(),
    };
    let mut words = item.split(|c: char| !c.is_ascii_alphabetic());
    !item.is_empty() && item.is_ascii() && words.all(word)
}

impl fmt::Display for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Compares expressions as text.
impl PartialEq for Cron {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Cron {}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(text: &str) -> String {
        let cron: Cron = text.parse().unwrap();
        let from = date(2026, 1, 1).at(0, 0, 0, 0);
        cron.next(from, true).unwrap().to_string()
    }

    #[test]
    fn what_is_written_is_what_is_meant() {
        for (text, fires) in [
            ("30 2 * * *", "2026-01-01T02:30:00"),
            ("*/10 30 2 * * *", "2026-01-01T02:30:00"),
            ("7 30 2 * * *", "2026-01-01T02:30:07"),
            ("0 0 * feb mon", "2026-02-02T00:00:00"),
            ("0 0 13 * FRI", "2026-01-02T00:00:00"),
            ("0 0 13 * +FRI", "2026-02-13T00:00:00"),
            ("0 0 L * *", "2026-01-31T00:00:00"),
            ("0 0 LW 1 *", "2026-01-30T00:00:00"),
            ("0 0 15W 2 *", "2026-02-16T00:00:00"),
            ("0 0 * * FRI#2", "2026-01-09T00:00:00"),
            ("0 0 * * 5#L", "2026-01-30T00:00:00"),
            ("0 0 * * FRIL", "2026-01-30T00:00:00"),
            ("0 0 * * 7", "2026-01-04T00:00:00"),
            ("0 0 29 2 *", "2028-02-29T00:00:00"),
            ("0 0 ? * MON", "2026-01-05T00:00:00"),
            ("5,50-59/4 8-10 1 MAR-MAY/2 *", "2026-03-01T08:05:00"),
            ("@hourly", "2026-01-01T00:00:00"),
            ("@weekly", "2026-01-04T00:00:00"),
            ("@Monthly", "2026-01-01T00:00:00"),
            ("@midnight", "2026-01-01T00:00:00"),
        ] {
            assert_eq!(first(text), fires, "{text}");
        }
        assert_eq!("@yearly".parse::<Cron>(), "@yearly".parse());
        assert_eq!(
            " 0  0 1 1 * ".parse::<Cron>().unwrap().to_string(),
            "0 0 1 1 *"
        );
    }

    #[test]
    fn an_error_names_the_field() {
        for (text, field) in [
            ("60 * * * * *", "second"),
            ("60 * * * *", "minute"),
            (", * * * *", "minute"),
            ("1,,2 * * * *", "minute"),
            ("*/0 * * * *", "minute"),
            ("5-1 * * * *", "minute"),
            ("0/5 * * * *", "minute"),
            ("-1 * * * *", "minute"),
            ("0 24 * * *", "hour"),
            ("0 MON * * *", "hour"),
            ("0 0 0 * *", "day of the month"),
            ("0 0 32 * *", "day of the month"),
            ("0 0 L-3 * *", "day of the month"),
            ("0 0 * 13 *", "month"),
            ("0 0 * MON *", "month"),
            ("0 0 * JANUARY *", "month"),
            ("0 0 * * 8", "day of the week"),
            ("0 0 * * FEB", "day of the week"),
            ("0 0 * * FRI#6", "day of the week"),
            ("0 0 * * ſun", "day of the week"),
        ] {
            let error = text.parse::<Cron>().unwrap_err();
            let CronError::Field { field: named, .. } = error else {
                panic!("{text}: {error}");
            };
            assert_eq!(named, field, "{text}");
        }
    }

    #[test]
    fn what_is_no_expression_is_refused() {
        for text in ["", "* * * *", "* * * * * * *", "hourly", "0 0 1 1 * 2026 x"] {
            let error = text.parse::<Cron>().unwrap_err();
            assert!(matches!(error, CronError::Count { .. }), "{text}: {error}");
        }
        for text in ["@", "@often", "@reboot", "@daily x"] {
            let error = text.parse::<Cron>().unwrap_err();
            assert!(matches!(error, CronError::Nickname(_)), "{text}: {error}");
        }
        let long = format!("{} * * * *", ["1"; 300].join(","));
        assert_eq!(long.parse::<Cron>(), Err(CronError::TooLong(607)));
    }

    #[test]
    fn what_never_fires_is_refused() {
        for text in ["0 0 31 2 *", "0 0 30 FEB *", "0 0 31 4,6,9,11 *"] {
            assert_eq!(text.parse::<Cron>(), Err(CronError::Never(text.to_owned())));
        }
    }
}
