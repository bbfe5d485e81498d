//! The metrics of jobs of Bananas, in their table: by route, as Bananas asks for, and by priority.

use meshwork_broker::bananas::{PlaceStats, Stats};

use super::figure::{Figure, Kind, Source, figure};

const PLACE: &[&str] = &["route", "priority"];

/// A count of one priority of a route.
const fn count(
    name: &'static str,
    help: &'static str,
    of: fn(&PlaceStats) -> Option<f64>,
) -> Figure {
    figure(name, Kind::Counter, PLACE, help, Source::BananasPlace(of))
}

const fn of_place(
    name: &'static str,
    help: &'static str,
    of: fn(&PlaceStats) -> Option<f64>,
) -> Figure {
    figure(name, Kind::Gauge, PLACE, help, Source::BananasPlace(of))
}

const fn of_all(name: &'static str, help: &'static str, of: fn(&Stats) -> f64) -> Figure {
    figure(name, Kind::Gauge, &[], help, Source::Bananas(of))
}

/// All of them.
pub(super) const FIGURES: [Figure; 15] = [
    count(
        "meshwork_bananas_jobs_created",
        "Jobs of Bananas that clients and schedules of ours stored",
        |p| Some(p.created as f64),
    ),
    count(
        "meshwork_bananas_jobs_started",
        "Runs of jobs of Bananas that workers of ours began",
        |p| Some(p.started as f64),
    ),
    count(
        "meshwork_bananas_jobs_finished",
        "Jobs of Bananas that ended well here",
        |p| Some(p.finished as f64),
    ),
    count(
        "meshwork_bananas_jobs_failed",
        "Jobs of Bananas that ended in error here",
        |p| Some(p.failed as f64),
    ),
    count(
        "meshwork_bananas_jobs_retried",
        "Runs of jobs of Bananas that failed here and were to be repeated",
        |p| Some(p.retried as f64),
    ),
    count(
        "meshwork_bananas_jobs_dead",
        "Jobs of Bananas of which workers of ours made dead letters",
        |p| Some(p.dead as f64),
    ),
    count(
        "meshwork_bananas_jobs_lost",
        "Leases of jobs of Bananas taken back from workers of ours that went away",
        |p| Some(p.lost as f64),
    ),
    count(
        "meshwork_bananas_jobs_released",
        "Jobs of Bananas that workers of ours took and did not run: handed back, moved to their route, done before",
        |p| Some(p.released as f64),
    ),
    count(
        "meshwork_bananas_jobs_run_seconds",
        "How long all runs of jobs of Bananas that ended here took together",
        |p| Some(p.run_ms as f64 / 1000.0),
    ),
    of_place(
        "meshwork_bananas_queue_jobs",
        "Jobs of Bananas that wait, whoever pushed them",
        |p| Some(p.waiting as f64),
    ),
    of_place(
        "meshwork_bananas_queue_oldest_job_age_seconds",
        "How long ago the record of the oldest job that waits was written; 0 if none does, missing if it does not tell",
        |p| match p.oldest_ms {
            None if p.waiting > 0 => None,
            age => Some(age.unwrap_or(0) as f64 / 1000.0),
        },
    ),
    figure(
        "meshwork_bananas_running_jobs",
        Kind::Gauge,
        &["route"],
        "Jobs of Bananas that workers of ours run, by their leases",
        Source::BananasRunning,
    ),
    of_all(
        "meshwork_bananas_processing_jobs",
        "Jobs that Bananas lists as running: whoever runs them, and what its workers left behind",
        |s| s.processing as f64,
    ),
    of_all(
        "meshwork_bananas_scheduled_jobs",
        "Jobs of Bananas that wait for a time, as for a retry",
        |s| s.scheduled as f64,
    ),
    of_all(
        "meshwork_bananas_dead_letters",
        "Dead letters of Bananas, whoever made them",
        |s| s.dead as f64,
    ),
];
