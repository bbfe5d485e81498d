//! One page of metrics: everything that was read for it, and how it becomes samples.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use meshwork_broker::bananas;
use meshwork_broker::{QueueStats, Stats};
use meshwork_model::keys::hero::{JobKeys, QueueParts};
use meshwork_model::name::RoutingKey;
use meshwork_model::route::Priority;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;

use super::metric::{Kind, Merge, Metric, Source};
use super::process::Process;
use super::shared::Reading;
use super::table::FIGURES;
use crate::context::{MeshFigures, PeerFigures};
use crate::{Monitor, WorkerInfo};
use meshwork_worker::Used;

/// Labels of a worker's calls on a connection.
const OPERATIONS: [&str; 5] = ["claim", "connect", "renew", "report", "wait"];

/// Everything that was read for one page.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) keys: JobKeys,
    pub(super) store: Reading,
    pub(super) monitor: Option<Monitor>,
    pub(super) process: Process,
}

/// The labels of a sample.
type Labels = Vec<(&'static str, String)>;
/// A sample.
type Sample = (Labels, f64);

impl Collector for Page {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for figure in FIGURES {
            match figure.source {
                Source::Waited | Source::Ran | Source::PeakMemory => {
                    self.histograms(figure, &mut encoder)?;
                }
                _ => {
                    if let Some(samples) = self.samples(figure) {
                        numbers(figure, samples, &mut encoder)?;
                    }
                }
            }
        }
        Ok(())
    }
}

impl Page {
    /// The samples of a metric. None if its value is unknown.
    fn samples(&self, figure: &Metric) -> Option<Vec<Sample>> {
        let alone = |value: Option<f64>| value.map(|value| (Labels::new(), value));
        let alone = |value| Some(alone(value).into_iter().collect());
        let stats = self.store.stats.as_ref();
        let label = figure.labels.last().copied().unwrap_or_default();
        match &figure.source {
            Source::Queue(of, merge) => Some(self.queues(stats?, *of, *merge)),
            Source::Words(of) => Some(self.words(stats?, *of, label)),
            Source::Store(of) => alone(of(stats?)),
            Source::ScriptLatency => Some(script_latency(stats?, label)),
            Source::Pool(of) => Some(pools(stats?, *of)),
            Source::Reading(of) => alone(Some(of(&self.store))),
            Source::Peer(of) => Some(peers(self.store.mesh.as_ref()?, *of)),
            Source::Refused => Some(refusals(self.store.mesh.as_ref()?)),
            Source::Worker(of) => alone(of(self.monitor.as_ref()?)),
            Source::BananasPlace(of) => Some(places(self.store.bananas.as_ref()?, *of)),
            Source::BananasRunning => Some(routes(self.store.bananas.as_ref()?)),
            Source::Bananas(of) => alone(Some(of(self.store.bananas.as_ref()?))),
            Source::ConnectionErrors => Some(connection_errors(self.monitor.as_ref()?)),
            Source::Process(of) => alone(Some(of(&self.process)?)),
            Source::Build => {
                let version = env!("CARGO_PKG_VERSION").to_owned();
                Some(vec![(vec![("version", version)], 1.0)])
            }
            Source::Used(of) => Some(used(self.monitor.as_ref()?, *of, figure.labels)),
            Source::Waited | Source::Ran | Source::PeakMemory => None,
        }
    }

    /// The place of a list that was ever used. Old lists are no places: `migrate status` tells of them.
    fn place(&self, queue: &QueueStats) -> Option<QueueParts> {
        let parts = self.keys.queue_parts(&queue.queue);
        parts
            .filter(|_| queue.is_used())
            .map(QueueParts::by_routing_key)
    }

    /// A sample per place.
    fn queues(
        &self,
        stats: &Arc<Stats>,
        of: fn(&QueueStats, u64) -> Option<f64>,
        merge: Merge,
    ) -> Vec<Sample> {
        let mut places: BTreeMap<QueueParts, (bool, f64)> = BTreeMap::new();
        for queue in &stats.queues {
            let Some((place, value)) = self.place(queue).zip(of(queue, stats.now_ms)) else {
                continue;
            };
            let value = (queue.waiting + queue.set_aside > 0, value);
            let entry = places.entry(place);
            entry
                .and_modify(|so_far| *so_far = merge.of(*so_far, value))
                .or_insert(value);
        }
        places
            .iter()
            .map(|(place, (_, value))| (labels(place), *value))
            .collect()
    }

    /// A sample per place and word.
    fn words(
        &self,
        stats: &Stats,
        of: fn(&QueueStats) -> Vec<(&str, u64)>,
        label: &'static str,
    ) -> Vec<Sample> {
        let mut words: BTreeMap<(QueueParts, &str), f64> = BTreeMap::new();
        for queue in &stats.queues {
            let Some(place) = self.place(queue) else {
                continue;
            };
            for (word, count) in of(queue) {
                *words.entry((place.clone(), word)).or_default() += count as f64;
            }
        }
        let sample = |((place, word), count): (&(QueueParts, &str), &f64)| {
            let mut labels = labels(place);
            labels.push((label, (*word).to_owned()));
            (labels, *count)
        };
        words.iter().map(sample).collect()
    }

    fn histograms(&self, figure: &Metric, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let Some(monitor) = &self.monitor else {
            return Ok(());
        };
        let mut metric = describe(figure, encoder, MetricType::Histogram)?;
        if matches!(figure.source, Source::Waited) {
            return monitor.meter().each_wait(|place, histogram| {
                let labels = labels(place);
                histogram.encode(metric.encode_family(&labels)?)
            });
        }
        if matches!(figure.source, Source::PeakMemory) {
            for (script_type, used) in monitor.meter().usage() {
                let labels = vec![("type", script_type)];
                used.peak_memory.encode(metric.encode_family(&labels)?)?;
            }
            return Ok(());
        }
        monitor.meter().each_run(|script_type, outcome, histogram| {
            let outcome = outcome.as_str().to_owned();
            let labels = vec![("type", script_type.to_owned()), ("outcome", outcome)];
            histogram.encode(metric.encode_family(&labels)?)
        })
    }
}

fn labels(place: &QueueParts) -> Labels {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    vec![
        ("type", place.script_type.clone()),
        ("group", text(&place.group)),
        ("inst", text(&place.instance)),
        ("priority", place.priority.to_string()),
    ]
}

impl Merge {
    /// Merges the values of two lists of one place, each with whether jobs wait in the list.
    fn of(self, one: (bool, f64), other: (bool, f64)) -> (bool, f64) {
        let ((waits, a), (also, b)) = (one, other);
        let value = match self {
            Self::Sum => a + b,
            Self::Most => a.max(b),
            Self::Least => a.min(b),
            Self::LeastOfWaiting => match (waits, also) {
                (true, false) => a,
                (false, true) => b,
                (true, true) => a.min(b),
                (false, false) => a.max(b),
            },
        };
        (waits || also, value)
    }
}

/// A sample per percentile of the server's scripts.
fn script_latency(stats: &Stats, label: &'static str) -> Vec<Sample> {
    let sample = |(percent, micros): &(String, f64)| (vec![(label, percent.clone())], micros / 1e6);
    stats.server.script_percentiles.iter().map(sample).collect()
}

/// A sample per priority of a route of Bananas.
fn places(stats: &bananas::Stats, of: fn(&bananas::QueueStats) -> Option<f64>) -> Vec<Sample> {
    let sample = |((route, priority), figures): (&(RoutingKey, Priority), &bananas::QueueStats)| {
        let (route, priority) = (route.to_string(), priority.to_string());
        Some((vec![("route", route), ("priority", priority)], of(figures)?))
    };
    stats.places.iter().filter_map(sample).collect()
}

/// Running jobs of each Bananas route, on native workers.
fn routes(stats: &bananas::Stats) -> Vec<Sample> {
    let sample = |(route, running): (&RoutingKey, &u64)| {
        (vec![("route", route.to_string())], *running as f64)
    };
    stats.running.iter().map(sample).collect()
}

/// The workers of each type and group, added up.
fn pools(stats: &Stats, of: fn(&WorkerInfo) -> f64) -> Vec<Sample> {
    let mut pools: BTreeMap<(String, String), f64> = BTreeMap::new();
    for (name, said) in &stats.workers {
        let worker = WorkerInfo::read(name, said);
        let value = of(&worker);
        *pools.entry((worker.script_type, worker.group)).or_default() += value;
    }
    let sample =
        |((script_type, group), value)| (vec![("type", script_type), ("group", group)], value);
    pools.into_iter().map(sample).collect()
}

/// A sample per node.
fn peers(mesh: &MeshFigures, of: fn(&PeerFigures, u64) -> Option<f64>) -> Vec<Sample> {
    let sample = |figures: &PeerFigures| {
        let name = figures.peer.name.to_string();
        Some((vec![("peer", name)], of(figures, mesh.now_ms)?))
    };
    mesh.peers.iter().filter_map(sample).collect()
}

/// Refusals by node and reason; those of no known node have an empty name.
fn refusals(mesh: &MeshFigures) -> Vec<Sample> {
    let named = mesh
        .peers
        .iter()
        .map(|of| (of.peer.name.to_string(), &of.refused));
    let all = named.chain([(String::new(), &mesh.refused)]);
    let samples = all.flat_map(|(name, refused)| {
        refused.iter().map(move |(code, count)| {
            let labels = vec![("peer", name.clone()), ("reason", code.clone())];
            (labels, *count as f64)
        })
    });
    samples.collect()
}

/// All operations, so that the first error of one is a change.
fn connection_errors(monitor: &Monitor) -> Vec<Sample> {
    let errors = monitor.meter().errors();
    let sample = |operation: &str| {
        let count = errors.get(operation).copied().unwrap_or(0);
        (vec![("operation", operation.to_owned())], count as f64)
    };
    OPERATIONS.map(sample).into()
}

/// Samples of each type of a worker's runs.
fn used(
    monitor: &Monitor,
    of: fn(&Used) -> Vec<(&'static str, f64)>,
    names: &'static [&'static str],
) -> Vec<Sample> {
    let each = |(script_type, used): (String, Used)| {
        let sample = move |(word, value): (&'static str, f64)| {
            let values = [script_type.clone(), word.to_owned()];
            (names.iter().copied().zip(values).collect(), value)
        };
        of(&used).into_iter().map(sample)
    };
    monitor.meter().usage().into_iter().flat_map(each).collect()
}

fn describe<'s>(
    figure: &Metric,
    encoder: &'s mut DescriptorEncoder<'_>,
    kind: MetricType,
) -> Result<MetricEncoder<'s>, fmt::Error> {
    let help = format!("{}.", figure.help);
    let (unit, name): (Option<&'static Unit>, _) = match figure.unit {
        Some("seconds") => (Some(&Unit::Seconds), &figure.name[..figure.name.len() - 8]),
        Some("bytes") => (Some(&Unit::Bytes), &figure.name[..figure.name.len() - 6]),
        _ => (None, figure.name),
    };
    encoder.encode_descriptor(name, &help, unit, kind)
}

fn numbers(
    figure: &Metric,
    samples: Vec<Sample>,
    encoder: &mut DescriptorEncoder<'_>,
) -> fmt::Result {
    let kind = match figure.kind {
        Kind::Counter => MetricType::Counter,
        Kind::Info => MetricType::Info,
        Kind::Gauge | Kind::Histogram => MetricType::Gauge,
    };
    let mut metric = describe(figure, encoder, kind)?;
    for (labels, value) in samples {
        if figure.kind == Kind::Info {
            metric.encode_info(&labels)?;
        } else if labels.is_empty() {
            number(figure.kind, value, &mut metric)?;
        } else {
            number(figure.kind, value, &mut metric.encode_family(&labels)?)?;
        }
    }
    Ok(())
}

/// Whole numbers without a fraction, for people who read them.
fn number(kind: Kind, value: f64, metric: &mut MetricEncoder<'_>) -> fmt::Result {
    let whole = (value.fract() == 0.0 && value >= 0.0).then_some(value as u64);
    match (kind, whole) {
        (Kind::Counter, Some(whole)) => metric.encode_counter::<NoLabelSet, _, f64>(&whole, None),
        (Kind::Counter, None) => metric.encode_counter::<NoLabelSet, _, f64>(&value, None),
        (_, Some(whole)) => metric.encode_gauge(&whole),
        (_, None) => metric.encode_gauge(&value),
    }
}
