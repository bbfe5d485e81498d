//! Cost of calls while very many jobs wait, compared to few waiting jobs. The same calls alternate on two databases
//! of one server, so that other load on the machine affects both. It also measures the walks through long lists that
//! some calls need. It measures and counts; `docs/performance.md` has the promises.

mod ground;
mod report;
mod walks;

use std::time::Duration;

pub use ground::Call;
pub use report::{Pair, Walk};

use ground::{Ground, Sample};

/// Amount of work.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Number of waiting jobs in the first database.
    pub few: usize,
    /// Number of waiting jobs in the second database.
    pub many: usize,
    /// Number of objects of scripts in the first database.
    pub few_objects: usize,
    /// Number of objects of scripts in the second database.
    pub many_objects: usize,
    /// Number of calls of each kind on each database.
    pub calls: usize,
    /// Number of ids in the long lists.
    pub long: usize,
    /// Number of walks of each kind.
    pub walks: usize,
}

/// Result of the measurement.
#[derive(Debug)]
pub struct Report {
    /// Results of each call, in both databases.
    pub pairs: Vec<Pair>,
    /// Results of walks through long lists.
    pub walks: Vec<Walk>,
}

/// Error that ends a measurement.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScaleError {
    /// This machine has no server.
    #[error("there is no redis-server: see `cargo xtask test`")]
    Missing,
    /// The server could not be reached.
    #[error("connect: {0}")]
    Connect(#[from] meshwork_broker::conn::ConnectError),
    /// A verb failed.
    #[error(transparent)]
    Broker(#[from] meshwork_broker::Error),
    /// A command of the measurement failed.
    #[error("measure: {0}")]
    Command(#[from] redis::RedisError),
    /// A name is invalid.
    #[error(transparent)]
    Name(#[from] meshwork_model::name::NameError),
    /// An object is invalid.
    #[error(transparent)]
    Object(#[from] meshwork_model::object::InvalidObject),
    /// A call had an unexpected result.
    #[error("{call}: {what}")]
    Odd {
        /// The call.
        call: &'static str,
        /// The result.
        what: String,
    },
}

/// Measures all calls and walks.
///
/// # Errors
/// There is no server, or it fails.
pub async fn run(plan: &Plan) -> Result<Report, ScaleError> {
    let pairs = pairs(plan).await?;
    let walks = walks::run(plan).await?;
    Ok(Report { pairs, walks })
}

async fn pairs(plan: &Plan) -> Result<Vec<Pair>, ScaleError> {
    let mut few = Ground::start().await?;
    let mut many = few.beside(1).await?;
    few.fill(plan.few).await?;
    many.fill(plan.many).await?;
    // A page of jobs comes from a scan of all keys, so objects have databases of their own.
    let (mut few_objects, mut many_objects) = (few.beside(2).await?, few.beside(3).await?);
    few_objects.fill_objects(plan.few_objects).await?;
    many_objects.fill_objects(plan.many_objects).await?;
    let mut samples: Vec<(Vec<Sample>, Vec<Sample>)> = Vec::new();
    samples.resize_with(Call::ALL.len(), Default::default);
    for round in 0..plan.calls {
        for (call, (of_few, of_many)) in Call::ALL.into_iter().zip(&mut samples) {
            let (few, many) = match call {
                Call::Find => (&mut few_objects, &mut many_objects),
                _ => (&mut few, &mut many),
            };
            // The databases alternate in the order of the calls.
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

/// Returns the median.
fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
