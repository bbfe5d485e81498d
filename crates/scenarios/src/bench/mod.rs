//! How fast it is, beside the floor: what the server can do for the smallest queue that loses nothing. Each run of
//! each figure has a fresh engine, and ours and the floor's take turns, so that whatever else the machine does hits
//! both: the ratios are what counts. It measures and judges nothing; what came out once stands in
//! `docs/performance.md`. What calls cost beside very many jobs that wait is [`crate::scale`]'s.

mod calls;
mod figure;
mod floor;
mod ground;
pub(crate) mod latency;
mod link;
mod meter;
mod ours;
mod report;

pub use figure::{Counts, Figure, Pace, Shape, With};
pub use ground::Engine;
pub use meter::Cost;
pub use report::{Beside, Line};

use floor::Echoes;
use ground::Ground;
use report::Runs;

/// Bytes of a payload.
const PAYLOAD: usize = 100;

/// What is done.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The figures.
    pub figures: Vec<Figure>,
    /// Where.
    pub engines: Vec<Engine>,
    /// How often each; None for as often as each figure needs.
    pub runs: Option<usize>,
    /// How much in each run.
    pub counts: Counts,
    /// Whether the floor runs beside.
    pub floor: bool,
}

/// Why nothing came out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// This machine lacks the engine.
    #[error("there is no {0}-server: see `cargo xtask test`")]
    Missing(&'static str),
    /// No directory for the embedded engine.
    #[error("no directory for the embedded engine: {0}")]
    Directory(#[from] std::io::Error),
    /// The client or the worker.
    #[error(transparent)]
    Meshwork(#[from] meshwork::Error),
    /// A verb.
    #[error(transparent)]
    Broker(#[from] meshwork_broker::Error),
    /// A call of an action, or its service.
    #[error(transparent)]
    Actions(#[from] meshwork::protocol::nooble::Error),
    /// A command of the floor or of the measurement.
    #[error("measure: {0}")]
    Command(#[from] redis::RedisError),
    /// A name that is none.
    #[error(transparent)]
    Name(#[from] meshwork_model::name::NameError),
    /// Something else was done than was to be measured.
    #[error("measure: {0}")]
    Odd(String),
}

/// What one run came to.
#[derive(Debug)]
struct Sample {
    /// In the order of what the figure yields.
    values: Vec<f64>,
    cost: Cost,
    load: f64,
}

/// Takes all figures; `told` hears of each as soon as it is there, and `step` of each run that begins.
///
/// # Errors
/// When an engine is missing, or does not do what it is told.
pub async fn run(
    plan: &Plan,
    mut step: impl FnMut(&str),
    mut told: impl FnMut(&Line),
) -> Result<(), BenchError> {
    for figure in &plan.figures {
        let engines = plan.engines.iter().copied();
        let mut all: Vec<_> = engines
            .filter(|engine| !skipped(*figure, *engine))
            .map(|engine| Runs::new(*figure, engine, plan.counts))
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
            }
        }
        for line in report::lines(&all) {
            told(&line);
        }
    }
    Ok(())
}

/// The embedded engine shares its memory with this program: no figure tells them apart.
fn skipped(figure: Figure, engine: Engine) -> bool {
    matches!(figure, Figure::Memory { .. }) && engine == Engine::Embedded
}

/// One run of ours on a fresh engine.
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
        Figure::EnqueueOne => per_second(ours::enqueue_one(&client, jobs).await?),
        Figure::EnqueueBulk => {
            per_second(ours::enqueue(&client, jobs, bulk, With::Nothing).await?.0)
        }
        Figure::Work { concurrency, with } => {
            ours::set(&client, with).await?;
            let (_, ids) = ours::enqueue(&client, jobs, bulk, with).await?;
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
        Figure::Memory { .. } => {
            ours::enqueue(&client, jobs, bulk, With::Nothing).await?;
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

/// Calls in flight and jobs in each, where many jobs are stored at once.
fn bulk() -> (usize, usize) {
    let shape = Figure::EnqueueBulk.shapes()[0];
    (shape.callers, shape.batch)
}

/// The same of the floor.
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
        Figure::EnqueueOne | Figure::EnqueueBulk => {
            per_second(floor::enqueue(link, jobs, callers, batch).await?)
        }
        Figure::Work { .. } => {
            let (callers_of_bulk, batch_of_bulk) = bulk();
            floor::enqueue(link.clone(), jobs, callers_of_bulk, batch_of_bulk).await?;
            before = ground.read()?;
            per_second(floor::work(link, jobs, callers, batch).await?)
        }
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
