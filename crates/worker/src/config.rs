//! Settings that workers of all protocols share, with defaults and limits.

use std::str::FromStr;
use std::time::Duration;

use meshwork_model::time::duration_of;
use meshwork_runtime as runtime;
use meshwork_runtime::lease::LeaseClock;

/// Default number of jobs that run at once.
const CONCURRENCY: usize = 10;
/// Greatest number of jobs that a worker runs at once: one renewal carries all of them.
pub const MAX_CONCURRENCY: usize = meshwork_broker::MAX_ITEMS;
/// Greatest number of jobs beyond the free slots by default.
const PREFETCHED: usize = 64;
/// Default lease of a job.
const LEASE: Duration = Duration::from_secs(10);
/// Shortest lease: three heartbeats have to fit in.
const MIN_LEASE: Duration = Duration::from_millis(300);
/// Longest lease: jobs of a killed worker wait this long.
const MAX_LEASE: Duration = Duration::from_secs(3600);
/// Default timeout of running jobs at shutdown. It is shorter than 30 s, after which init systems and schedulers kill.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(25);
/// Default timeout of a job without its own.
pub const TIMEOUT: Duration = Duration::from_secs(300);
/// Shortest timeout.
const MIN_TIMEOUT: Duration = Duration::from_millis(1);
/// Longest time of any wait: ten years. Larger values could overflow when they are added to the current time.
pub const LONGEST: Duration = Duration::from_secs(3650 * 86_400);
/// Heartbeats in one lease: two may fail before the lease is lost.
pub const HEARTBEATS: u32 = 3;

/// Settings of a worker. They are checked when it starts.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Config {
    /// Greatest number of jobs that run at once. Default: 10, minimum: 1, maximum: [`MAX_CONCURRENCY`].
    pub concurrency: usize,
    /// Jobs claimed beyond the free slots. Default: [`Prefetch::Auto`], maximum: [`MAX_CONCURRENCY`].
    pub prefetch: Prefetch,
    /// Lease of a job. Default: 10 s, minimum: 300 ms, maximum: 1 h.
    pub lease: Duration,
    /// Timeout of a job without its own. Default: 5 min, minimum: 1 ms, maximum: 10 years.
    pub timeout: Duration,
    /// Timeout of running jobs at shutdown, before they are released. Default: 25 s, maximum: 10 years.
    pub shutdown_timeout: Duration,
    /// Time between the cancel signal of a run and its end by force. Default: 5 s, maximum: 10 years.
    pub cancel_grace: Duration,
    /// Clock of its leases.
    pub clock: LeaseClock,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            concurrency: CONCURRENCY,
            prefetch: Prefetch::Auto,
            lease: LEASE,
            timeout: TIMEOUT,
            shutdown_timeout: SHUTDOWN_TIMEOUT,
            cancel_grace: runtime::STOP_GRACE,
            clock: LeaseClock::default(),
        }
    }
}

/// Number of jobs that a worker claims beyond its free slots.
///
/// A prefetched job is leased and renewed, and counts as running. It is released, without an attempt, when it has waited
/// for a slot for 100 ms, and when the worker stops claiming. Queues with a concurrency limit, a rate or keys, and jobs
/// that run alone, are never prefetched. Workers of a `WorkerPool`, and workers whose
/// routes have weights, prefetch nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Prefetch {
    /// As many jobs as keep the slots busy for two trips to the server, by the mean times of runs and trips: at most 64,
    /// at most those that run in 100 ms, and none while a run takes longer than a trip.
    #[default]
    Auto,
    /// None.
    Off,
    /// As [`Prefetch::Auto`], but at most this number of jobs instead of 64.
    AtMost(usize),
}

/// A text that is no [`Prefetch`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no prefetch: give auto, off, or a number from 1 to {MAX_CONCURRENCY}")]
pub struct InvalidPrefetch(String);

impl FromStr for Prefetch {
    type Err = InvalidPrefetch;

    fn from_str(text: &str) -> Result<Self, InvalidPrefetch> {
        match text {
            "auto" => Ok(Self::Auto),
            "off" => Ok(Self::Off),
            number => match number.parse() {
                Ok(most) if (1..=MAX_CONCURRENCY).contains(&most) => Ok(Self::AtMost(most)),
                _ => Err(InvalidPrefetch(text.to_owned())),
            },
        }
    }
}

impl Prefetch {
    /// Returns the greatest number of prefetched jobs.
    pub(crate) fn most(self) -> usize {
        match self {
            Self::Auto => PREFETCHED,
            Self::Off => 0,
            Self::AtMost(most) => most,
        }
    }
}

/// A setting of a worker is out of its limits. Nothing was started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the setting `{name}` is {given}: it has to be between {least} and {most}")]
pub struct InvalidSetting {
    /// Name of the setting, which is that of its method.
    pub name: &'static str,
    /// Given value.
    pub given: String,
    /// Smallest allowed value.
    pub least: String,
    /// Greatest allowed value.
    pub most: String,
}

impl Config {
    /// Checks all settings.
    ///
    /// # Errors
    /// A setting is outside of its limits; the error names the first one.
    pub fn validate(&self) -> Result<(), InvalidSetting> {
        within(
            "concurrency",
            self.concurrency,
            (1, MAX_CONCURRENCY),
            |jobs| jobs.to_string(),
        )?;
        if let Prefetch::AtMost(jobs) = self.prefetch {
            let limits = (1, MAX_CONCURRENCY);
            within("prefetch", jobs, limits, |jobs| jobs.to_string())?;
        }
        let time = |time: &Duration| duration_of(*time);
        within("lease", self.lease, (MIN_LEASE, MAX_LEASE), time)?;
        within("timeout", self.timeout, (MIN_TIMEOUT, LONGEST), time)?;
        let from_zero = (Duration::ZERO, LONGEST);
        within("shutdown_timeout", self.shutdown_timeout, from_zero, time)?;
        within("cancel_grace", self.cancel_grace, from_zero, time)
    }

    /// Returns the interval of heartbeats.
    pub(crate) fn heartbeat_interval(&self) -> Duration {
        self.lease / HEARTBEATS
    }

    /// Returns the longest time of one blocking read. It ends before the registration of a worker whose renewals fail,
    /// so no id enters a prefetch list without an owner.
    pub(crate) fn wait(&self) -> Duration {
        self.lease.mul_f64(0.6)
    }
}

fn within<T: PartialOrd>(
    name: &'static str,
    given: T,
    (least, most): (T, T),
    text: impl Fn(&T) -> String,
) -> Result<(), InvalidSetting> {
    if least <= given && given <= most {
        return Ok(());
    }
    Err(InvalidSetting {
        name,
        given: text(&given),
        least: text(&least),
        most: text(&most),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: impl FnOnce(&mut Config)) -> String {
        let mut config = Config::default();
        change(&mut config);
        config.validate().unwrap_err().to_string()
    }

    #[test]
    fn a_setting_is_read_from_its_text() {
        assert_eq!("auto".parse(), Ok(Prefetch::Auto));
        assert_eq!("off".parse(), Ok(Prefetch::Off));
        assert_eq!("16".parse(), Ok(Prefetch::AtMost(16)));
        for wrong in ["", "0", "1001", "-1", "on"] {
            let error = wrong.parse::<Prefetch>().unwrap_err().to_string();
            assert!(error.contains("from 1 to 1000"), "{error}");
        }
    }

    #[test]
    fn defaults_and_limits_are_valid() {
        Config::default().validate().unwrap();
        let least = Config {
            concurrency: 1,
            prefetch: Prefetch::Off,
            lease: MIN_LEASE,
            timeout: MIN_TIMEOUT,
            shutdown_timeout: Duration::ZERO,
            cancel_grace: Duration::ZERO,
            ..Config::default()
        };
        least.validate().unwrap();
        let most = Config {
            concurrency: MAX_CONCURRENCY,
            prefetch: Prefetch::AtMost(MAX_CONCURRENCY),
            lease: MAX_LEASE,
            timeout: LONGEST,
            shutdown_timeout: LONGEST,
            cancel_grace: LONGEST,
            ..Config::default()
        };
        most.validate().unwrap();
    }

    #[test]
    fn an_error_names_the_setting_and_its_limits() {
        let error = refused(|it| it.lease = Duration::ZERO);
        assert_eq!(
            error,
            "the setting `lease` is 0 s: it has to be between 300 ms and 1 h"
        );
        let error = refused(|it| it.lease = Duration::from_millis(299));
        assert!(error.contains("299 ms"), "{error}");
        for (name, error) in [
            ("concurrency", refused(|it| it.concurrency = 0)),
            ("concurrency", refused(|it| it.concurrency = 1001)),
            ("prefetch", refused(|it| it.prefetch = Prefetch::AtMost(0))),
            (
                "prefetch",
                refused(|it| it.prefetch = Prefetch::AtMost(1001)),
            ),
            ("timeout", refused(|it| it.timeout = Duration::MAX)),
            ("timeout", refused(|it| it.timeout = Duration::ZERO)),
            (
                "shutdown_timeout",
                refused(|it| it.shutdown_timeout = Duration::MAX),
            ),
            (
                "cancel_grace",
                refused(|it| it.cancel_grace = Duration::MAX),
            ),
        ] {
            assert!(error.contains(&format!("`{name}`")), "{error}");
        }
    }
}
