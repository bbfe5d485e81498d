//! The figures by name, and the amount of work for each.

use meshwork_model::keys::nooble::Dialect;
use meshwork_model::sandbox::Profile;

/// A figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// Enqueue rate with one job in each call of a task.
    EnqueueOne {
        /// Number of tasks that call at once.
        callers: usize,
    },
    /// Enqueue rate with four calls in flight and a hundred jobs in each.
    EnqueueBulk,
    /// Rate at which one worker runs waiting jobs whose handlers do nothing.
    Work {
        /// Number of handlers at once.
        concurrency: usize,
        /// Additional feature.
        with: With,
    },
    /// Latency of one job at a time for an idle worker.
    Latency,
    /// Latency from the call that submits a Python script to its result, one job at a time.
    Script {
        /// Sandbox of the script.
        profile: Profile,
    },
    /// Memory that a waiting job takes in the server.
    Memory {
        /// True with `hash-max-listpack-value 1024`.
        packed: bool,
    },
    /// Rate of calls of an action whose handler does nothing.
    Calls {
        /// Number of calls in flight.
        in_flight: usize,
        /// Dialect of the wire format.
        dialect: Dialect,
    },
    /// Latency of one call at a time to an idle service.
    CallLatency {
        /// Dialect of the wire format.
        dialect: Dialect,
        /// Time of the next call.
        pace: Pace,
    },
}

/// Feature that the jobs use in addition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum With {
    /// None.
    Nothing,
    /// Limits of concurrency and of rate, both too high to be reached.
    Limits,
    /// A unique name for each job.
    Unique,
    /// Jobs of all priorities.
    Priorities,
}

impl With {
    const fn suffix(self) -> &'static str {
        match self {
            Self::Nothing => "",
            Self::Limits => "-limits",
            Self::Unique => "-unique",
            Self::Priorities => "-priorities",
        }
    }
}

/// Time of the next call after an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// At once, while the service is still awake.
    AtOnce,
    /// After a pause in which both sides become idle.
    Idle,
}

/// Amount of work for one run.
#[derive(Debug, Clone, Copy)]
pub struct Counts {
    /// Number of jobs enqueued one by one.
    pub one: usize,
    /// Number of jobs enqueued in bulk.
    pub bulk: usize,
    /// Number of jobs for each handler that runs at the same time, up to [`Counts::work`].
    pub work_each: usize,
    /// Greatest number of jobs for a worker: less than the number of ended jobs that are kept.
    pub work: usize,
    /// Number of jobs for latencies, one at a time.
    pub samples: usize,
    /// Number of Python scripts, one at a time.
    pub scripts: usize,
    /// Number of jobs that wait in memory.
    pub memory: usize,
    /// Number of calls of actions.
    pub calls: usize,
    /// Number of timed calls, each of which follows the answer to the last.
    pub timed_calls: usize,
}

impl Counts {
    /// Amounts behind the documented figures.
    pub const FULL: Self = Self {
        one: 20_000,
        bulk: 100_000,
        work_each: 20_000,
        work: 50_000,
        samples: 500,
        scripts: 200,
        memory: 20_000,
        calls: 20_000,
        timed_calls: 5_000,
    };
    /// Amounts for a quick look at a change.
    pub const QUICK: Self = Self {
        one: 5_000,
        bulk: 40_000,
        work_each: 5_000,
        work: 20_000,
        samples: 200,
        scripts: 50,
        memory: 5_000,
        calls: 5_000,
        timed_calls: 2_000,
    };
}

/// Names of the values of [`Figure::Latency`].
pub(super) const LATENCIES: [&str; 4] = ["start-p50", "start-p99", "result-p50", "result-p99"];

/// Names of the values of [`Figure::CallLatency`] and [`Figure::Script`].
const CALL_LATENCIES: [&str; 2] = ["p50", "p99"];

/// Shape of the same work on the floor: callers, and jobs in each call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Number of calls in flight.
    pub callers: usize,
    /// Number of jobs in each call.
    pub batch: usize,
}

impl Figure {
    /// Returns all figures without a script, in the order of measurement.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let mut all: Vec<_> = [1, 10, 100]
            .map(|callers| Self::EnqueueOne { callers })
            .into();
        all.push(Self::EnqueueBulk);
        for with in [With::Nothing, With::Limits, With::Unique, With::Priorities] {
            all.extend([1, 10, 50].map(|concurrency| Self::Work { concurrency, with }));
        }
        all.push(Self::Latency);
        all.extend([false, true].map(|packed| Self::Memory { packed }));
        for dialect in [Dialect::Streams, Dialect::Lists] {
            all.extend([Pace::AtOnce, Pace::Idle].map(|pace| Self::CallLatency { dialect, pace }));
            all.extend([1, 10, 100].map(|in_flight| Self::Calls { in_flight, dialect }));
        }
        all
    }

    /// Returns the figure with this name, or all figures whose names begin with it.
    #[must_use]
    pub fn named(name: &str) -> Vec<Self> {
        let mut all = Self::all();
        all.extend(Profile::ALL.map(|profile| Self::Script { profile }));
        if let Some(one) = all.iter().find(|figure| figure.name() == name) {
            return vec![*one];
        }
        let part = format!("{name}-");
        all.into_iter()
            .filter(|figure| figure.name().starts_with(&part))
            .collect()
    }

    /// Returns the name of the figure.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::EnqueueOne { callers: 1 } => "enqueue-one".to_owned(),
            Self::EnqueueOne { callers } => format!("enqueue-one-{callers}"),
            Self::EnqueueBulk => "enqueue-bulk".to_owned(),
            Self::Work { concurrency, with } => format!("work-{concurrency}{}", with.suffix()),
            Self::Latency => "latency".to_owned(),
            Self::Script { profile } => format!("python-{profile}"),
            Self::Memory { packed: false } => "memory".to_owned(),
            Self::Memory { packed: true } => "memory-listpack".to_owned(),
            Self::Calls { in_flight, dialect } => format!("call-{in_flight}-{dialect}"),
            Self::CallLatency { dialect, pace } => match pace {
                Pace::AtOnce => format!("call-latency-{dialect}"),
                Pace::Idle => format!("call-idle-{dialect}"),
            },
        }
    }

    /// Returns the names of its values, and their unit.
    pub(super) fn yields(self) -> (Vec<String>, &'static str) {
        let name = self.name();
        let parts = |parts: &[&str]| parts.iter().map(|part| format!("{name}-{part}")).collect();
        match self {
            Self::Latency => (parts(&LATENCIES), "us"),
            Self::CallLatency { .. } | Self::Script { .. } => (parts(&CALL_LATENCIES), "us"),
            Self::Memory { .. } => (vec![name], "bytes/job"),
            Self::Calls { .. } => (vec![name], "calls/s"),
            _ => (vec![name], "jobs/s"),
        }
    }

    /// Returns true if a smaller value is better.
    pub(super) fn is_cost(self) -> bool {
        matches!(
            self,
            Self::Latency | Self::Script { .. } | Self::Memory { .. } | Self::CallLatency { .. }
        )
    }

    /// Returns the default number of runs.
    pub(super) fn runs(self) -> usize {
        match self {
            // The result depends most on whether two processes share a core, which changes from run to run.
            Self::CallLatency {
                pace: Pace::AtOnce, ..
            } => 25,
            _ => 3,
        }
    }

    /// Returns the number of jobs or calls in one run.
    pub(super) fn jobs(self, counts: &Counts) -> usize {
        match self {
            Self::EnqueueOne { .. } => counts.one,
            Self::EnqueueBulk => counts.bulk,
            Self::Work { concurrency, .. } => counts.work.min(counts.work_each * concurrency),
            Self::Latency => counts.samples,
            Self::Script { .. } => counts.scripts,
            Self::CallLatency { pace, .. } => match pace {
                Pace::AtOnce => counts.timed_calls,
                Pace::Idle => counts.samples,
            },
            Self::Calls { .. } => counts.calls,
            Self::Memory { .. } => counts.memory,
        }
    }

    /// Returns the same figure without the additional feature, if it has one.
    pub(super) fn plain(self) -> Option<Self> {
        match self {
            Self::Work { concurrency, with } if with != With::Nothing => Some(Self::Work {
                concurrency,
                with: With::Nothing,
            }),
            Self::Script { profile } if profile != Profile::Open => Some(Self::Script {
                profile: Profile::Open,
            }),
            _ => None,
        }
    }

    /// Returns the shapes of the floor for the same work.
    pub(super) fn shapes(self) -> Vec<Shape> {
        let shape = |callers, batch| Shape { callers, batch };
        match self {
            Self::Script { .. } => vec![],
            Self::EnqueueOne { callers } => vec![shape(callers, 1)],
            Self::Latency | Self::CallLatency { .. } => vec![shape(1, 1)],
            Self::Calls { in_flight, .. } => vec![shape(in_flight, 1)],
            Self::EnqueueBulk | Self::Memory { .. } => vec![shape(4, 100)],
            // Either a call for each handler, or one call for all and for jobs fetched ahead.
            Self::Work { concurrency, .. } => {
                let batches = [concurrency, 8, 32, 64].into_iter();
                let batches = batches.filter(|batch| *batch > 1 && *batch >= concurrency);
                let mut shapes = vec![shape(concurrency, 1)];
                shapes.extend(batches.map(|batch| shape(1, batch)));
                shapes
            }
        }
    }

    /// Returns the arguments that the figure needs on the server's command line.
    pub(super) fn server_args(self) -> &'static [&'static str] {
        match self {
            Self::Memory { packed: true } => &["--hash-max-listpack-value", "1024"],
            _ => &[],
        }
    }
}

/// Returns a payload that a handler accepts: a text that has this many bytes as JSON.
pub(super) fn payload(bytes: usize) -> String {
    "x".repeat(bytes.saturating_sub(2))
}
