//! Values on the command line that are no plain numbers or names, and what may be wrong with them.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use clap::{Arg, Command};
use meshwork::context::Serves;
use meshwork::model::job::{Until, is_input_name, limits};
use meshwork::model::keys::context::{ContextId, InvalidId, JobKey};
use meshwork::model::name::{JobId, NameError, ScriptType};
use meshwork::model::route::Fallback;
use meshwork::model::time;
use meshwork::runner;

/// The longest lease, in seconds: for so long a killed worker's jobs lie idle.
const MAX_LEASE: f64 = 3600.0;
/// The shortest lease, in seconds: three renewals have to fit in.
const MIN_LEASE: f64 = 0.3;
/// The shortest age of a migration, in seconds: an old worker is busy for longer than that at times.
const MIN_AGE: f64 = 0.1;
/// The longest age of a migration, in seconds: twice that a lost job lies idle.
const MAX_AGE: f64 = 86_400.0;
/// The longest age of orphans, in seconds: twice that a lost job lies idle.
const MAX_ORPHAN_AGE: f64 = 3600.0;
/// The longest time to wait for something, in seconds: as long as a job may run.
const MAX_WAIT: f64 = limits::MAX_TIMEOUT as f64;
/// The shortest time to read from a client, in seconds: a network across the world and back.
const MIN_READ: f64 = 0.1;
/// The longest, in seconds: whoever says nothing keeps a connection for so long.
const MAX_READ: f64 = 600.0;
/// The longest time to try to reach the server, in seconds: a restart with a large log takes less.
const MAX_CONNECT: f64 = 3600.0;
/// The longest pause before a retry, in seconds.
const MAX_BACKOFF: f64 = limits::MAX_BACKOFF_MS as f64 / 1000.0;
/// The shortest interval between two looks at figures, in seconds: they come from all queues.
const MIN_INTERVAL: f64 = 0.5;
/// The longest of them, in seconds.
const MAX_INTERVAL: f64 = 3600.0;
/// The longest wait, as text.
pub(crate) const LONGEST_WAIT: &str = "7d";
/// What messages say of units.
const OR_UNITS: &str = ", or has units: 500ms, 10s, 5m, 1h30m";
/// The longest ago, in seconds: a hundred years.
const MAX_AGO: u64 = 100 * 365 * 24 * 3600;

/// How long one run of a job may take: the record has whole seconds.
pub(crate) fn job_timeout(text: &str) -> Result<Duration, String> {
    let read = within(text, 1.0, limits::MAX_TIMEOUT as f64);
    read.filter(|read| read.subsec_nanos() == 0).ok_or_else(|| {
        format!(
            "a timeout is a whole number of seconds from 1 to {} (7 days){OR_UNITS}",
            limits::MAX_TIMEOUT
        )
    })
}

/// How long a job is a worker's without a renewal.
pub(crate) fn lease(text: &str) -> Result<Duration, String> {
    within(text, MIN_LEASE, MAX_LEASE).ok_or_else(|| {
        format!("a lease is a number of seconds from {MIN_LEASE} to {MAX_LEASE}{OR_UNITS}")
    })
}

/// How long a client may take over what it sends.
pub(crate) fn read_timeout(text: &str) -> Result<Duration, String> {
    within(text, MIN_READ, MAX_READ).ok_or_else(|| {
        format!("a time to read is a number of seconds from {MIN_READ} to {MAX_READ}{OR_UNITS}")
    })
}

/// How long a job may be in the hands of an old worker without a word.
pub(crate) fn age(text: &str) -> Result<Duration, String> {
    within(text, MIN_AGE, MAX_AGE).ok_or_else(|| {
        format!("an age is a number of seconds from {MIN_AGE} to {MAX_AGE}{OR_UNITS}")
    })
}

/// For how long a job looks like an orphan before it is pushed again.
pub(crate) fn orphan_age(text: &str) -> Result<Duration, String> {
    within(text, MIN_AGE, MAX_ORPHAN_AGE).ok_or_else(|| {
        format!(
            "an age of orphans is a number of seconds from {MIN_AGE} to {MAX_ORPHAN_AGE}{OR_UNITS}"
        )
    })
}

/// Between two looks at figures.
pub(crate) fn interval(text: &str) -> Result<Duration, String> {
    within(text, MIN_INTERVAL, MAX_INTERVAL).ok_or_else(|| {
        format!(
            "an interval is a number of seconds from {MIN_INTERVAL} to {MAX_INTERVAL}{OR_UNITS}"
        )
    })
}

/// How long to wait for something; 0 is not to wait.
pub(crate) fn wait(text: &str) -> Result<Duration, String> {
    within(text, 0.0, MAX_WAIT)
        .ok_or_else(|| format!("give a number of seconds from 0 to {MAX_WAIT} (7 days){OR_UNITS}"))
}

/// Returns the time for which a command tries to reach the server; 0: once.
pub(crate) fn connect_timeout(text: &str) -> Result<Duration, String> {
    within(text, 0.0, MAX_CONNECT)
        .ok_or_else(|| format!("give a number of seconds from 0 (once) to {MAX_CONNECT}{OR_UNITS}"))
}

/// The pause before the first retry.
pub(crate) fn backoff(text: &str) -> Result<Duration, String> {
    within(text, 0.0, MAX_BACKOFF).ok_or_else(|| {
        format!("give a number of seconds from 0 to {MAX_BACKOFF} (one hour){OR_UNITS}")
    })
}

/// Where a job for one worker goes if that worker is not there.
pub(crate) fn fallback(text: &str) -> Result<Fallback, String> {
    match text {
        "group" => Ok(Fallback::Group),
        "type" => Ok(Fallback::Type),
        _ => Err("a fallback is `group` or `type`".to_owned()),
    }
}

/// A time, or how long ago it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// Milliseconds since 1970.
    At(u64),
    Ago(Duration),
}

impl Moment {
    /// In milliseconds since 1970, where it is `now`.
    pub(crate) fn ms(self, now: u64) -> u64 {
        match self {
            Self::At(ms) => ms,
            Self::Ago(age) => now.saturating_sub(age.as_millis() as u64),
        }
    }
}

/// `90s`, `15m`, `2h`, `7d`, or a time in UTC.
pub(crate) fn moment(text: &str) -> Result<Moment, String> {
    let age = duration(text).filter(|age| age.as_secs() <= MAX_AGO);
    age.map(Moment::Ago)
        .or_else(|| time::parse_iso(text).map(Moment::At))
        .ok_or_else(|| {
            "give an age (90s, 15m, 2h, 7d) or a time in UTC (2026-01-31, 2026-01-31T12:00:00Z)"
                .to_owned()
        })
}

/// A time in UTC, in milliseconds since 1970.
pub(crate) fn time(text: &str) -> Result<u64, String> {
    let read = time::parse_iso(text);
    read.ok_or_else(|| "give a time in UTC (2026-01-31, 2026-01-31T12:00:00Z)".to_owned())
}

/// A time, or how long from now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// Milliseconds since 1970.
    At(u64),
    In(Duration),
}

/// A time in RFC 3339, a date in UTC, or how long from now: `+10m`.
pub(crate) fn when(text: &str) -> Result<When, String> {
    let read = match text.strip_prefix('+') {
        Some(delay) => span(delay).ok().map(When::In),
        None => instant(text).map(When::At),
    };
    read.ok_or_else(|| {
        "give a time (2026-01-31T12:00:00Z, 2026-01-31T12:00:00+01:00, 2026-01-31) or +10m from now"
            .to_owned()
    })
}

/// A time with its distance from UTC, in milliseconds since 1970.
fn instant(text: &str) -> Option<u64> {
    if let Some(ms) = time::parse_iso(text) {
        return Some(ms);
    }
    let (local, zone) = text.split_at_checked(text.len().checked_sub(6)?)?;
    let ms = time::parse_iso(&format!("{local}Z")).filter(|_| local.contains('T'))?;
    let (sign, of_day) = zone.split_at_checked(1)?;
    let off = time::parse_iso(&format!("1970-01-01T{of_day}:00Z"))?;
    match sign {
        "+" => ms.checked_sub(off),
        "-" => ms.checked_add(off),
        _ => None,
    }
}

/// How long: `500ms`, `90s`, `10m`, `2h`, `7d`, and several of them together, as Go writes `1m30s`; a number alone is
/// seconds. More than nothing.
pub(crate) fn span(text: &str) -> Result<Duration, String> {
    let most = Duration::from_millis(limits::MAX_DELAY_MS);
    duration(text)
        .filter(|read| (Duration::from_millis(1)..=most).contains(read))
        .ok_or_else(|| "give how long: 500ms, 90s, 10m, 1h30m, 7d, at most ten years".to_owned())
}

/// A name, and for how long it counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) time: Duration,
}

/// `NAME=TIME`.
pub(crate) fn named(text: &str) -> Result<Named, String> {
    let (name, time) = text
        .rsplit_once('=')
        .filter(|(name, _)| !name.is_empty())
        .ok_or("write NAME=TIME, as save=5s")?;
    Ok(Named {
        name: name.to_owned(),
        time: span(time)?,
    })
}

/// Until when a unique name is kept.
pub(crate) fn until(text: &str) -> Result<Until, String> {
    match text {
        "started" => Ok(Until::Started),
        "done" => Ok(Until::Done),
        _ => Err("a unique name is kept until `started` or `done`".to_owned()),
    }
}

/// A duration within these bounds, in seconds: `10`, `0.5`, `10s`, `500ms`, `1h30m`.
fn within(text: &str, least: f64, most: f64) -> Option<Duration> {
    duration(text).filter(|read| (least..=most).contains(&read.as_secs_f64()))
}

/// The one way in which durations are written: seconds as a number alone, or whole numbers with units.
fn duration(text: &str) -> Option<Duration> {
    if !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit() || c == b'.') {
        return Duration::try_from_secs_f64(text.parse().ok()?).ok();
    }
    time::parse_span(text).map(Duration::from_millis)
}

/// `NAME=VALUE`, or `NAME` alone for the value that it has here, which others do not see then in the list of
/// processes. What is no such thing is not repeated: it may be a secret.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Env;

impl TypedValueParser for Env {
    type Value = (String, String);

    fn parse_ref(
        &self,
        command: &Command,
        _: Option<&Arg>,
        text: &OsStr,
    ) -> Result<Self::Value, clap::Error> {
        let here = |name: &str| crate::environment::var(name);
        text.to_str()
            .and_then(|text| env(text, here))
            .ok_or_else(|| {
                let what =
                    "--env is written NAME=VALUE, or NAME alone where that variable is set here";
                command.clone().error(ErrorKind::InvalidValue, what)
            })
    }
}

fn env(text: &str, here: impl Fn(&str) -> Option<String>) -> Option<(String, String)> {
    match text.split_once('=') {
        Some((name, value)) => (!name.is_empty()).then(|| (name.to_owned(), value.to_owned())),
        None => here(text).map(|value| (text.to_owned(), value)),
    }
}

/// Contexts: numbers with commas between them, or `all`.
pub(crate) fn contexts(text: &str) -> Result<Serves, InvalidId> {
    if text == "all" {
        return Ok(Serves::All);
    }
    let ids: Result<Vec<ContextId>, _> = text.split(',').map(str::parse).collect();
    let mut ids = ids?;
    ids.sort_unstable();
    ids.dedup();
    Ok(Serves::Some(ids))
}

/// The id of a new job; in a context `2001` or `12:2001`, or the job's key.
pub(crate) fn new_job_id(text: &str) -> Result<JobId, String> {
    match JobKey::of_numbers(text.strip_prefix("job:").unwrap_or(text)) {
        Ok(_) => Ok(JobId::foreign(text.to_owned())),
        Err(_) => text.parse().map_err(|why: NameError| why.to_string()),
    }
}

/// The id of a job that is there: whoever made it may have taken other characters than we do.
pub(crate) fn job_id(text: &str) -> Result<JobId, String> {
    if text.is_empty() {
        return Err("a job's id is not empty".to_owned());
    }
    Ok(JobId::foreign(text.to_owned()))
}

/// The id of a job to wait for, or `NAME=ID` with a name for its result.
pub(crate) fn prerequisite(text: &str) -> Result<(Option<String>, JobId), String> {
    let named = text.split_once('=').filter(|(name, _)| is_input_name(name));
    match named {
        Some((name, id)) => Ok((Some(name.to_owned()), job_id(id)?)),
        None => Ok((None, job_id(text)?)),
    }
}

/// `TYPE=COMMAND`, of a type that comes without a runtime.
pub(crate) fn runtime(text: &str) -> Result<(ScriptType, String), String> {
    let parts = text.split_once('=');
    let (name, command) =
        parts.ok_or("write the type, an equals sign, and the command: ruby='ruby {script}'")?;
    let script_type: ScriptType = name.parse().map_err(|error| format!("{error}"))?;
    match runner::builtin(name) {
        Some(_) => Err(format!("{name} has a runtime already: choose another type")),
        None => Ok((script_type, command.to_owned())),
    }
}

/// `NAME=FILE`.
pub(crate) fn handler(text: &str) -> Result<(String, PathBuf), String> {
    let parts = text.split_once('=');
    let parts = parts.filter(|(name, file)| !name.is_empty() && !file.is_empty());
    let (name, file) = parts.ok_or("write the name, an equals sign, and the script's file")?;
    Ok((name.to_owned(), PathBuf::from(file)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_are_whole_seconds_within_their_limits() {
        assert_eq!(job_timeout("1"), Ok(Duration::from_secs(1)));
        assert_eq!(job_timeout("604800"), Ok(Duration::from_secs(604_800)));
        for bad in [
            "",
            "0",
            "-5",
            "0.5",
            "1500ms",
            "8d",
            "NaN",
            "inf",
            "1e3",
            "604801",
            "9".repeat(30).as_str(),
        ] {
            assert!(job_timeout(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn waits_and_leases_are_numbers_within_their_limits() {
        assert_eq!(wait("0"), Ok(Duration::ZERO));
        assert_eq!(lease("0.3"), Ok(Duration::from_millis(300)));
        for bad in ["", "-1", "NaN", "inf", "1e300", "ten"] {
            assert!(wait(bad).is_err() && lease(bad).is_err(), "{bad}");
        }
        assert!(lease("0").is_err());
    }

    type Read = fn(&str) -> Result<Duration, String>;

    #[test]
    fn durations_are_written_alike_everywhere() {
        let readers: [Read; 10] = [
            span,
            job_timeout,
            lease,
            read_timeout,
            age,
            orphan_age,
            interval,
            wait,
            connect_timeout,
            backoff,
        ];
        for read in readers {
            for text in ["10", "10s", "10000ms"] {
                assert_eq!(read(text), Ok(Duration::from_secs(10)), "{text}");
            }
            assert_eq!(read("5m"), Ok(Duration::from_secs(300)));
            assert_eq!(read("1m30s"), Ok(Duration::from_secs(90)));
            for bad in [
                "", "s", "-1", "+1", "1.5h", "5 m", "5M", "1e1", "ten", "1..2",
            ] {
                assert!(read(bad).is_err(), "{bad}");
            }
        }
        assert_eq!(moment("10s"), Ok(Moment::Ago(Duration::from_secs(10))));
        assert_eq!(moment("1h30m"), Ok(Moment::Ago(Duration::from_secs(5400))));
    }

    #[test]
    fn a_moment_is_an_age_or_a_time() {
        let ago = |seconds| Ok(Moment::Ago(Duration::from_secs(seconds)));
        assert_eq!(moment("0"), ago(0));
        assert_eq!((moment("90"), moment("90s")), (ago(90), ago(90)));
        assert_eq!((moment("2h"), moment("7d")), (ago(7200), ago(604_800)));
        assert_eq!(moment("1970-01-02"), Ok(Moment::At(86_400_000)));
        assert_eq!(Moment::Ago(Duration::from_secs(2)).ms(3000), 1000);
        assert_eq!(Moment::Ago(Duration::from_secs(9)).ms(3000), 0);
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
            assert!(moment(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn times_to_come() {
        let at = |text| When::At(time::parse_iso(text).unwrap());
        let noon = at("2026-01-31T12:00:00Z");
        for text in [
            "2026-01-31T12:00:00Z",
            "2026-01-31T13:00:00+01:00",
            "2026-01-31T06:30:00-05:30",
            "2026-01-31T12:00:00.000+00:00",
        ] {
            assert_eq!(when(text), Ok(noon), "{text}");
        }
        assert_eq!(when("2026-01-31"), Ok(at("2026-01-31")));
        assert_eq!(when("+10m"), Ok(When::In(Duration::from_secs(600))));
        for bad in [
            "",
            "+",
            "10m",
            "now",
            "2026-01-31T12:00:00",
            "2026-01-31+01:00",
            "+0s",
            "2026-01-31T12:00:00+25:00",
            "1970-01-01T00:00:00+01:00",
            "äöü+01:00",
        ] {
            assert!(when(bad).is_err(), "{bad}");
        }
        assert_eq!(span("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!((span("90"), span("2h")), (span("90s"), span("120m")));
        // As Go writes them.
        assert_eq!((span("1m30s"), span("1h30m")), (span("90s"), span("90m")));
        assert_eq!(span("1s500ms"), Ok(Duration::from_millis(1500)));
        for bad in ["", "0", "-1s", "+1s", "1.5h", "ms", "99999d", "1w"] {
            assert!(span(bad).is_err(), "{bad}");
        }
        let pair = named("a=b=5s").unwrap();
        assert_eq!(
            (pair.name.as_str(), pair.time),
            ("a=b", Duration::from_secs(5))
        );
        for bad in ["", "a", "=5s", "a=", "a=x"] {
            assert!(named(bad).is_err(), "{bad}");
        }
        assert!(until("started").is_ok() && until("done").is_ok() && until("").is_err());
    }

    #[test]
    fn pauses_and_fallbacks() {
        assert_eq!(backoff("0.25"), Ok(Duration::from_millis(250)));
        assert!(backoff("3600").is_ok() && backoff("3601").is_err() && backoff("-1").is_err());
        assert!(fallback("group").is_ok() && fallback("type").is_ok() && fallback("").is_err());
    }

    #[test]
    fn an_environment_variable_has_a_name() {
        let here = |name: &str| (name == "HERE").then(|| "h".to_owned());
        let pair = |name: &str, value: &str| Some((name.to_owned(), value.to_owned()));
        assert_eq!(env("A=b=c", here), pair("A", "b=c"));
        assert_eq!(env("A=", here), pair("A", ""));
        assert_eq!(env("HERE", here), pair("HERE", "h"));
        assert_eq!(env("HERE=i", here), pair("HERE", "i"));
        for bad in ["A", "=b", ""] {
            assert_eq!(env(bad, here), None, "{bad}");
        }
    }
}
