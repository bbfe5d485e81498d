//! Slots of a schedule: the conversion of a recurrence and a time zone to moments.
//!
//! On days with a clock change it does as Vixie cron does. An expression whose minute or hour begins with `*` follows
//! the real clock and fires at every matching clock time. An hourly job runs every real hour, and twice in an hour
//! that is repeated. Other expressions name fixed times, each once a day. A skipped time is due at the moment of the
//! change (several such times are one slot). Of a repeated time, the first one counts. An interval counts real
//! seconds.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};

use super::cron::{Cron, CronError};
use super::every::{Every, EveryError};
use super::phrase;
use super::zone::Zone;

/// Greatest number of clock changes that are read for one slot: 400 years of four each.
const MOST_CHANGES: usize = 1600;

/// Number of extra slots that are computed before the search goes backwards from the end.
const FEW: usize = 3;

/// Recurrence of a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recurrence {
    /// By a cron expression.
    Cron(Cron),
    /// By an interval, counted from the schedule's start, or from 1970 without one, so that all workers compute the
    /// same slots.
    Every(Every),
}

/// The reason why a recurrence was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecurrenceError {
    /// The expression is not valid.
    #[error(transparent)]
    Cron(#[from] CronError),
    /// The interval is not valid.
    #[error(transparent)]
    Every(#[from] EveryError),
}

impl Recurrence {
    /// Parses an interval, as `30s`, or a phrase, as `monday`, `weekdays 9:00`, `day` or `hour`.
    ///
    /// # Errors
    /// The text is neither.
    pub fn every(text: &str) -> Result<Self, RecurrenceError> {
        match phrase::cron(text) {
            Some(cron) => Ok(Self::Cron(cron)),
            None => Ok(Self::Every(text.parse()?)),
        }
    }
}

impl FromStr for Recurrence {
    type Err = RecurrenceError;

    /// Parses a cron expression, or `@every` and an interval.
    fn from_str(text: &str) -> Result<Self, RecurrenceError> {
        let text = text.trim();
        let every = text.split_once(char::is_whitespace);
        let every = every.filter(|(word, _)| word.eq_ignore_ascii_case("@every"));
        Ok(match every {
            Some((_, interval)) => Self::Every(interval.parse()?),
            None => Self::Cron(text.parse()?),
        })
    }
}

impl fmt::Display for Recurrence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cron(cron) => cron.fmt(f),
            Self::Every(every) => write!(f, "@every {every}"),
        }
    }
}

/// Times of a schedule. All times are in milliseconds since 1970; slots are whole seconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timing {
    /// Recurrence.
    pub rhythm: Recurrence,
    /// Time zone of the expression.
    pub zone: Zone,
    /// Earliest slot.
    pub start: Option<u64>,
    /// Latest slot.
    pub end: Option<u64>,
}

impl Timing {
    /// Returns a recurrence in UTC without start and end.
    #[must_use]
    pub fn new(rhythm: Recurrence) -> Self {
        Self {
            rhythm,
            zone: Zone::default(),
            start: None,
            end: None,
        }
    }

    /// Returns the first slot after a moment, if there is one.
    #[must_use]
    pub fn next(&self, after: u64) -> Option<u64> {
        let before_start = self.start.map_or(0, |start| start.saturating_sub(1));
        let after = after.max(before_start);
        let slot = match &self.rhythm {
            Recurrence::Every(every) => {
                // The start is rounded up to a whole second.
                let first = self.start.unwrap_or(0).div_ceil(1000) * 1000;
                let passed = (after + 1).saturating_sub(first);
                Some(first + passed.div_ceil(every.ms()) * every.ms())
            }
            Recurrence::Cron(cron) => {
                let after = Timestamp::from_millisecond(i64::try_from(after).ok()?).ok()?;
                let next = match cron.is_by_the_clock() {
                    true => shown(cron, self.zone.rules(), after)?,
                    false => once_a_day(cron, self.zone.rules(), after)?,
                };
                u64::try_from(next.as_millisecond()).ok()
            }
        };
        slot.filter(|slot| self.end.is_none_or(|end| *slot <= end))
    }

    /// Returns the slots after a moment, in order.
    pub fn upcoming(&self, after: u64) -> impl Iterator<Item = u64> {
        std::iter::successors(self.next(after), |slot| self.next(*slot))
    }

    /// Returns the last slots after one moment and up to another, at most `most`, the oldest first.
    #[must_use]
    pub fn latest(&self, after: u64, until: u64, most: usize) -> Vec<u64> {
        // Usually there are few; the first slot that is not due ends the search.
        let mut few = Vec::new();
        for slot in self.upcoming(after).take(most + FEW) {
            if slot > until {
                return few.split_off(few.len().saturating_sub(most));
            }
            few.push(slot);
        }
        if few.len() < most + FEW {
            return few.split_off(few.len().saturating_sub(most));
        }
        // Searches a span before the end that has few slots, and longer ones until it has enough.
        let mut back = most as u64 * 1000;
        loop {
            let from = until.saturating_sub(back).max(after);
            let mut slots: Vec<_> = self
                .upcoming(from)
                .take_while(|slot| *slot <= until)
                .collect();
            if slots.len() >= most || from == after {
                return slots.split_off(slots.len().saturating_sub(most));
            }
            back = back.saturating_mul(4);
        }
    }
}

/// Returns the first moment after `after` whose clock time matches the expression.
fn shown(cron: &Cron, zone: &TimeZone, after: Timestamp) -> Option<Timestamp> {
    let (mut from, mut inclusive) = (after, false);
    // Between two changes, the clock runs evenly.
    for _ in 0..MOST_CHANGES {
        let offset = zone.to_offset(from);
        let change = zone.following(from).next().map(|change| change.timestamp());
        let next = cron.next(seconds(offset.to_datetime(from)), inclusive)?;
        let next = offset.to_timestamp(next).ok()?;
        match change {
            Some(change) if next >= change => (from, inclusive) = (change, true),
            _ => return Some(next),
        }
    }
    None
}

/// Returns the first moment after `after` for one of the expression's fixed times of a day.
fn once_a_day(cron: &Cron, zone: &TimeZone, after: Timestamp) -> Option<Timestamp> {
    let mut time = seconds(zone.to_datetime(after));
    loop {
        time = cron.next(time, false)?;
        let moment = match zone.to_ambiguous_timestamp(time).offset() {
            AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(time).ok()?,
            AmbiguousOffset::Fold { before, .. } => before.to_timestamp(time).ok()?,
            AmbiguousOffset::Gap { after, .. } => {
                let before = after.to_timestamp(time).ok()?;
                zone.following(before).next()?.timestamp()
            }
        };
        // In the repeated hour, earlier matches are past.
        if moment > after {
            return Some(moment);
        }
    }
}

fn seconds(time: DateTime) -> DateTime {
    time.with().subsec_nanosecond(0).build().unwrap_or(time)
}
