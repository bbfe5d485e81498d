//! What calls cost while very many jobs wait, beside what they cost while few do: the same calls in turns on
//! two databases of one server, so that whatever else the machine does hits both. And what the walks through long
//! lists cost that some calls cannot do without. It measures and counts; what is promised stands in
//! `docs/performance.md`.

mod ground;
mod report;
mod walks;

use std::time::Duration;

pub use ground::Call;
pub use report::{Pair, Walk};

use ground::{Ground, Sample};

/// How much is done.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Jobs that wait in the one database.
    pub few: usize,
    /// Jobs that wait in the other.
    pub many: usize,
    /// How often each call is made on each.
    pub calls: usize,
    /// Ids in the long lists.
    pub long: usize,
    /// How often each walk is made.
    pub walks: usize,
}

/// What came out.
#[derive(Debug)]
pub struct Report {
    /// Each call, in both databases.
    pub pairs: Vec<Pair>,
    /// Walks through long lists.
    pub walks: Vec<Walk>,
}

/// Why nothing did.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScaleError {
    /// This machine has no server.
    #[error("there is no redis-server: see `cargo xtask test`")]
    Missing,
    /// The server could not be reached.
    #[error("connect: {0}")]
    Connect(#[from] meshwork_broker::conn::ConnectError),
    /// A verb.
    #[error(transparent)]
    Broker(#[from] meshwork_broker::Error),
    /// A command of the measurement.
    #[error("measure: {0}")]
    Command(#[from] redis::RedisError),
    /// A name that is none.
    #[error(transparent)]
    Name(#[from] meshwork_model::name::NameError),
    /// A call did something else than it was to do.
    #[error("{call}: {what}")]
    Odd {
        /// The call.
        call: &'static str,
        /// What came of it.
        what: String,
    },
}

/// Measures everything.
///
/// # Errors
/// When there is no server, or it does not do what it is told.
pub async fn run(plan: &Plan) -> Result<Report, ScaleError> {
    let pairs = pairs(plan).await?;
    let walks = walks::run(plan).await?;
    Ok(Report { pairs, walks })
}

async fn pairs(plan: &Plan) -> Result<Vec<Pair>, ScaleError> {
    let mut few = Ground::start().await?;
    let mut many = few.beside().await?;
    few.fill(plan.few).await?;
    many.fill(plan.many).await?;
    let mut samples: Vec<(Vec<Sample>, Vec<Sample>)> = Vec::new();
    samples.resize_with(Call::ALL.len(), Default::default);
    for round in 0..plan.calls {
        for (call, (of_few, of_many)) in Call::ALL.into_iter().zip(&mut samples) {
            // Neither always comes first.
            if round % 2 == 0 {
                of_few.push(few.sample(call).await?);
                of_many.push(many.sample(call).await?);
            } else {
                of_many.push(many.sample(call).await?);
                of_few.push(few.sample(call).await?);
            }
        }
        few.refill().await?;
        many.refill().await?;
    }
    let pair = |(call, (few, many)): (Call, (Vec<Sample>, Vec<Sample>))| Pair {
        call,
        few: report::cost(few),
        many: report::cost(many),
    };
    Ok(Call::ALL.into_iter().zip(samples).map(pair).collect())
}

/// The one in the middle.
fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
