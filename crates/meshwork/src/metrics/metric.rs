//! Definition of a metric and the source of its values. [`super::table`] lists all metrics.

use meshwork_broker::bananas;
use meshwork_broker::{QueueStats, Stats};

use super::process::Process;
use super::shared::Reading;
use crate::context::PeerFigures;
use crate::{Monitor, WorkerInfo};
use meshwork_worker::Used;

/// Type of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A value that only grows; its samples end in `_total`.
    Counter,
    /// A value that goes up and down.
    Gauge,
    /// Distribution of values: samples end in `_bucket`, `_count` and `_sum`.
    Histogram,
    /// Always 1; the labels have the information. Its sample ends in `_info`.
    Info,
}

impl Kind {
    /// Returns the name of the type.
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
pub struct Metric {
    /// Name, with the unit, without the suffix of its type.
    pub name: &'static str,
    /// Type.
    pub kind: Kind,
    /// Unit: `seconds` or `bytes`, if any.
    pub unit: Option<&'static str>,
    /// Names of the labels.
    pub labels: &'static [&'static str],
    /// Help text of one sentence.
    pub help: &'static str,
    pub(super) source: Source,
}

impl Metric {
    /// Returns the name of its samples; for a histogram, their prefix.
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

/// Source of the values.
#[derive(Debug, Clone, Copy)]
pub(super) enum Source {
    /// A queue's figures, at the server's time in milliseconds; how two lists of one place become one.
    Queue(fn(&QueueStats, u64) -> Option<f64>, Merge),
    /// Counters of a queue by the last label.
    Words(fn(&QueueStats) -> Vec<(&str, u64)>),
    Store(fn(&Stats) -> Option<f64>),
    /// Percentiles of the server's scripts, in seconds.
    ScriptLatency,
    Pool(fn(&WorkerInfo) -> f64),
    Reading(fn(&Reading) -> f64),
    /// Another node, at the server's time in milliseconds.
    Peer(fn(&PeerFigures, u64) -> Option<f64>),
    /// Refusals by node and reason.
    Refused,
    Worker(fn(&Monitor) -> Option<f64>),
    /// One priority of a route of Bananas.
    BananasPlace(fn(&bananas::QueueStats) -> Option<f64>),
    /// Running jobs of each route, on native workers.
    BananasRunning,
    Bananas(fn(&bananas::Stats) -> f64),
    ConnectionErrors,
    Waited,
    Ran,
    /// Resources of a type's runs, by the last label if there is a second one.
    Used(fn(&Used) -> Vec<(&'static str, f64)>),
    PeakMemory,
    Process(fn(&Process) -> Option<f64>),
    Build,
}

/// Aggregation of the values of two lists of one queue (`:prio:1` is the same as no suffix).
#[derive(Debug, Clone, Copy)]
pub(super) enum Merge {
    Sum,
    Most,
    Least,
    /// The smallest value of lists with waiting jobs, else the greatest value.
    LeastOfWaiting,
}

/// A metric, whose name tells its unit.
pub(super) const fn figure(
    name: &'static str,
    kind: Kind,
    labels: &'static [&'static str],
    help: &'static str,
    source: Source,
) -> Metric {
    let unit = unit_of(name.as_bytes());
    Metric {
        name,
        kind,
        unit,
        labels,
        help,
        source,
    }
}

/// Returns the unit at the end of a name.
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
