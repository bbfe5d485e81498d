//! Latencies of single jobs on an otherwise idle system.

use std::time::{Duration, Instant};

use super::BenchError;
use super::figure::Pace;

/// Number of samples that are not counted, in which connections are made.
pub(crate) const WARM_UP: usize = 20;

/// Time between two samples: longer than a worker needs to become idle again.
pub(crate) const PACE: Duration = Duration::from_millis(5);

/// Returns the times of calls in µs. Each call follows the answer to the last when `pace` allows it.
///
/// Runs in a task: outside of the runtime's threads each call would have to wake another thread.
pub(super) async fn timed<F>(
    samples: usize,
    pace: Pace,
    mut call: impl FnMut() -> F + Send + 'static,
) -> Result<Vec<f64>, BenchError>
where
    F: Future<Output = Result<(), BenchError>> + Send,
{
    let task = tokio::spawn(async move {
        let (mut ticks, mut times) = (tokio::time::interval(PACE), Vec::new());
        for _ in 0..samples {
            if pace == Pace::Idle {
                ticks.tick().await;
            }
            let began = Instant::now();
            call().await?;
            times.push(began.elapsed());
        }
        Ok(percentiles(times).to_vec())
    });
    let times = task.await;
    times.map_err(|why| BenchError::Odd(why.to_string()))?
}

/// Times from just before the call that submits, to the start of the handler and to the result at the caller.
#[derive(Debug, Default)]
pub(super) struct Latencies {
    starts: Vec<Duration>,
    results: Vec<Duration>,
}

impl Latencies {
    pub(super) fn add(&mut self, start: Duration, result: Duration) {
        self.starts.push(start);
        self.results.push(result);
    }

    /// Returns the values in the order of [`super::figure::LATENCIES`], in µs.
    pub(super) fn values(self) -> Vec<f64> {
        [percentiles(self.starts), percentiles(self.results)].concat()
    }
}

/// Returns the median and the 99th percentile, in µs.
pub(crate) fn percentiles(mut times: Vec<Duration>) -> [f64; 2] {
    times.sort();
    [50, 99].map(|percent| {
        let at = (times.len().saturating_sub(1) * percent + 50) / 100;
        times.get(at).map_or(0.0, |time| time.as_secs_f64() * 1e6)
    })
}
