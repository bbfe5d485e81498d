//! Simulation of the exchange between nodes: random schedules of loss, repetition, disorder, partitions, crashes and wrong
//! clocks, over the decisions of `meshwork_model::mesh`. A schedule is repeated by its seed.

mod node;
mod schedule;

use std::collections::BTreeMap;

pub use schedule::Violation;

use schedule::Schedule;

/// Figures of many schedules.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Number of schedules.
    pub schedules: u64,
    /// Number of messages.
    pub messages: u64,
    /// Number of messages by their outcome.
    pub outcomes: BTreeMap<&'static str, u64>,
    /// Number of frames that were sent.
    pub frames: u64,
}

/// Runs schedules with the seeds `seed`, `seed + 1` and so on.
///
/// # Errors
/// The first violation of a rule, with the seed of its schedule.
pub fn simulate(seed: u64, schedules: u64) -> Result<Report, Violation> {
    let mut report = Report::default();
    for at in 0..schedules {
        let mut schedule = Schedule::new(seed.wrapping_add(at));
        schedule.run()?;
        schedule.count(&mut report);
    }
    Ok(report)
}
