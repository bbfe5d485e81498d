//! All metrics that there are, in one table. Names follow the conventions of OpenMetrics: a unit at the end,
//! `_total` for what only grows. docs/metrics.md shows the same table; a test compares the two.

use std::collections::BTreeMap;

use meshwork_broker::{QueueStats, Stats};

use super::metric::{Kind, Merge, Metric, Source, figure};
use super::process::Process;
use super::{bananas, mesh};
use crate::{Monitor, WorkerInfo};

/// Labels of queues. `group` is the routing key, so the group `default` has the jobs without a group too. A queue of a
/// whole group has an empty `inst` (not `instance`, which Prometheus gives to what it scrapes).
const QUEUE: &[&str] = &["type", "group", "inst", "priority"];
const ERROR: &[&str] = &["type", "group", "inst", "priority", "kind"];
const ORIGIN: &[&str] = &["type", "group", "inst", "priority", "origin"];
const SLOT: &[&str] = &["type", "group", "inst", "priority", "outcome"];
const POOL: &[&str] = &["type", "group"];

/// A count of a queue.
const fn count(
    name: &'static str,
    help: &'static str,
    of: fn(&QueueStats, u64) -> Option<f64>,
) -> Metric {
    figure(
        name,
        Kind::Counter,
        QUEUE,
        help,
        Source::Queue(of, Merge::Sum),
    )
}

const fn of_queue(
    name: &'static str,
    help: &'static str,
    of: fn(&QueueStats, u64) -> Option<f64>,
    merge: Merge,
) -> Metric {
    figure(name, Kind::Gauge, QUEUE, help, Source::Queue(of, merge))
}

const fn of_store(name: &'static str, help: &'static str, of: fn(&Stats) -> Option<f64>) -> Metric {
    figure(name, Kind::Gauge, &[], help, Source::Store(of))
}

const fn of_pool(name: &'static str, help: &'static str, of: fn(&WorkerInfo) -> f64) -> Metric {
    figure(name, Kind::Gauge, POOL, help, Source::Pool(of))
}

const fn of_worker(
    name: &'static str,
    kind: Kind,
    help: &'static str,
    of: fn(&Monitor) -> Option<f64>,
) -> Metric {
    figure(name, kind, &[], help, Source::Worker(of))
}

const fn of_process(
    name: &'static str,
    kind: Kind,
    help: &'static str,
    of: fn(&Process) -> Option<f64>,
) -> Metric {
    figure(name, kind, &[], help, Source::Process(of))
}

/// Jobs by the kind of client: both kinds, so that the first job of one is a change.
fn origins(queue: &QueueStats) -> Vec<(&str, u64)> {
    let foreign = queue.created_foreign;
    let own = queue.created.saturating_sub(foreign);
    vec![("meshwork", own), ("foreign", foreign)]
}

fn words<'a>(counts: &'a BTreeMap<String, u64>) -> Vec<(&'a str, u64)> {
    let pair = |(word, count): (&'a String, &u64)| (word.as_str(), *count);
    counts.iter().map(pair).collect()
}

/// Metrics of the store, the same in every process; then those of this worker and process.
const OURS: &[Metric] = &[
    figure(
        "meshwork_jobs_created",
        Kind::Counter,
        ORIGIN,
        "Jobs stored for a queue, by the kind of client",
        Source::Words(origins),
    ),
    count("meshwork_jobs_started", "Attempts started", |q, _| {
        Some(q.started as f64)
    }),
    count(
        "meshwork_jobs_finished",
        "Jobs that finished successfully",
        |q, _| Some(q.finished as f64),
    ),
    count(
        "meshwork_jobs_failed",
        "Jobs that ended in error",
        |q, _| Some(q.failed as f64),
    ),
    figure(
        "meshwork_jobs_errors",
        Kind::Counter,
        ERROR,
        "Jobs that ended in error, by the kind of error",
        Source::Words(|q| words(&q.errors)),
    ),
    count(
        "meshwork_jobs_retried",
        "Failed attempts that are followed by a retry",
        |q, _| Some(q.retried as f64),
    ),
    count(
        "meshwork_jobs_dead",
        "Jobs that became dead letters",
        |q, _| Some(q.dead as f64),
    ),
    count(
        "meshwork_jobs_lost",
        "Expired leases of workers that are gone",
        |q, _| Some(q.lost as f64),
    ),
    count("meshwork_jobs_cancelled", "Cancelled jobs", |q, _| {
        Some(q.cancelled() as f64)
    }),
    count(
        "meshwork_jobs_released",
        "Jobs that workers released without running them",
        |q, _| Some(q.released as f64),
    ),
    count(
        "meshwork_jobs_requeued",
        "Ended jobs that were queued again on request",
        |q, _| Some(q.requeued as f64),
    ),
    count(
        "meshwork_jobs_run_seconds",
        "Total duration of all ended attempts",
        |q, _| Some(q.run_ms as f64 / 1000.0),
    ),
    figure(
        "meshwork_schedule_slots",
        Kind::Counter,
        SLOT,
        "Decided slots of schedules, by outcome",
        Source::Words(|q| words(&q.slots)),
    ),
    count(
        "meshwork_schedule_lateness_seconds",
        "Total lateness of all slots that ran",
        |q, _| Some(q.slots_late_ms as f64 / 1000.0),
    ),
    of_queue(
        "meshwork_queue_jobs",
        "Waiting jobs of a queue",
        |q, _| Some(q.waiting as f64),
        Merge::Sum,
    ),
    of_queue(
        "meshwork_queue_set_aside_jobs",
        "Jobs that wait for a slot of their concurrency key in a fair or limited queue",
        |q, _| Some(q.set_aside as f64),
        Merge::Sum,
    ),
    of_queue(
        "meshwork_queue_oldest_job_age_seconds",
        "Time for which the oldest waiting job of a queue has been ready to run; 0 for an empty queue",
        |q, _| Some(q.oldest_ms.unwrap_or(0) as f64 / 1000.0),
        Merge::Most,
    ),
    of_queue(
        "meshwork_queue_last_claim_age_seconds",
        "Time since a worker last claimed a job of a queue",
        |q, now| Some(now.saturating_sub(q.claimed_at?) as f64 / 1000.0),
        Merge::Least,
    ),
    of_queue(
        "meshwork_queue_listeners",
        "Workers that listen to a queue",
        |q, _| Some(q.listeners as f64),
        Merge::LeastOfWaiting,
    ),
    of_pool(
        "meshwork_workers",
        "Live workers; a worker of several types counts once for each",
        |_| 1.0,
    ),
    of_pool(
        "meshwork_slots",
        "Jobs that the workers can run at once",
        |worker| worker.slots.unwrap_or(0) as f64,
    ),
    of_pool(
        "meshwork_slots_busy",
        "Jobs in flight, by the last report of each worker",
        |worker| worker.in_flight.unwrap_or(0) as f64,
    ),
    of_store(
        "meshwork_running_jobs",
        "Running jobs, by their leases",
        |s| Some(s.running as f64),
    ),
    of_store(
        "meshwork_delayed_jobs",
        "Delayed jobs, including retries",
        |s| Some(s.delayed as f64),
    ),
    of_store(
        "meshwork_overdue_job_age_seconds",
        "Time for which the first delayed job has been due; 0 if none is due",
        |s| Some(s.overdue_ms.unwrap_or(0) as f64 / 1000.0),
    ),
    of_store("meshwork_schedules", "Number of schedules", |s| {
        Some(s.schedules as f64)
    }),
    of_store(
        "meshwork_schedule_next_timestamp_seconds",
        "Unix time of the next slot of any schedule; missing if there is none",
        |s| Some(s.next_slot_ms? as f64 / 1000.0),
    ),
    of_store(
        "meshwork_overdue_schedule_age_seconds",
        "Time for which the first schedule has been due; 0 if none is due",
        |s| Some(s.now_ms.saturating_sub(s.next_slot_ms.unwrap_or(s.now_ms)) as f64 / 1000.0),
    ),
    of_store("meshwork_dead_letters", "Stored dead letters", |s| {
        Some(s.dead as f64)
    }),
    of_store(
        "meshwork_stale_jobs",
        "Suspected orphans: open jobs on no list, or started without a lease longer ago than their timeout",
        |s| Some(s.stale as f64),
    ),
    of_store(
        "meshwork_ended_jobs",
        "Stored ended jobs other than dead letters",
        |s| Some(s.ended as f64),
    ),
    of_store(
        "meshwork_store_partial",
        "1 if queues may be missing: the search for queues has not completed, or there are over 10,000",
        |s| Some(f64::from(u8::from(s.partial))),
    ),
    figure(
        "meshwork_store_up",
        Kind::Gauge,
        &[],
        "1 if the store answered the last read of its metrics",
        Source::Reading(|reading| f64::from(u8::from(reading.stats.is_some()))),
    ),
    figure(
        "meshwork_store_read_seconds",
        Kind::Gauge,
        &[],
        "Duration of the last read of the store's metrics",
        Source::Reading(|reading| reading.took.as_secs_f64()),
    ),
    of_store(
        "meshwork_store_memory_bytes",
        "Memory in use by the server; missing on the embedded engine, which is a part of a process",
        |s| Some(s.server.memory? as f64),
    ),
    of_store(
        "meshwork_store_memory_limit_bytes",
        "Limit of the server's memory; missing if it has none",
        |s| Some(s.server.memory_limit? as f64),
    ),
    figure(
        "meshwork_store_evicted_keys",
        Kind::Counter,
        &[],
        "Keys that the server has evicted because its memory was full; each may have been a job",
        Source::Store(|s| Some(s.server.evicted_keys? as f64)),
    ),
    figure(
        "meshwork_store_scripts",
        Kind::Counter,
        &[],
        "Scripts that the server has run, of all its clients",
        Source::Store(|s| Some(s.server.scripts? as f64)),
    ),
    figure(
        "meshwork_store_script_seconds",
        Kind::Counter,
        &[],
        "Total duration of these scripts",
        Source::Store(|s| Some(s.server.script_micros? as f64 / 1e6)),
    ),
    figure(
        "meshwork_store_script_latency_seconds",
        Kind::Gauge,
        &["percentile"],
        "Duration of a script since the start of the server, by percentile; missing on the embedded engine",
        Source::ScriptLatency,
    ),
    figure(
        "meshwork_claim_latency_seconds",
        Kind::Histogram,
        QUEUE,
        "Time from a job's readiness to its claim by this worker",
        Source::Waited,
    ),
    figure(
        "meshwork_run_seconds",
        Kind::Histogram,
        &["type", "outcome"],
        "Duration of attempts in this worker",
        Source::Ran,
    ),
    figure(
        "meshwork_run_cpu_seconds",
        Kind::Counter,
        &["type", "mode"],
        "Processor time of all processes of attempts in this worker",
        Source::Used(|used| {
            let seconds = |ms: u64| ms as f64 / 1e3;
            vec![
                ("user", seconds(used.user_ms)),
                ("system", seconds(used.system_ms)),
            ]
        }),
    ),
    figure(
        "meshwork_run_written_bytes",
        Kind::Counter,
        &["type"],
        "Written to files, pipes and sockets by all processes of attempts in this worker",
        Source::Used(|used| vec![("", used.written as f64)]),
    ),
    figure(
        "meshwork_run_peak_memory_bytes",
        Kind::Histogram,
        &["type"],
        "Greatest memory of all processes of an attempt in this worker together",
        Source::PeakMemory,
    ),
    of_worker(
        "meshwork_worker_slots",
        Kind::Gauge,
        "Jobs that this worker can run at once",
        |w| Some(w.meter().slots() as f64),
    ),
    of_worker(
        "meshwork_worker_slots_busy",
        Kind::Gauge,
        "Jobs in flight in this worker",
        |w| Some(w.busy() as f64),
    ),
    of_worker(
        "meshwork_worker_ready",
        Kind::Gauge,
        "1 if this worker is ready for jobs",
        |w| Some(f64::from(u8::from(w.ready().is_ok()))),
    ),
    of_worker(
        "meshwork_worker_last_claim_age_seconds",
        Kind::Gauge,
        "Time since this worker last claimed a job; missing before the first claim",
        |w| Some(w.meter().since_claim()?.as_secs_f64()),
    ),
    of_worker(
        "meshwork_worker_last_contact_age_seconds",
        Kind::Gauge,
        "Time since the store last answered this worker",
        |w| Some(w.meter().since_contact().as_secs_f64()),
    ),
    of_worker(
        "meshwork_worker_leases_lost",
        Kind::Counter,
        "Jobs that were cancelled or reclaimed while they ran in this worker",
        |w| Some(w.meter().lost_jobs() as f64),
    ),
    figure(
        "meshwork_worker_connection_errors",
        Kind::Counter,
        &["operation"],
        "Calls of this worker that failed temporarily",
        Source::ConnectionErrors,
    ),
    of_process(
        "process_cpu_seconds",
        Kind::Counter,
        "Processor time",
        |p| p.cpu_seconds,
    ),
    of_process(
        "process_resident_memory_bytes",
        Kind::Gauge,
        "Memory in use",
        |p| Some(p.resident? as f64),
    ),
    of_process(
        "process_virtual_memory_bytes",
        Kind::Gauge,
        "Address space in use",
        |p| Some(p.virtual_size? as f64),
    ),
    of_process(
        "process_open_fds",
        Kind::Gauge,
        "Open files and connections",
        |p| Some(p.open_files? as f64),
    ),
    of_process(
        "process_max_fds",
        Kind::Gauge,
        "Limit of open files and connections",
        |p| Some(p.most_files? as f64),
    ),
    of_process(
        "process_start_time_seconds",
        Kind::Gauge,
        "Unix time of the start of the process",
        |p| p.started,
    ),
    figure(
        "meshwork_build",
        Kind::Info,
        &["version"],
        "The release of Meshwork",
        Source::Build,
    ),
];

/// All metrics: of the store, of this worker and process, and of Bananas jobs if included.
pub const FIGURES: &[Metric] = &ALL;

const ALL: [Metric; OURS.len() + mesh::FIGURES.len() + bananas::FIGURES.len()] =
    joined(&WITH_MESH, &bananas::FIGURES);
const WITH_MESH: [Metric; OURS.len() + mesh::FIGURES.len()] = joined(OURS, &mesh::FIGURES);

/// One table behind the other.
const fn joined<const N: usize>(one: &[Metric], other: &[Metric]) -> [Metric; N] {
    let mut all = [one[0]; N];
    let mut at = 0;
    while at < N {
        all[at] = if at < one.len() {
            one[at]
        } else {
            other[at - one.len()]
        };
        at += 1;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_conventions() {
        let mut names = std::collections::HashSet::new();
        for figure in FIGURES {
            let name = figure.name;
            assert!(names.insert(name), "{name} is there twice");
            assert!(
                name.starts_with("meshwork_") || name.starts_with("process_"),
                "{name}"
            );
            let lower = |c: char| c.is_ascii_lowercase() || c == '_';
            assert!(name.chars().all(lower) && !name.contains("__"), "{name}");
            // What kinds add is reserved for them.
            for suffix in ["_total", "_info", "_count", "_sum", "_bucket", "_created"] {
                assert!(!name.ends_with(suffix) || suffix == "_created", "{name}");
            }
            let timed = name.ends_with("_seconds") || name.ends_with("_bytes");
            assert_eq!(figure.unit.is_some(), timed, "{name}");
            assert!(
                !figure.help.ends_with('.') && !figure.help.contains('\n'),
                "{name}"
            );
            assert!(
                figure.labels.iter().all(|label| label.chars().all(lower)),
                "{name}"
            );
        }
    }
}
