//! When a schedule is due: from a rhythm and a time zone to moments, which are called slots.
//!
//! On the days on which clocks change it does as Vixie cron does. An expression whose minute or hour begins
//! with `*` goes by the real clock: it fires whenever the clock on the wall shows what it says, so an hourly
//! job runs every real hour, and in the hour that is shown twice it runs twice. All others mean fixed times
//! of a day, each once a day: a time that the clock leaps over is due at the moment of the leap (several of
//! them are one slot), and of a time that it shows twice the first one counts. An interval counts real
//! seconds.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};

use super::cron::{Cron, CronError};
use super::every::{Every, EveryError};
use super::zone::Zone;

/// The most changes of a zone's clock that are looked at for one slot: 400 years of four each.
const MOST_CHANGES: usize = 1600;

/// How many slots more than are wanted are computed before one looks back from the end.
const FEW: usize = 3;

/// How often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rhythm {
    /// By the calendar.
    Cron(Cron),
    /// By the clock alone: counted from the schedule's start, or from 1970 where it has none, so that all
    /// who count come to the same.
    Every(Every),
}

/// Why a rhythm was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RhythmError {
    /// The expression.
    #[error(transparent)]
    Cron(#[from] CronError),
    /// The interval.
    #[error(transparent)]
    Every(#[from] EveryError),
}

impl FromStr for Rhythm {
    type Err = RhythmError;

    /// A cron expression, or `@every` and an interval.
    fn from_str(text: &str) -> Result<Self, RhythmError> {
        let text = text.trim();
        let every = text.split_once(char::is_whitespace);
        let every = every.filter(|(word, _)| word.eq_ignore_ascii_case("@every"));
        Ok(match every {
            Some((_, interval)) => Self::Every(interval.parse()?),
            None => Self::Cron(text.parse()?),
        })
    }
}

impl fmt::Display for Rhythm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cron(cron) => cron.fmt(f),
            Self::Every(every) => write!(f, "@every {every}"),
        }
    }
}

/// When a schedule is due. All times are in milliseconds since 1970; slots are whole seconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timing {
    /// How often.
    pub rhythm: Rhythm,
    /// Whose clock an expression means.
    pub zone: Zone,
    /// No slot before this.
    pub start: Option<u64>,
    /// No slot after this.
    pub end: Option<u64>,
}

impl Timing {
    /// A rhythm in UTC, for ever.
    #[must_use]
    pub fn new(rhythm: Rhythm) -> Self {
        Self {
            rhythm,
            zone: Zone::default(),
            start: None,
            end: None,
        }
    }

    /// The first slot after a moment, if there is one.
    #[must_use]
    pub fn next(&self, after: u64) -> Option<u64> {
        let before_start = self.start.map_or(0, |start| start.saturating_sub(1));
        let after = after.max(before_start);
        let slot = match &self.rhythm {
            Rhythm::Every(every) => {
                // Whole seconds: the start is rounded up to one.
                let first = self.start.unwrap_or(0).div_ceil(1000) * 1000;
                let passed = (after + 1).saturating_sub(first);
                Some(first + passed.div_ceil(every.ms()) * every.ms())
            }
            Rhythm::Cron(cron) => {
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

    /// Its slots after a moment, in order.
    pub fn upcoming(&self, after: u64) -> impl Iterator<Item = u64> {
        std::iter::successors(self.next(after), |slot| self.next(*slot))
    }

    /// The last slots after one moment and up to another, at most `most`, the oldest first.
    #[must_use]
    pub fn latest(&self, after: u64, until: u64, most: usize) -> Vec<u64> {
        // Mostly there is one, or are a few; the first that is not due ends the search.
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
        // Looks back over a span that is sure to hold few, and over longer ones until it holds enough.
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

/// The first moment after `after` at which the clock shows what the expression says.
fn shown(cron: &Cron, zone: &TimeZone, after: Timestamp) -> Option<Timestamp> {
    let (mut from, mut inclusive) = (after, false);
    // From one change of the clock to the next: in between, it goes like any other.
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

/// The first moment after `after` that stands for one of the expression's times of a day.
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
        // In the repeated hour, what it shows has been.
        if moment > after {
            return Some(moment);
        }
    }
}

fn seconds(time: DateTime) -> DateTime {
    time.with().subsec_nanosecond(0).build().unwrap_or(time)
}
