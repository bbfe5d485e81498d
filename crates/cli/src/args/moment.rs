//! Points in time on the command line, and the zone of those without one.

use std::time::Duration;

use jiff::tz::TimeZone;
use meshwork_model::schedule::wall_time::{Direction, WallTime};
use meshwork_model::schedule::zone::Zone;
use meshwork_model::time;

use crate::args::parsers::{age_of, span};
use crate::environment;
use crate::error::CommandError;
use crate::out::note;

/// Forms of a time, for messages.
const FORMS: &str =
    "2026-01-31 12:00, 2026-01-31T12:00:00Z, 2026-01-31T12:00:00+01:00, 'tomorrow 9:00', monday";

/// A point in time, an age, or a delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// Milliseconds since 1970.
    At(u64),
    /// A time without a zone.
    Wall(WallTime),
    Ago(Duration),
    In(Duration),
}

/// Parses `90s`, `15m`, `2h`, `7d`, or a time.
pub(crate) fn past(text: &str) -> Result<Moment, String> {
    let ago = age_of(text).map(Moment::Ago);
    ago.or_else(|| time_of(text))
        .ok_or_else(|| format!("give an age (90s, 15m, 2h, 7d) or a time ({FORMS}, yesterday)"))
}

/// Parses a time, or a delay: `+10m`.
pub(crate) fn future(text: &str) -> Result<Moment, String> {
    let read = match text.strip_prefix('+') {
        Some(delay) => span(delay).ok().map(Moment::In),
        None => time_of(text),
    };
    read.ok_or_else(|| format!("give a time ({FORMS}) or +10m from now"))
}

/// Parses a time.
pub(crate) fn point(text: &str) -> Result<Moment, String> {
    time_of(text).ok_or_else(|| format!("give a time ({FORMS})"))
}

fn time_of(text: &str) -> Option<Moment> {
    let wall = || text.parse().ok().map(Moment::Wall);
    time::parse_instant(text).map(Moment::At).or_else(wall)
}

impl Moment {
    /// Returns milliseconds since 1970, relative to `now`.
    pub(crate) fn ms(
        self,
        now: u64,
        zone: &Zone,
        direction: Direction,
    ) -> Result<u64, MomentError> {
        match self {
            Self::At(ms) => Ok(ms),
            Self::Ago(age) => Ok(now.saturating_sub(age.as_millis() as u64)),
            Self::In(delay) => Ok(now.saturating_add(delay.as_millis() as u64)),
            Self::Wall(time) => time.ms(now, zone, direction).ok_or(MomentError::Years),
        }
    }

    /// Returns milliseconds since 1970. Prints the time that was meant if `text` was without a zone.
    pub(crate) fn meant(
        self,
        what: &str,
        now: u64,
        zone: &Zone,
        direction: Direction,
    ) -> Result<u64, MomentError> {
        let ms = self.ms(now, zone, direction)?;
        if let Self::Wall(_) = self {
            note(format_args!("{what} {}", zone.show(ms)));
        }
        Ok(ms)
    }
}

/// A time that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MomentError {
    #[error("the time is not within the years 1970 to 9999")]
    Years,
    #[error("the time {0} is past: leave --at out to run the job at once")]
    Past(String),
    #[error(
        "TZ is {0:?}, which is no time zone: give an IANA name, as TZ=Europe/Brussels, or name one with --tz"
    )]
    Zone(String),
}

impl From<MomentError> for CommandError {
    fn from(error: MomentError) -> Self {
        Self::usage(error)
    }
}

/// Time zone of the times of a command.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct ZoneArg {
    /// Time zone of times without one, an IANA name, as Europe/Brussels [default: the local zone]
    #[arg(long, value_name = "ZONE")]
    pub(crate) tz: Option<Zone>,
}

impl ZoneArg {
    /// Returns the zone of these moments: that of the option, or the local one, which is looked at only if one of them needs a
    /// zone.
    pub(crate) fn zone(&self, moments: &[Option<Moment>]) -> Result<Zone, MomentError> {
        let needs = |moment: &Option<Moment>| matches!(moment, Some(Moment::Wall(_)));
        match &self.tz {
            Some(zone) => Ok(zone.clone()),
            None if moments.iter().any(needs) => local(),
            None => Ok(Zone::default()),
        }
    }
}

/// Returns the zone of this host, from $TZ or /etc/localtime; UTC if the latter has no IANA name.
pub(crate) fn local() -> Result<Zone, MomentError> {
    let local = TimeZone::system();
    let named = local.iana_name().and_then(|name| name.parse().ok());
    let set = environment::var("TZ").filter(|name| !name.is_empty());
    match (named, set) {
        (Some(zone), None) => Ok(zone),
        (None, None) => Ok(Zone::default()),
        // Without a zone of this name, the system's is UTC.
        (named, Some(set)) => match named.filter(|zone| zone.name() != "UTC") {
            Some(zone) => Ok(zone),
            None => set
                .trim_start_matches(':')
                .parse()
                .map_err(|_| MomentError::Zone(set)),
        },
    }
}

/// Refuses a time to come that is past.
pub(crate) fn to_come(ms: u64, now: u64) -> Result<u64, MomentError> {
    match ms.saturating_add(time::LATE_MS) < now {
        true => Err(MomentError::Past(time::iso(ms))),
        false => Ok(ms),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Moment {
        Moment::At(time::parse_iso(text).unwrap())
    }

    fn wall(text: &str) -> Moment {
        Moment::Wall(text.parse().unwrap())
    }

    fn ms(moment: Moment, now: u64) -> Result<u64, MomentError> {
        moment.ms(now, &Zone::default(), Direction::Last)
    }

    #[test]
    fn the_past_is_an_age_or_a_time() {
        let ago = |seconds| Ok(Moment::Ago(Duration::from_secs(seconds)));
        assert_eq!(past("0"), ago(0));
        assert_eq!((past("10s"), past("1h30m")), (ago(10), ago(5400)));
        assert_eq!((past("90"), past("90s")), (ago(90), ago(90)));
        assert_eq!((past("2h"), past("7d")), (ago(7200), ago(604_800)));
        assert_eq!(past("yesterday 9:00"), Ok(wall("yesterday 9:00")));
        assert_eq!(past("1970-01-02"), Ok(wall("1970-01-02")));
        assert_eq!(ms(wall("1970-01-02"), 0), Ok(86_400_000));
        assert_eq!(ms(wall("1969-01-02"), 0), Err(MomentError::Years));
        assert_eq!(ms(Moment::Ago(Duration::from_secs(2)), 3000), Ok(1000));
        assert_eq!(ms(Moment::Ago(Duration::from_secs(9)), 3000), Ok(0));
        for bad in [
            "",
            "-1",
            "+1",
            "1.5h",
            "h",
            "soon",
            "1w",
            "9999999999d",
            "2026-02-30",
            "1ä",
        ] {
            assert!(past(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn times_to_come() {
        let noon = at("2026-01-31T12:00:00Z");
        for text in [
            "2026-01-31T12:00:00Z",
            "2026-01-31T13:00:00+01:00",
            "2026-01-31T06:30:00-05:30",
            "2026-01-31T12:00:00.000+00:00",
        ] {
            assert_eq!((future(text), point(text)), (Ok(noon), Ok(noon)), "{text}");
        }
        for text in ["2026-01-31", "2026-01-31T12:00:00", "tomorrow 9:00"] {
            assert_eq!(future(text), Ok(wall(text)));
        }
        let ten = Duration::from_secs(600);
        assert_eq!(future("+10m"), Ok(Moment::In(ten)));
        assert_eq!(ms(Moment::In(ten), 1000), Ok(601_000));
        for bad in [
            "",
            "+",
            "10m",
            "now",
            "2026-01-31+01:00",
            "+0s",
            "2026-01-31T12:00:00+25:00",
            "1970-01-01T00:00:00+01:00",
            "äöü+01:00",
        ] {
            assert!(future(bad).is_err() && point(bad).is_err(), "{bad}");
        }
        assert!(point("+10m").is_err());
    }
}
