//! What a metric is, and where its numbers come from. Which there are stands in [`super::table`].

use std::collections::BTreeMap;

use meshwork_broker::bananas::{self, PlaceStats};
use meshwork_broker::{QueueStats, Stats};

use super::process::Process;
use super::shared::Reading;
use crate::{Monitor, WorkerInfo};

/// What kind of number it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It only grows; its samples end in `_total`.
    Counter,
    /// It goes up and down.
    Gauge,
    /// How often it was how large: samples end in `_bucket`, `_count` and `_sum`.
    Histogram,
    /// Always 1; what it says is in its labels. Its sample ends in `_info`.
    Info,
}

impl Kind {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
            Self::Info => "info",
        }
    }
}

/// A metric.
#[derive(Debug, Clone, Copy)]
pub struct Figure {
    /// Its name, with the unit, without what its kind adds.
    pub name: &'static str,
    /// What kind it is.
    pub kind: Kind,
    /// `seconds` or `bytes`, where it has a unit.
    pub unit: Option<&'static str>,
    /// What tells its samples apart.
    pub labels: &'static [&'static str],
    /// What it says, in a sentence.
    pub help: &'static str,
    pub(super) source: Source,
}

impl Figure {
    /// The name of its samples; of a histogram, what they begin with.
    #[must_use]
    pub fn sample(&self) -> String {
        let suffix = match self.kind {
            Kind::Counter => "_total",
            Kind::Info => "_info",
            Kind::Gauge | Kind::Histogram => "",
        };
        format!("{}{suffix}", self.name)
    }
}

/// Where the numbers come from.
#[derive(Debug, Clone, Copy)]
pub(super) enum Source {
    /// A queue's figures, at the server's time in milliseconds; how two lists of one place become one.
    Queue(fn(&QueueStats, u64) -> Option<f64>, Merge),
    /// What a queue counts by a word, which is the last label.
    Words(fn(&QueueStats) -> &BTreeMap<String, u64>),
    Store(fn(&Stats) -> Option<f64>),
    Pool(fn(&WorkerInfo) -> f64),
    Reading(fn(&Reading) -> f64),
    Worker(fn(&Monitor) -> Option<f64>),
    /// One priority of a route of Bananas.
    BananasPlace(fn(&PlaceStats) -> Option<f64>),
    /// What ours run of each route.
    BananasRunning,
    Bananas(fn(&bananas::Stats) -> f64),
    ConnectionErrors,
    Waited,
    Ran,
    Process(fn(&Process) -> Option<f64>),
    Build,
}

/// How the figures of two lists of one place become one (`:prio:1` is the same as no suffix).
#[derive(Debug, Clone, Copy)]
pub(super) enum Merge {
    Sum,
    Most,
    Least,
}

/// A metric, whose name tells its unit.
pub(super) const fn figure(
    name: &'static str,
    kind: Kind,
    labels: &'static [&'static str],
    help: &'static str,
    source: Source,
) -> Figure {
    let unit = unit_of(name.as_bytes());
    Figure {
        name,
        kind,
        unit,
        labels,
        help,
        source,
    }
}

/// The unit that a name ends in.
const fn unit_of(name: &[u8]) -> Option<&'static str> {
    if ends_with(name, b"_seconds") {
        return Some("seconds");
    }
    if ends_with(name, b"_bytes") {
        return Some("bytes");
    }
    None
}

const fn ends_with(name: &[u8], suffix: &[u8]) -> bool {
    let Some((_, end)) = name.split_at_checked(name.len().saturating_sub(suffix.len())) else {
        return false;
    };
    let mut at = 0;
    while at < suffix.len() {
        if at >= end.len() || end[at] != suffix[at] {
            return false;
        }
        at += 1;
    }
    true
}
