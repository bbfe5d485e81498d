//! Growth: how figures change with the number of waiting jobs, of worker processes, of bytes in a payload, with the
//! delay of the network, and with the numbers of nodes and of idle contexts of a Cluster. Each point has fresh servers,
//! and the points of a series alternate in each run.

mod curve;
mod delay;
mod idle;
mod nodes;
mod points;
mod site;
mod workers;

use std::path::PathBuf;

use super::BenchError;
pub use curve::Curve;
use curve::Measured;
pub use workers::serve;

/// A figure at one point: its name, unit and value.
type Value = (&'static str, &'static str, f64);

/// A quantity that grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Series {
    /// Number of jobs that wait.
    Waiting,
    /// Number of worker processes.
    Workers,
    /// Bytes of a payload.
    Payload,
    /// Delay of the network in each direction, in ms.
    Delay,
    /// Number of nodes of a Cluster.
    Nodes,
    /// Number of idle contexts on a Cluster of three nodes.
    Contexts,
}

impl Series {
    /// All series, in the order of measurement.
    pub const ALL: [Self; 6] = [
        Self::Waiting,
        Self::Workers,
        Self::Payload,
        Self::Delay,
        Self::Nodes,
        Self::Contexts,
    ];

    /// Returns the name of the series.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Workers => "workers",
            Self::Payload => "payload",
            Self::Delay => "delay",
            Self::Nodes => "nodes",
            Self::Contexts => "contexts",
        }
    }

    /// Returns the values of the quantity.
    #[must_use]
    pub const fn steps(self) -> &'static [usize] {
        match self {
            Self::Waiting => &[1_000, 10_000, 100_000, 1_000_000],
            Self::Workers => &[1, 2, 4, 8, 16, 32],
            Self::Payload => &[100, 1_000, 10_000, 100_000, 1_000_000],
            Self::Delay => &[0, 1, 2, 4],
            Self::Nodes => &[1, 2, 3, 4],
            Self::Contexts => &[10, 100, 1_000, 10_000],
        }
    }
}

/// A measurement of growth.
#[derive(Debug, Clone)]
pub struct Growth {
    /// Series to measure.
    pub series: Vec<Series>,
    /// Number of runs of each point.
    pub runs: usize,
    /// Greatest value of each quantity; larger ones are left out.
    pub most: usize,
    /// Divisor of the number of jobs.
    pub divisor: usize,
    /// The program `bench`, which is also the worker process.
    pub program: PathBuf,
}

/// Measures all series. Calls `step` at the beginning of each point, and `on_curve` with each result.
///
/// # Errors
/// There is no redis-server, or it fails.
pub async fn grow(
    growth: &Growth,
    mut step: impl FnMut(&str),
    mut on_curve: impl FnMut(&Curve),
) -> Result<(), BenchError> {
    for series in &growth.series {
        let mut measured = Measured::default();
        if *series == Series::Nodes {
            step(nodes::NOTE);
        }
        for run in 1..=growth.runs {
            for &at in series.steps().iter().filter(|at| **at <= growth.most) {
                step(&format!("{} {at}, run {run}", series.name()));
                measured.add(at, points::take(*series, at, growth).await?);
            }
        }
        if *series == Series::Nodes {
            for [figure, ratio] in nodes::GROWTH {
                measured.add_ratio(figure, ratio);
            }
        }
        for curve in measured.curves(*series) {
            on_curve(&curve);
        }
    }
    Ok(())
}
