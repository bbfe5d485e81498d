//! The settings that workers of all protocols have, their defaults and their limits.

use std::time::Duration;

use crate::runner;

/// Jobs that run at once, unless the worker sets another number.
const CONCURRENCY: usize = 10;
/// The most jobs that one worker runs at once: as many as one renewal can carry.
pub const MAX_CONCURRENCY: usize = meshwork_broker::MAX_ITEMS;
/// Default lease of a job.
const LEASE: Duration = Duration::from_secs(10);
/// The shortest lease: three heartbeats have to fit in.
const MIN_LEASE: Duration = Duration::from_millis(300);
/// The longest lease: the jobs of a killed worker wait as long.
const MAX_LEASE: Duration = Duration::from_secs(3600);
/// Default timeout of running jobs at shutdown: less than the 30 s after which init systems and schedulers kill.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(25);
/// The longest run of a job that does not bring a timeout of its own.
pub const TIMEOUT: Duration = Duration::from_secs(300);
/// The shortest timeout.
const MIN_TIMEOUT: Duration = Duration::from_millis(1);
/// The longest time that anything waits: ten years, which clocks can still add to now.
pub(crate) const LONGEST: Duration = Duration::from_secs(3650 * 86_400);
/// Heartbeats in one lease: two may fail before the lease is lost.
pub(crate) const HEARTBEATS: u32 = 3;

/// The settings of a worker. They are checked when it is started.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Config {
    /// The most jobs that run at once. Default: 10, minimum: 1, maximum: [`MAX_CONCURRENCY`].
    pub concurrency: usize,
    /// Lease of a job. Default: 10 s, minimum: 300 ms, maximum: 1 h.
    pub lease: Duration,
    /// The longest run of a job that does not bring a timeout of its own. Default: 5 min, minimum: 1 ms, maximum: 10 years.
    pub timeout: Duration,
    /// Timeout of running jobs at shutdown, before they are released. Default: 25 s, maximum: 10 years.
    pub shutdown_timeout: Duration,
    /// Grace of a run after its stop signal. Default: 5 s, maximum: 10 years.
    pub cancel_grace: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            concurrency: CONCURRENCY,
            lease: LEASE,
            timeout: TIMEOUT,
            shutdown_timeout: SHUTDOWN_TIMEOUT,
            cancel_grace: runner::STOP_GRACE,
        }
    }
}

/// A setting of a worker is out of its limits. Nothing was started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the setting `{name}` is {given}: it has to be between {least} and {most}")]
pub struct InvalidSetting {
    /// The setting, by the name of its method.
    pub name: &'static str,
    /// The value that was given.
    pub given: String,
    /// The least value that is allowed.
    pub least: String,
    /// The greatest value that is allowed.
    pub most: String,
}

impl Config {
    /// Checks all settings.
    ///
    /// # Errors
    /// The first setting that is out of its limits.
    pub(crate) fn validate(&self) -> Result<(), InvalidSetting> {
        within(
            "concurrency",
            self.concurrency,
            (1, MAX_CONCURRENCY),
            |jobs| jobs.to_string(),
        )?;
        let time = |time: &Duration| format!("{time:?}");
        within("lease", self.lease, (MIN_LEASE, MAX_LEASE), time)?;
        within("timeout", self.timeout, (MIN_TIMEOUT, LONGEST), time)?;
        let from_zero = (Duration::ZERO, LONGEST);
        within("shutdown_timeout", self.shutdown_timeout, from_zero, time)?;
        within("cancel_grace", self.cancel_grace, from_zero, time)
    }

    /// The time between two renewals of all leases.
    pub(crate) fn heartbeat_interval(&self) -> Duration {
        self.lease / HEARTBEATS
    }

    /// Longest single blocking wait for an id. It ends before this worker counts as dead if its renewals fail, so that
    /// no id enters an unread prefetch list.
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
    fn defaults_and_limits_are_valid() {
        Config::default().validate().unwrap();
        let least = Config {
            concurrency: 1,
            lease: MIN_LEASE,
            timeout: MIN_TIMEOUT,
            shutdown_timeout: Duration::ZERO,
            cancel_grace: Duration::ZERO,
        };
        least.validate().unwrap();
        let most = Config {
            concurrency: MAX_CONCURRENCY,
            lease: MAX_LEASE,
            timeout: LONGEST,
            shutdown_timeout: LONGEST,
            cancel_grace: LONGEST,
        };
        most.validate().unwrap();
    }

    #[test]
    fn an_error_names_the_setting_and_its_limits() {
        let error = refused(|it| it.lease = Duration::ZERO);
        assert_eq!(
            error,
            "the setting `lease` is 0ns: it has to be between 300ms and 3600s"
        );
        let error = refused(|it| it.lease = Duration::from_millis(299));
        assert!(error.contains("299ms"), "{error}");
        for (name, error) in [
            ("concurrency", refused(|it| it.concurrency = 0)),
            ("concurrency", refused(|it| it.concurrency = 1001)),
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
