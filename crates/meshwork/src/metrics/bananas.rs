//! The metrics of jobs of Bananas, in their table: by route, as Bananas asks for, and by priority.

use meshwork_broker::bananas::{QueueStats, Stats};

use super::metric::{Kind, Metric, Source, figure};

const PLACE: &[&str] = &["route", "priority"];

/// A count of one priority of a route.
const fn count(
    name: &'static str,
    help: &'static str,
    of: fn(&QueueStats) -> Option<f64>,
) -> Metric {
    figure(name, Kind::Counter, PLACE, help, Source::BananasPlace(of))
}

const fn of_place(
    name: &'static str,
    help: &'static str,
    of: fn(&QueueStats) -> Option<f64>,
) -> Metric {
    figure(name, Kind::Gauge, PLACE, help, Source::BananasPlace(of))
}

const fn of_all(name: &'static str, help: &'static str, of: fn(&Stats) -> f64) -> Metric {
    figure(name, Kind::Gauge, &[], help, Source::Bananas(of))
}

/// All of them.
pub(super) const FIGURES: [Metric; 15] = [
    count(
        "meshwork_bananas_jobs_created",
        "Jobs of Bananas that clients and schedules of Meshwork stored",
        |p| Some(p.created as f64),
    ),
    count(
        "meshwork_bananas_jobs_started",
        "Attempts of jobs of Bananas that workers of Meshwork started",
        |p| Some(p.started as f64),
    ),
    count(
        "meshwork_bananas_jobs_finished",
        "Jobs of Bananas that finished successfully on workers of Meshwork",
        |p| Some(p.finished as f64),
    ),
    count(
        "meshwork_bananas_jobs_failed",
        "Jobs of Bananas that ended in error on workers of Meshwork",
        |p| Some(p.failed as f64),
    ),
    count(
        "meshwork_bananas_jobs_retried",
        "Failed attempts of jobs of Bananas on workers of Meshwork that are followed by a retry",
        |p| Some(p.retried as f64),
    ),
    count(
        "meshwork_bananas_jobs_dead",
        "Jobs of Bananas that workers of Meshwork made dead letters",
        |p| Some(p.dead as f64),
    ),
    count(
        "meshwork_bananas_jobs_lost",
        "Expired leases of jobs of Bananas, of workers of Meshwork that are gone",
        |p| Some(p.lost as f64),
    ),
    count(
        "meshwork_bananas_jobs_released",
        "Jobs of Bananas that workers of Meshwork claimed and did not run: released, moved to their route, or already done",
        |p| Some(p.released as f64),
    ),
    count(
        "meshwork_bananas_jobs_run_seconds",
        "Total duration of all ended attempts of jobs of Bananas on workers of Meshwork",
        |p| Some(p.run_ms as f64 / 1000.0),
    ),
    of_place(
        "meshwork_bananas_queue_jobs",
        "Waiting jobs of Bananas, from all clients",
        |p| Some(p.waiting as f64),
    ),
    of_place(
        "meshwork_bananas_queue_oldest_job_age_seconds",
        "Time since the record of the oldest waiting job was written; 0 if none waits, missing if the record has no time",
        |p| match p.oldest_ms {
            None if p.waiting > 0 => None,
            age => Some(age.unwrap_or(0) as f64 / 1000.0),
        },
    ),
    figure(
        "meshwork_bananas_running_jobs",
        Kind::Gauge,
        &["route"],
        "Jobs of Bananas that run on workers of Meshwork, by their leases",
        Source::BananasRunning,
    ),
    of_all(
        "meshwork_bananas_processing_jobs",
        "Jobs that Bananas lists as running, including orphans of its workers",
        |s| s.processing as f64,
    ),
    of_all(
        "meshwork_bananas_scheduled_jobs",
        "Delayed jobs of Bananas, including retries",
        |s| s.scheduled as f64,
    ),
    of_all(
        "meshwork_bananas_dead_letters",
        "Dead letters of Bananas, from all workers",
        |s| s.dead as f64,
    ),
];
