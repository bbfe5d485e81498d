//! Parsers of arguments that are not plain numbers or names, and their errors.

use std::ffi::OsStr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use clap::{Arg, Command};
use meshwork::context::Serves;
use meshwork::runtime;
use meshwork_model::job::{is_input_name, limits};
use meshwork_model::keys::context::{ContextId, InvalidId, JobKey};
use meshwork_model::name::{JobId, NameError, ScriptType};
use meshwork_model::param::Span;

/// Longest lease, in seconds: the longest delay of a killed worker's jobs.
const MAX_LEASE: f64 = 3600.0;
/// Shortest lease, in seconds: it has to contain three renewals.
const MIN_LEASE: f64 = 0.3;
/// Shortest age of a migration, in seconds: old workers may be busy for longer.
const MIN_AGE: f64 = 0.1;
/// Longest age of a migration, in seconds: a lost job is delayed by twice that.
const MAX_AGE: f64 = 86_400.0;
/// Longest age of orphans, in seconds: a lost job is delayed by twice that.
const MAX_ORPHAN_AGE: f64 = 3600.0;
/// Longest wait, in seconds: the longest timeout of a job.
const MAX_WAIT: f64 = limits::MAX_TIMEOUT as f64;
/// Shortest read timeout of HTTP clients, in seconds: a round trip across the world takes less.
const MIN_READ: f64 = 0.1;
/// Longest read timeout of HTTP clients, in seconds: a silent client keeps its connection for this time.
const MAX_READ: f64 = 600.0;
/// Longest time to connect to the server, in seconds: a restart with a large log takes less.
const MAX_CONNECT: f64 = 3600.0;
/// Longest backoff before the first retry, in seconds.
const MAX_BACKOFF: f64 = limits::MAX_BACKOFF_MS as f64 / 1000.0;
/// Shortest interval between two samples of metrics, in seconds: each reads all queues.
const MIN_INTERVAL: f64 = 0.5;
/// Longest interval between two samples, in seconds.
const MAX_INTERVAL: f64 = 3600.0;
/// Longest wait, as text.
pub(crate) const LONGEST_WAIT: &str = "7d";
/// Part of messages about units.
const OR_UNITS: &str = ", or has units: 500ms, 10s, 5m, 1h30m";
/// Greatest age, in seconds: 100 years.
const MAX_AGO: u64 = 100 * 365 * 24 * 3600;

/// Returns a parser of whole numbers within these bounds.
pub(crate) fn whole<T: TryFrom<u64>>(
    range: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        let number = number.and_then(|number| T::try_from(number).ok());
        number.ok_or_else(|| match (range.start(), range.end()) {
            (least, &u64::MAX) => format!("give a whole number, {least} or more"),
            (least, most) => format!("give a whole number from {least} to {most}"),
        })
    }
}

/// Parses a job's timeout, in whole seconds as in the record.
pub(crate) fn job_timeout(text: &str) -> Result<Duration, String> {
    let read = within(text, 1.0, limits::MAX_TIMEOUT as f64);
    read.filter(|read| read.subsec_nanos() == 0).ok_or_else(|| {
        format!(
            "a timeout is a whole number of seconds from 1 to {} (7 days){OR_UNITS}",
            limits::MAX_TIMEOUT
        )
    })
}

/// Parses the duration of a lease.
pub(crate) fn lease(text: &str) -> Result<Duration, String> {
    within(text, MIN_LEASE, MAX_LEASE).ok_or_else(|| {
        format!("a lease is a number of seconds from {MIN_LEASE} to {MAX_LEASE}{OR_UNITS}")
    })
}

/// Parses the read timeout of HTTP clients.
pub(crate) fn read_timeout(text: &str) -> Result<Duration, String> {
    within(text, MIN_READ, MAX_READ).ok_or_else(|| {
        format!("a time to read is a number of seconds from {MIN_READ} to {MAX_READ}{OR_UNITS}")
    })
}

/// Parses the age from which a job of an old worker counts as lost.
pub(crate) fn age(text: &str) -> Result<Duration, String> {
    within(text, MIN_AGE, MAX_AGE).ok_or_else(|| {
        format!("an age is a number of seconds from {MIN_AGE} to {MAX_AGE}{OR_UNITS}")
    })
}

/// Parses the age from which an orphan is requeued.
pub(crate) fn orphan_age(text: &str) -> Result<Duration, String> {
    within(text, MIN_AGE, MAX_ORPHAN_AGE).ok_or_else(|| {
        format!(
            "an age of orphans is a number of seconds from {MIN_AGE} to {MAX_ORPHAN_AGE}{OR_UNITS}"
        )
    })
}

/// Parses the interval between two samples.
pub(crate) fn interval(text: &str) -> Result<Duration, String> {
    within(text, MIN_INTERVAL, MAX_INTERVAL).ok_or_else(|| {
        format!(
            "an interval is a number of seconds from {MIN_INTERVAL} to {MAX_INTERVAL}{OR_UNITS}"
        )
    })
}

/// Parses a wait; 0: no wait.
pub(crate) fn wait(text: &str) -> Result<Duration, String> {
    within(text, 0.0, MAX_WAIT)
        .ok_or_else(|| format!("give a number of seconds from 0 to {MAX_WAIT} (7 days){OR_UNITS}"))
}

/// Parses the time to connect to the server; 0: one try.
pub(crate) fn connect_timeout(text: &str) -> Result<Duration, String> {
    within(text, 0.0, MAX_CONNECT)
        .ok_or_else(|| format!("give a number of seconds from 0 (once) to {MAX_CONNECT}{OR_UNITS}"))
}

/// Parses the backoff before the first retry.
pub(crate) fn backoff(text: &str) -> Result<Duration, String> {
    within(text, 0.0, MAX_BACKOFF).ok_or_else(|| {
        format!("give a number of seconds from 0 to {MAX_BACKOFF} (one hour){OR_UNITS}")
    })
}

/// Parses an age of at most 100 years.
pub(crate) fn age_of(text: &str) -> Option<Duration> {
    duration(text).filter(|age| age.as_secs() <= MAX_AGO)
}

/// Parses a positive duration: `500ms`, `90s`, `10m`, `2h`, `7d`, or several parts as Go writes `1m30s`; a plain number
/// is seconds.
pub(crate) fn span(text: &str) -> Result<Duration, String> {
    let most = Duration::from_millis(limits::MAX_DELAY_MS);
    duration(text)
        .filter(|read| (Duration::from_millis(1)..=most).contains(read))
        .ok_or_else(|| "give how long: 500ms, 90s, 10m, 1h30m, 7d, at most ten years".to_owned())
}

/// Parses a delay; 0: none.
pub(crate) fn delay(text: &str) -> Result<Duration, String> {
    let most = Duration::from_millis(limits::MAX_DELAY_MS);
    duration(text)
        .filter(|read| *read <= most)
        .ok_or_else(|| "give how long: 0, 500ms, 90s, 10m, 1h30m, 7d, at most ten years".to_owned())
}

/// Parses a duration within these bounds, in seconds: `10`, `0.5`, `10s`, `500ms`, `1h30m`.
fn within(text: &str, least: f64, most: f64) -> Option<Duration> {
    duration(text).filter(|read| (least..=most).contains(&read.as_secs_f64()))
}

/// Parses a duration: seconds as a plain number, or whole numbers with units.
fn duration(text: &str) -> Option<Duration> {
    text.parse::<Span>().ok().map(|span| span.0)
}

/// Parser of `NAME=VALUE`, or of `NAME` for the value in this environment, which other users do not see in the list of
/// processes. Errors do not repeat the argument, which may be a secret.
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
        let read = text.to_str().and_then(|text| env(text, here));
        read.ok_or_else(|| {
            let what = match text.to_str().filter(|text| is_name(text)) {
                Some(name) => format!(
                    "the variable {name} of --env is not set here: set it, or write NAME=VALUE"
                ),
                None => {
                    "--env is written NAME=VALUE, or NAME alone where that variable is set here"
                        .to_owned()
                }
            };
            command.clone().error(ErrorKind::InvalidValue, what)
        })
    }
}

/// Returns true for a name as those of variables are written; all else may be a secret.
fn is_name(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    !text.is_empty() && text.chars().all(fits)
}

fn env(text: &str, here: impl Fn(&str) -> Option<String>) -> Option<(String, String)> {
    match text.split_once('=') {
        Some((name, value)) => (!name.is_empty()).then(|| (name.to_owned(), value.to_owned())),
        None => here(text).map(|value| (text.to_owned(), value)),
    }
}

/// Parses contexts: numbers with commas between them, or `all`.
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

/// Parses the id of a new job; in a context `2001` or `12:2001`, or the job's key.
pub(crate) fn new_job_id(text: &str) -> Result<JobId, String> {
    match JobKey::of_numbers(text.strip_prefix("job:").unwrap_or(text)) {
        Ok(_) => Ok(JobId::foreign(text.to_owned())),
        Err(_) => text.parse().map_err(|why: NameError| why.to_string()),
    }
}

/// Parses the id of an existing job; other clients may use characters that new ids cannot have.
pub(crate) fn job_id(text: &str) -> Result<JobId, String> {
    if text.is_empty() {
        return Err("a job's id is not empty".to_owned());
    }
    Ok(JobId::foreign(text.to_owned()))
}

/// Parses the id of a prerequisite, or `NAME=ID` with a name for its result.
pub(crate) fn prerequisite(text: &str) -> Result<(Option<String>, JobId), String> {
    let named = text.split_once('=').filter(|(name, _)| is_input_name(name));
    match named {
        Some((name, id)) => Ok((Some(name.to_owned()), job_id(id)?)),
        None => Ok((None, job_id(text)?)),
    }
}

/// Parses `TYPE=COMMAND`, for a type without a built-in runtime.
pub(crate) fn runtime(text: &str) -> Result<(ScriptType, String), String> {
    let parts = text.split_once('=');
    let (name, command) =
        parts.ok_or("write the type, an equals sign, and the command: ruby='ruby {script}'")?;
    let script_type: ScriptType = name.parse().map_err(|error| format!("{error}"))?;
    match runtime::builtin(name) {
        Some(_) => Err(format!("{name} has a runtime already: choose another type")),
        None => Ok((script_type, command.to_owned())),
    }
}

/// Parses a concurrency key or a unique name.
pub(crate) fn key(text: &str) -> Result<String, String> {
    let most = limits::MAX_KEY;
    let fits = (1..=most).contains(&text.len()) && !text.contains(char::is_control);
    let fits = fits.then(|| text.to_owned());
    fits.ok_or_else(|| format!("give 1 to {most} bytes, without control characters"))
}

/// Parses `NAME=FILE`.
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
    fn a_number_out_of_bounds_is_refused_with_the_bounds() {
        let read = whole::<u8>(1..=300);
        assert_eq!(read("255"), Ok(255));
        for bad in [
            "",
            "0",
            "301",
            "256",
            "-1",
            "1.5",
            "abc",
            "99999999999999999999",
        ] {
            let said = read(bad).unwrap_err();
            assert_eq!(said, "give a whole number from 1 to 300", "{bad}");
        }
        let said = whole::<u32>(1..=u64::MAX)("abc").unwrap_err();
        assert_eq!(said, "give a whole number, 1 or more");
    }

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
    }

    #[test]
    fn spans() {
        assert_eq!(span("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!((span("90"), span("2h")), (span("90s"), span("120m")));
        // In the format of Go.
        assert_eq!((span("1m30s"), span("1h30m")), (span("90s"), span("90m")));
        assert_eq!(span("1s500ms"), Ok(Duration::from_millis(1500)));
        for bad in ["", "0", "-1s", "+1s", "1.5h", "ms", "99999d", "1w"] {
            assert!(span(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn pauses() {
        assert_eq!(backoff("0.25"), Ok(Duration::from_millis(250)));
        assert!(backoff("3600").is_ok() && backoff("3601").is_err() && backoff("-1").is_err());
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
