//! Command line, clock and output of the programs that measure other job queues. Each program implements [`Peer`] and
//! calls [`main`]. `crates/scenarios/src/bench/peers` starts the programs.

use std::error::Error;
use std::process::ExitCode;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use serde_json::json;
use tokio::sync::Notify;

/// Error of a program, which is printed.
pub type Failure = Box<dyn Error + Send + Sync>;

/// Size of a payload in bytes, as JSON.
const PAYLOAD: usize = 100;

/// Calls in flight of an enqueue in bulk, and jobs in each: the shape of Meshwork's figure.
pub const BULK: (usize, usize) = (4, 100);

/// Number of samples that are not counted, in which connections are made.
pub const WARM_UP: usize = 20;

/// Time between two samples: longer than a worker needs to become idle.
pub const PACE: Duration = Duration::from_millis(5);

/// Interval of the checks for the end of the work, short compared to a run.
pub const LOOK: Duration = Duration::from_millis(1);

/// Longest run of a program. The caller has a shorter limit of its own; this one ends a program whose caller is gone.
const LIMIT: Duration = Duration::from_secs(900);

/// Lock file of the programs, with the versions of the libraries.
const LOCK: &str = include_str!("../Cargo.lock");

/// A job queue under measurement, in its mode without lost jobs, with stored results.
pub trait Peer: Sized + Send + 'static {
    /// Crate of the library.
    const CRATE: &'static str;

    /// Connects to the server at this URL. `waiting` is the number of jobs to run, which wait there already. A job queue
    /// with a server of its own enqueues them.
    fn connect(url: &str, waiting: usize) -> impl Future<Output = Result<Self, Failure>> + Send;

    /// Enqueues jobs one after the other. Returns the time that this took.
    fn enqueue_one(self, jobs: usize) -> impl Future<Output = Result<Duration, Failure>> + Send;

    /// Enqueues jobs in the shape [`BULK`]. Returns the time that this took.
    fn enqueue_bulk(self, jobs: usize) -> impl Future<Output = Result<Duration, Failure>> + Send;

    /// Runs the waiting jobs. Returns the time from the first start of a handler to the last stored result.
    fn work(
        self,
        concurrency: usize,
        jobs: usize,
    ) -> impl Future<Output = Result<Duration, Failure>> + Send;

    /// Times one job at a time for an idle worker.
    fn latency(self, samples: usize) -> impl Future<Output = Result<Latencies, Failure>> + Send;
}

/// Verb of the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    EnqueueOne { jobs: usize },
    EnqueueBulk { jobs: usize },
    Work { concurrency: usize, jobs: usize },
    Latency { samples: usize },
}

impl Verb {
    fn parse(words: &[String]) -> Result<Self, Failure> {
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        let number = |word: &str| match word.parse() {
            Ok(0) | Err(_) => Err(format!("{word} is not a positive number")),
            Ok(number) => Ok(number),
        };
        Ok(match words[..] {
            ["enqueue-one", jobs] => Self::EnqueueOne {
                jobs: number(jobs)?,
            },
            ["enqueue-bulk", jobs] => Self::EnqueueBulk {
                jobs: number(jobs)?,
            },
            ["work", concurrency, jobs] => Self::Work {
                concurrency: number(concurrency)?,
                jobs: number(jobs)?,
            },
            ["latency", samples] => Self::Latency {
                samples: number(samples)?,
            },
            _ => {
                let usage = "usage: enqueue-one JOBS | enqueue-bulk JOBS | work CONCURRENCY JOBS | latency SAMPLES";
                return Err(usage.into());
            }
        })
    }

    /// Returns the name of the figure.
    fn figure(self) -> String {
        match self {
            Self::EnqueueOne { .. } => "enqueue-one".to_owned(),
            Self::EnqueueBulk { .. } => "enqueue-bulk".to_owned(),
            Self::Work { concurrency, .. } => format!("work-{concurrency}"),
            Self::Latency { .. } => "latency".to_owned(),
        }
    }

    fn jobs(self) -> usize {
        match self {
            Self::EnqueueOne { jobs } | Self::EnqueueBulk { jobs } | Self::Work { jobs, .. } => {
                jobs
            }
            Self::Latency { samples } => samples,
        }
    }
}

/// Runs the verb of the command line on the server at `REDIS_URL`, and prints its figure as one line of JSON.
pub async fn main<P: Peer>() -> ExitCode {
    let words: Vec<_> = std::env::args().skip(1).collect();
    // In a task, as Meshwork is measured: outside of the runtime's threads each call would wake another thread.
    let task = tokio::spawn(async move { measure::<P>(&words).await });
    let line = match tokio::time::timeout(LIMIT, task).await {
        Ok(Ok(line)) => line,
        Ok(Err(panic)) => Err(panic.into()),
        Err(_) => Err(format!("no end within {LIMIT:?}").into()),
    };
    match line {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{}: {error}", P::CRATE);
            ExitCode::FAILURE
        }
    }
}

async fn measure<P: Peer>(words: &[String]) -> Result<serde_json::Value, Failure> {
    let verb = Verb::parse(words)?;
    let url = std::env::var("REDIS_URL").map_err(|_| "set REDIS_URL to the server's URL")?;
    let waiting = match verb {
        Verb::Work { jobs, .. } => jobs,
        _ => 0,
    };
    let peer = P::connect(&url, waiting).await?;
    let before = processor_time();
    let per_second = |took: Duration| vec![json!(verb.jobs() as f64 / took.as_secs_f64())];
    let values = match verb {
        Verb::EnqueueOne { jobs } => per_second(peer.enqueue_one(jobs).await?),
        Verb::EnqueueBulk { jobs } => per_second(peer.enqueue_bulk(jobs).await?),
        Verb::Work { concurrency, jobs } => per_second(peer.work(concurrency, jobs).await?),
        Verb::Latency { samples } => peer.latency(samples).await?.values(),
    };
    let spent = processor_time().saturating_sub(before);
    Ok(json!({
        "figure": verb.figure(),
        "version": version(P::CRATE, LOCK)?,
        "values": values,
        "client_us": spent.as_secs_f64() * 1e6 / verb.jobs() as f64,
    }))
}

/// Returns the version of a crate in a lock file.
fn version<'a>(name: &str, lock: &'a str) -> Result<&'a str, String> {
    let entry = format!("name = \"{name}\"\nversion = \"");
    let after = lock.split_once(&entry).map(|(_, after)| after);
    let version = after.and_then(|after| after.split('"').next());
    version.ok_or_else(|| format!("Cargo.lock has no crate {name}"))
}

/// Returns the processor time of this process so far.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Returns a payload: a text whose JSON has 100 bytes.
#[must_use]
pub fn payload() -> String {
    "x".repeat(PAYLOAD - 2)
}

/// Starts of handlers.
#[derive(Debug, Default)]
pub struct Starts {
    first: OnceLock<Instant>,
    count: AtomicUsize,
    all: Notify,
}

impl Starts {
    /// Counts a start; `jobs` is the number to wait for.
    pub fn add(&self, jobs: usize) {
        self.first.get_or_init(Instant::now);
        if self.count.fetch_add(1, Ordering::Relaxed) + 1 == jobs {
            self.all.notify_one();
        }
    }

    /// Returns when all handlers have started.
    pub async fn all(&self) {
        self.all.notified().await;
    }

    /// Returns the time since the first start.
    ///
    /// # Errors
    /// A handler has not started, or more often than once for each job.
    pub fn elapsed(&self, jobs: usize) -> Result<Duration, Failure> {
        let first = self.first.get().ok_or("no handler has started")?;
        match self.count.load(Ordering::Relaxed) {
            starts if starts == jobs => Ok(first.elapsed()),
            starts => Err(format!("{starts} starts for {jobs} jobs").into()),
        }
    }
}

/// Times from just before the call that enqueues to the start of the handler, and to the result at the caller.
#[derive(Debug, Default)]
pub struct Latencies {
    starts: Vec<Duration>,
    results: Vec<Duration>,
}

impl Latencies {
    /// Adds a sample; `None` if the library has no results.
    pub fn add(&mut self, start: Duration, result: Option<Duration>) {
        self.starts.push(start);
        self.results.extend(result);
    }

    /// Returns medians and 99th percentiles in µs, in the order of Meshwork's figures.
    fn values(self) -> Vec<serde_json::Value> {
        let of = |mut times: Vec<Duration>| {
            times.sort();
            [50, 99].map(|percent| {
                let at = (times.len().saturating_sub(1) * percent + 50) / 100;
                json!(times.get(at).map(|time| time.as_secs_f64() * 1e6))
            })
        };
        [of(self.starts), of(self.results)].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn each_verb_has_its_figure() {
        let figure = |line| Verb::parse(&words(line)).map(|verb| (verb.figure(), verb.jobs()));
        assert_eq!(figure("enqueue-one 7").unwrap(), ("enqueue-one".into(), 7));
        assert_eq!(
            figure("enqueue-bulk 7").unwrap(),
            ("enqueue-bulk".into(), 7)
        );
        assert_eq!(figure("work 10 7").unwrap(), ("work-10".into(), 7));
        assert_eq!(figure("latency 7").unwrap(), ("latency".into(), 7));
        for wrong in ["", "work 10", "latency 0", "enqueue-one x"] {
            assert!(figure(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn versions_come_from_the_lock_file() {
        for name in ["apalis-redis", "bullmq-official"] {
            let version = version(name, LOCK).unwrap();
            assert!(version.starts_with("1."), "{name} {version}");
        }
        assert!(version("no-such-crate", LOCK).is_err());
    }

    #[test]
    fn latencies_have_four_values() {
        let mut times = Latencies::default();
        for ms in 1..=100 {
            times.add(
                Duration::from_millis(ms),
                Some(Duration::from_millis(2 * ms)),
            );
        }
        let expected = [51_000.0, 99_000.0, 102_000.0, 198_000.0].map(|us| json!(us));
        assert_eq!(times.values(), expected);
        assert_eq!(
            Latencies::default().values(),
            [json!(null), json!(null), json!(null), json!(null)]
        );
    }
}
