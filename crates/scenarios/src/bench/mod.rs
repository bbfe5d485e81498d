//! Speed of Meshwork, beside the floor: the speed that the server allows to the smallest queue that loses no job.
//! Each run of each figure has a fresh engine. Runs of Meshwork, of the floor and of other job queues ([`Peer`])
//! alternate, so that other load on the machine affects all; the ratios are the result. It measures and does not judge;
//! `docs/performance.md` has documented results. [`crate::scale`] measures the cost of calls beside very many waiting
//! jobs.

mod calls;
mod chart;
mod figure;
mod floor;
mod ground;
mod growth;
pub(crate) mod latency;
mod link;
mod meter;
mod ours;
mod peers;
mod report;

pub use chart::chart;
pub use figure::{Counts, Figure, Pace, Shape, With};
pub use ground::Engine;
pub use growth::{Curve, Growth, Series, grow, serve};
pub use meter::Cost;
pub use peers::{PROGRAMS, Peer};
pub use report::{Against, Beside, Line};

use floor::Echoes;
use ground::Ground;
use report::Runs;

/// Size of a payload in bytes.
const PAYLOAD: usize = 100;

/// Figures, engines and amounts of a measurement.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Figures to measure.
    pub figures: Vec<Figure>,
    /// Engines to measure on.
    pub engines: Vec<Engine>,
    /// Number of runs of each figure; `None` for the default of the figure.
    pub runs: Option<usize>,
    /// Amount of work in each run.
    pub counts: Counts,
    /// True if the floor is measured too.
    pub floor: bool,
    /// Other job queues to measure on redis-server, for the figures that they have.
    pub peers: Vec<Peer>,
}

/// Error that ends a measurement.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// This machine lacks the engine.
    #[error("there is no {0}-server: see `cargo xtask test`")]
    Missing(&'static str),
    /// A directory, a process or a socket of the measurement failed.
    #[error("measure: {0}")]
    Io(#[from] std::io::Error),
    /// The client or the worker failed.
    #[error(transparent)]
    Meshwork(#[from] meshwork::Error),
    /// A context or its actor failed.
    #[error(transparent)]
    Context(#[from] meshwork::context::ContextError),
    /// A verb failed.
    #[error(transparent)]
    Broker(#[from] meshwork_broker::Error),
    /// A call of an action, or its service, failed.
    #[error(transparent)]
    Actions(#[from] meshwork::protocol::nooble::Error),
    /// A command of the floor or of the measurement failed.
    #[error("measure: {0}")]
    Command(#[from] redis::RedisError),
    /// A name is invalid.
    #[error(transparent)]
    Name(#[from] meshwork_model::name::NameError),
    /// The work differs from the work to be measured.
    #[error("measure: {0}")]
    Odd(String),
}

/// Result of one run.
#[derive(Debug)]
struct Sample {
    /// Values, in the order of the figure's names.
    values: Vec<f64>,
    cost: Cost,
    load: f64,
}

/// Measures all figures. Calls `report` with each figure, and `step` at the beginning of each run.
///
/// # Errors
/// An engine is missing, or fails.
pub async fn run(
    plan: &Plan,
    mut step: impl FnMut(&str),
    mut on_line: impl FnMut(&Line),
) -> Result<(), BenchError> {
    for figure in &plan.figures {
        let engines = plan.engines.iter().copied();
        let mut all: Vec<_> = engines
            .filter(|engine| !skipped(*figure, *engine))
            .map(|engine| Runs::new(*figure, engine, plan))
            .collect();
        for run in 1..=plan.runs.unwrap_or(figure.runs()) {
            for runs in &mut all {
                let (name, engine) = (figure.name(), runs.engine);
                step(&format!("{name} on {}, run {run}", engine.name()));
                runs.ours.push(ours(*figure, engine, &plan.counts).await?);
                if let Some(plain) = figure.plain() {
                    runs.plain.push(ours(plain, engine, &plan.counts).await?);
                }
                for shape in figure.shapes().into_iter().filter(|_| plan.floor) {
                    let sample = beside(*figure, engine, shape, &plan.counts).await?;
                    runs.add_floor(shape, sample);
                }
                for (peer, of_peer) in plan.peers.iter().zip(&mut runs.peers) {
                    step(&format!("{name} with {}, run {run}", peer.name));
                    let sample = peers::measure(peer, *figure, &plan.counts).await?;
                    of_peer.samples.push(sample);
                }
            }
        }
        for line in report::lines(&all) {
            on_line(&line);
        }
    }
    Ok(())
}

/// Returns true if the figure cannot be measured: the embedded engine shares its memory with this program.
fn skipped(figure: Figure, engine: Engine) -> bool {
    matches!(figure, Figure::Memory { .. }) && engine == Engine::Embedded
}

/// Measures one run of Meshwork on a fresh engine.
async fn ours(figure: Figure, engine: Engine, counts: &Counts) -> Result<Sample, BenchError> {
    let ground = Ground::start(engine, figure.server_args()).await?;
    let client = ground.client().await?;
    client.broker().load().await?;
    let jobs = figure.jobs(counts);
    let load = meter::load();
    let (mut before, mut after) = (ground.read()?, None);
    let per_second = |took: std::time::Duration| vec![jobs as f64 / took.as_secs_f64()];
    let bulk = bulk();
    let values = match figure {
        Figure::EnqueueOne { callers } => {
            per_second(ours::enqueue_one(&client, jobs, callers, PAYLOAD).await?)
        }
        Figure::EnqueueBulk => per_second(
            ours::enqueue(&client, jobs, bulk, With::Nothing, PAYLOAD)
                .await?
                .0,
        ),
        Figure::Work { concurrency, with } => {
            ours::set(&client, with).await?;
            let (_, ids) = ours::enqueue(&client, jobs, bulk, with, PAYLOAD).await?;
            before = ground.read()?;
            let took = ours::work(&client, &ids, concurrency).await?;
            after = Some(ground.read()?);
            ours::finished(&client, &ids).await?;
            per_second(took)
        }
        Figure::Latency => {
            let of_worker = ground.client().await?;
            ours::latency(&client, &of_worker, jobs).await?.values()
        }
        Figure::Script { profile } => {
            let of_worker = ground.client().await?;
            ours::scripts(&client, &of_worker, profile, jobs).await?
        }
        Figure::Memory { .. } => {
            ours::enqueue(&client, jobs, bulk, With::Nothing, PAYLOAD).await?;
            vec![(ground.read()?.memory() - before.memory()) / jobs as f64]
        }
        Figure::Calls { in_flight, dialect } => {
            let pair = calls::Pair::start(&ground, dialect, in_flight).await?;
            before = ground.read()?;
            per_second(pair.calls(jobs, in_flight).await?)
        }
        Figure::CallLatency { dialect, pace } => {
            let pair = calls::Pair::start(&ground, dialect, 1).await?;
            before = ground.read()?;
            pair.latency(jobs, pace).await?
        }
    };
    let after = after.map_or_else(|| ground.read(), Ok)?;
    let cost = after.since(&before, jobs);
    Ok(Sample { values, cost, load })
}

/// Returns the number of calls in flight and of jobs in each, for storing many jobs at once.
fn bulk() -> (usize, usize) {
    let shape = Figure::EnqueueBulk.shapes()[0];
    (shape.callers, shape.batch)
}

/// Measures one run of the floor on a fresh engine.
async fn beside(
    figure: Figure,
    engine: Engine,
    shape: Shape,
    counts: &Counts,
) -> Result<Sample, BenchError> {
    let ground = Ground::start(engine, figure.server_args()).await?;
    let (link, jobs) = (ground.link().await?, figure.jobs(counts));
    let Shape { callers, batch } = shape;
    let load = meter::load();
    let mut before = ground.read()?;
    let per_second = |took: std::time::Duration| vec![jobs as f64 / took.as_secs_f64()];
    let values = match figure {
        Figure::EnqueueOne { .. } | Figure::EnqueueBulk => {
            per_second(floor::enqueue(link, jobs, callers, batch).await?)
        }
        Figure::Work { .. } => {
            let (callers_of_bulk, batch_of_bulk) = bulk();
            floor::enqueue(link.clone(), jobs, callers_of_bulk, batch_of_bulk).await?;
            before = ground.read()?;
            per_second(floor::work(link, jobs, callers, batch).await?)
        }
        Figure::Script { .. } => return Err(BenchError::Odd("the floor has no scripts".into())),
        Figure::Latency => {
            let more = [
                ground.link().await?,
                ground.link().await?,
                ground.link().await?,
            ];
            let [of_worker, of_client, answers] = more;
            let links = [link, of_worker, of_client, answers];
            floor::latency(links, jobs).await?.values()
        }
        Figure::Memory { .. } => {
            floor::enqueue(link, jobs, callers, batch).await?;
            vec![(ground.read()?.memory() - before.memory()) / jobs as f64]
        }
        Figure::Calls { .. } => {
            let echoes = Echoes::start(&ground, callers).await?;
            before = ground.read()?;
            per_second(echoes.calls(jobs).await?)
        }
        Figure::CallLatency { pace, .. } => {
            let echoes = Echoes::start(&ground, callers).await?;
            before = ground.read()?;
            echoes.latency(jobs, pace).await?
        }
    };
    let cost = ground.read()?.since(&before, jobs);
    Ok(Sample { values, cost, load })
}
