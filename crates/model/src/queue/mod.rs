//! Settings of a queue: pause, drain, limits, fairness. This module validates and stores them; the broker's scripts
//! apply them.

mod alert;
pub mod history;
mod rate;

use std::collections::BTreeMap;

use crate::job::name_fault;
use crate::sandbox::{Limit, Profile, SandboxSettings};
pub use alert::{MAX_ALERT_AFTER, check_alert};
pub use rate::{Rate, RateError};

/// Greatest limit of concurrency and of a rate's count.
pub const MAX_CONCURRENCY: u64 = 1_000_000_000;
/// Greatest payload limit, in bytes: the greatest size of a value in Redis.
pub const MAX_PAYLOAD: u64 = 512 * 1024 * 1024;
/// Greatest weight. This many jobs of a key are in a fair queue at once, and each step reads all of them.
pub const MAX_WEIGHT: u64 = 100;

/// Name of the profile of the sandbox in the record of the settings.
const SANDBOX: &str = "sandbox";

/// Settings of a queue, for all its priorities together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueSettings {
    /// True if no job may be claimed. Running jobs continue.
    pub paused: bool,
    /// True if new jobs are refused.
    pub draining: bool,
    /// Greatest number of jobs that run at once.
    pub concurrency: Option<u64>,
    /// Greatest number of jobs of one key that run at once.
    pub key_concurrency: Option<u64>,
    /// Rate at which jobs start.
    pub rate: Option<Rate>,
    /// Rate at which jobs of one key start.
    pub key_rate: Option<Rate>,
    /// True if keys take turns.
    pub fair: bool,
    /// Greatest size of a job, in bytes of its submitted fields.
    pub payload: Option<u64>,
    /// Sandbox of its jobs. A profile that cannot be read counts as the strictest one.
    pub sandbox: SandboxSettings,
    /// Failures in a row after which an alert job is enqueued.
    pub alert_after: Option<u64>,
    /// Weights of keys in a fair queue. Default: 1.
    pub weights: BTreeMap<String, u64>,
}

/// A setting and its new value. `None` removes a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueueSetting {
    /// [`QueueSettings::paused`].
    Paused(bool),
    /// [`QueueSettings::draining`].
    Draining(bool),
    /// [`QueueSettings::concurrency`], from 1 to [`MAX_CONCURRENCY`].
    Concurrency(Option<u64>),
    /// [`QueueSettings::key_concurrency`], from 1 to [`MAX_CONCURRENCY`].
    KeyConcurrency(Option<u64>),
    /// [`QueueSettings::rate`].
    Rate(Option<Rate>),
    /// [`QueueSettings::key_rate`].
    KeyRate(Option<Rate>),
    /// [`QueueSettings::fair`].
    Fair(bool),
    /// [`QueueSettings::payload`], from 1 to [`MAX_PAYLOAD`].
    Payload(Option<u64>),
    /// The profile of [`QueueSettings::sandbox`].
    Sandbox(Option<Profile>),
    /// A limit of [`QueueSettings::sandbox`], in [`Limit::range`].
    RunLimit(Limit, Option<u64>),
    /// The weight of a key, from 1 to [`MAX_WEIGHT`].
    Weight(String, Option<u64>),
}

/// A setting with an invalid value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidSetting(String);

impl InvalidSetting {
    /// The queue of a context cannot have an alert.
    #[must_use]
    pub fn alert_in_context() -> Self {
        let fault = "queues of contexts have no alerts: leave out the context";
        Self(fault.to_owned())
    }
}

impl QueueSetting {
    /// Returns the name in the record of the queue's settings. The name of a weight, which is stored separately,
    /// contains the key.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Paused(_) => "paused".to_owned(),
            Self::Draining(_) => "draining".to_owned(),
            Self::Concurrency(_) => "concurrency".to_owned(),
            Self::KeyConcurrency(_) => "key_concurrency".to_owned(),
            Self::Rate(_) => "rate".to_owned(),
            Self::KeyRate(_) => "key_rate".to_owned(),
            Self::Fair(_) => "fair".to_owned(),
            Self::Payload(_) => "payload".to_owned(),
            Self::Sandbox(_) => SANDBOX.to_owned(),
            Self::RunLimit(limit, _) => limit.to_string(),
            Self::Weight(key, _) => format!("weight {key}"),
        }
    }

    /// Returns the stored value; empty for a setting that is removed.
    #[must_use]
    pub fn value(&self) -> String {
        let number = |n: &Option<u64>| n.map(|n| n.to_string());
        let kept = match self {
            Self::Paused(on) | Self::Draining(on) | Self::Fair(on) => on.then(|| "1".to_owned()),
            Self::Concurrency(n) | Self::KeyConcurrency(n) | Self::Payload(n) => number(n),
            Self::Weight(_, n) | Self::RunLimit(_, n) => number(n),
            Self::Sandbox(profile) => profile.map(|profile| profile.to_string()),
            Self::Rate(rate) | Self::KeyRate(rate) => rate.map(|rate| rate.kept()),
        };
        kept.unwrap_or_default()
    }

    /// Checks the value. A [`Rate`] was checked when it was created.
    ///
    /// # Errors
    /// The value is not valid; the message has the valid ones.
    pub fn check(&self) -> Result<(), InvalidSetting> {
        if let Self::Weight(key, _) = self
            && let Some(fault) = name_fault("key", key)
        {
            return Err(InvalidSetting(fault));
        }
        if let Self::RunLimit(limit, Some(value)) = self {
            let limits = [(*limit, *value)].into_iter().collect();
            let settings = SandboxSettings {
                limits,
                ..SandboxSettings::default()
            };
            return settings
                .check()
                .map_err(|fault| InvalidSetting(fault.to_string()));
        }
        let (what, given, max) = match self {
            Self::Concurrency(Some(n)) => ("the concurrency", *n, MAX_CONCURRENCY),
            Self::KeyConcurrency(Some(n)) => ("the concurrency of a key", *n, MAX_CONCURRENCY),
            Self::Payload(Some(n)) => ("the payload limit in bytes", *n, MAX_PAYLOAD),
            Self::Weight(_, Some(n)) => ("a weight", *n, MAX_WEIGHT),
            _ => return Ok(()),
        };
        if (1..=max).contains(&given) {
            return Ok(());
        }
        let concurrency = matches!(self, Self::Concurrency(_) | Self::KeyConcurrency(_));
        let hint = if given == 0 && concurrency {
            ", or pause the queue"
        } else {
            ""
        };
        let fault = format!("{what} cannot be {given}: give 1 to {max}{hint}");
        Err(InvalidSetting(fault))
    }
}

impl QueueSettings {
    /// Returns the changes that give a queue without settings the same ones, except for an alert.
    #[must_use]
    pub fn changes(&self) -> Vec<QueueSetting> {
        use QueueSetting as S;
        let Self {
            paused,
            draining,
            concurrency,
            key_concurrency,
            rate,
            key_rate,
            fair,
            payload,
            sandbox,
            alert_after: _,
            weights,
        } = self;
        let mut changes = vec![
            S::Paused(*paused),
            S::Draining(*draining),
            S::Concurrency(*concurrency),
            S::KeyConcurrency(*key_concurrency),
            S::Rate(*rate),
            S::KeyRate(*key_rate),
            S::Fair(*fair),
            S::Payload(*payload),
            S::Sandbox(sandbox.profile),
        ];
        let limits = Limit::ALL.map(|limit| S::RunLimit(limit, sandbox.limits.get(limit)));
        changes.extend(limits);
        let weights = weights.iter();
        changes.extend(weights.map(|(key, weight)| S::Weight(key.clone(), Some(*weight))));
        changes
    }

    /// Reads stored settings: `name=value`, separated by blanks. Unknown names are ignored.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let mut settings = Self::default();
        for (name, value) in text
            .split_whitespace()
            .filter_map(|pair| pair.split_once('='))
        {
            let number = || value.parse().ok();
            match name {
                "paused" => settings.paused = value == "1",
                "draining" => settings.draining = value == "1",
                "fair" => settings.fair = value == "1",
                "concurrency" => settings.concurrency = number(),
                "key_concurrency" => settings.key_concurrency = number(),
                "payload" => settings.payload = number(),
                "alert" => settings.alert_after = number(),
                "rate" => settings.rate = Rate::read(value),
                "key_rate" => settings.key_rate = Rate::read(value),
                SANDBOX => {
                    let profile = value.parse().unwrap_or(Profile::Strict);
                    settings.sandbox.profile = Some(profile);
                }
                _ => {
                    let limit = Limit::ALL.into_iter().find(|limit| limit.as_str() == name);
                    if let Some(limit) = limit {
                        settings.sandbox.limits.set(limit, number());
                    }
                }
            }
        }
        settings
    }

    /// Returns whether nothing is set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns all settings except pause and drain as text: `concurrency 5`, `rate 100/min burst 100` …
    #[must_use]
    pub fn limits(&self) -> Vec<String> {
        let number = |name: &str, n: Option<u64>| n.map(|n| format!("{name} {n}"));
        let rate = |name: &str, rate: Option<Rate>| rate.map(|rate| format!("{name} {rate}"));
        [
            number("concurrency", self.concurrency),
            rate("rate", self.rate),
            number("key concurrency", self.key_concurrency),
            rate("key rate", self.key_rate),
            number("payload", self.payload),
            number("alert after", self.alert_after),
            self.fair.then(|| "fair".to_owned()),
            self.sandbox
                .profile
                .map(|profile| format!("sandbox {profile}")),
        ]
        .into_iter()
        .flatten()
        .chain(
            self.sandbox
                .limits
                .iter()
                .map(|(limit, value)| format!("{limit} {}", limit.value(value))),
        )
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_what_is_read() {
        let rate = |text: &str| Some(text.parse().unwrap());
        let all = [
            QueueSetting::Paused(true),
            QueueSetting::Draining(true),
            QueueSetting::Concurrency(Some(5)),
            QueueSetting::KeyConcurrency(Some(2)),
            QueueSetting::Rate(rate("100/min")),
            QueueSetting::KeyRate(rate("window 7/90s")),
            QueueSetting::Fair(true),
            QueueSetting::Payload(Some(1000)),
            QueueSetting::Sandbox(Some(Profile::Standard)),
            QueueSetting::RunLimit(Limit::Memory, Some(512 << 20)),
            QueueSetting::RunLimit(Limit::Cpu, Some(1500)),
        ];
        let kept: Vec<_> = all
            .iter()
            .map(|setting| format!("{}={}", setting.name(), setting.value()))
            .collect();
        let read = QueueSettings::read(&kept.join(" "));
        assert_eq!(
            read,
            QueueSettings {
                paused: true,
                draining: true,
                concurrency: Some(5),
                key_concurrency: Some(2),
                rate: rate("100/min"),
                key_rate: rate("window 7/90s"),
                fair: true,
                payload: Some(1000),
                sandbox: "standard,memory:536870912,cpu:1500".parse().unwrap(),
                alert_after: None,
                weights: BTreeMap::new(),
            }
        );
        let words = read.limits().join(", ");
        assert_eq!(
            words,
            "concurrency 5, rate 100/min burst 100, key concurrency 2, key rate window 7/90s, \
             payload 1000, fair, sandbox standard, memory 512 MiB, cpu 1500 ms"
        );
    }

    #[test]
    fn what_is_taken_away_has_no_value() {
        for gone in [
            QueueSetting::Paused(false),
            QueueSetting::Concurrency(None),
            QueueSetting::Rate(None),
            QueueSetting::Sandbox(None),
            QueueSetting::RunLimit(Limit::Disk, None),
            QueueSetting::Weight("a b".to_owned(), None),
        ] {
            assert_eq!(gone.value(), "");
            assert_eq!(gone.check(), Ok(()));
        }
        let strange = QueueSettings::read("x paused=yes concurrency=many new=1 =");
        assert!(strange.is_empty());
        let later = QueueSettings::read("sandbox=stricter");
        assert_eq!(later.sandbox.profile, Some(Profile::Strict));
    }

    #[test]
    fn what_cannot_be_says_what_can() {
        for (setting, words) in [
            (QueueSetting::Concurrency(Some(0)), "pause the queue"),
            (QueueSetting::KeyConcurrency(Some(u64::MAX)), "1000000000"),
            (QueueSetting::Payload(Some(0)), "536870912"),
            (
                QueueSetting::RunLimit(Limit::Files, Some(3)),
                "16 to 1048576",
            ),
            (QueueSetting::Weight("a".to_owned(), Some(101)), "1 to 100"),
            (QueueSetting::Weight(String::new(), None), "1 to 256 bytes"),
        ] {
            let error = setting.check().unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
