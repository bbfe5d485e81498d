//! What is measured: the figures by name, and how much of each.

use meshwork_model::keys::nooble::Dialect;

use super::PAYLOAD;

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// One call in flight, one job in it.
    EnqueueOne,
    /// Four calls in flight, a hundred jobs in each.
    EnqueueBulk,
    /// Jobs that wait, and one worker with handlers that do nothing.
    Work {
        /// So many handlers at once.
        concurrency: usize,
        /// What is asked for beside.
        with: With,
    },
    /// One job at a time for a worker that waits.
    Latency,
    /// What a job takes in the memory of the server while it waits.
    Memory {
        /// With `hash-max-listpack-value 1024`.
        packed: bool,
    },
    /// Calls of an action whose handler does nothing.
    Calls {
        /// So many in flight.
        in_flight: usize,
        /// Whose wire.
        dialect: Dialect,
    },
    /// One call at a time for a service that waits.
    CallLatency {
        /// Whose wire.
        dialect: Dialect,
        /// When the next one is made.
        pace: Pace,
    },
}

/// What is asked for beside the plain work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum With {
    /// Nothing.
    Nothing,
    /// A limit of jobs that run at once and one of jobs in a second, both too high to be reached.
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

/// When the next call is made, once the last one was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// At once: what is called is awake.
    AtOnce,
    /// After a pause in which both sides fall asleep.
    Idle,
}

/// How much is done for one run.
#[derive(Debug, Clone, Copy)]
pub struct Counts {
    /// Jobs enqueued one by one.
    pub one: usize,
    /// Jobs enqueued in bulk.
    pub bulk: usize,
    /// Jobs for each handler that runs at the same time, up to [`Counts::work`].
    pub work_each: usize,
    /// The most jobs for a worker: fewer than are kept when they have ended.
    pub work: usize,
    /// Jobs one at a time.
    pub samples: usize,
    /// Jobs that wait in memory.
    pub memory: usize,
    /// Calls of actions.
    pub calls: usize,
    /// Calls of which each is timed, at once after the last one.
    pub timed_calls: usize,
}

impl Counts {
    /// What the documented figures are taken with.
    pub const FULL: Self = Self {
        one: 20_000,
        bulk: 100_000,
        work_each: 20_000,
        work: 50_000,
        samples: 500,
        memory: 20_000,
        calls: 20_000,
        timed_calls: 5_000,
    };
    /// To try a change.
    pub const QUICK: Self = Self {
        one: 5_000,
        bulk: 40_000,
        work_each: 5_000,
        work: 20_000,
        samples: 200,
        memory: 5_000,
        calls: 5_000,
        timed_calls: 2_000,
    };
}

/// The figures of [`Figure::Latency`].
pub(super) const LATENCIES: [&str; 4] = ["start-p50", "start-p99", "result-p50", "result-p99"];

/// The figures of [`Figure::CallLatency`].
const CALL_LATENCIES: [&str; 2] = ["p50", "p99"];

/// How the floor does the same: callers, and jobs in each call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Calls in flight.
    pub callers: usize,
    /// Jobs in each.
    pub batch: usize,
}

impl Figure {
    /// All of them, in the order in which they are taken.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let mut all = vec![Self::EnqueueOne, Self::EnqueueBulk];
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

    /// Those that a name means: the one that is called so, or all that begin with it.
    #[must_use]
    pub fn named(name: &str) -> Vec<Self> {
        let all = Self::all();
        if let Some(one) = all.iter().find(|figure| figure.name() == name) {
            return vec![*one];
        }
        let part = format!("{name}-");
        all.into_iter()
            .filter(|figure| figure.name().starts_with(&part))
            .collect()
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::EnqueueOne => "enqueue-one".to_owned(),
            Self::EnqueueBulk => "enqueue-bulk".to_owned(),
            Self::Work { concurrency, with } => format!("work-{concurrency}{}", with.suffix()),
            Self::Latency => "latency".to_owned(),
            Self::Memory { packed: false } => "memory".to_owned(),
            Self::Memory { packed: true } => "memory-listpack".to_owned(),
            Self::Calls { in_flight, dialect } => format!("call-{in_flight}-{dialect}"),
            Self::CallLatency { dialect, pace } => match pace {
                Pace::AtOnce => format!("call-latency-{dialect}"),
                Pace::Idle => format!("call-idle-{dialect}"),
            },
        }
    }

    /// The names of what it yields, and their unit.
    pub(super) fn yields(self) -> (Vec<String>, &'static str) {
        let name = self.name();
        let parts = |parts: &[&str]| parts.iter().map(|part| format!("{name}-{part}")).collect();
        match self {
            Self::Latency => (parts(&LATENCIES), "us"),
            Self::CallLatency { .. } => (parts(&CALL_LATENCIES), "us"),
            Self::Memory { .. } => (vec![name], "bytes/job"),
            Self::Calls { .. } => (vec![name], "calls/s"),
            _ => (vec![name], "jobs/s"),
        }
    }

    /// Whether less is better.
    pub(super) fn is_cost(self) -> bool {
        matches!(
            self,
            Self::Latency | Self::Memory { .. } | Self::CallLatency { .. }
        )
    }

    /// How often it is taken when nothing is said.
    pub(super) fn runs(self) -> usize {
        match self {
            // Whether two processes share a core decides more than what they do, and changes from run to run.
            Self::CallLatency {
                pace: Pace::AtOnce, ..
            } => 25,
            _ => 3,
        }
    }

    /// Jobs, or calls, in one run.
    pub(super) fn jobs(self, counts: &Counts) -> usize {
        match self {
            Self::EnqueueOne => counts.one,
            Self::EnqueueBulk => counts.bulk,
            Self::Work { concurrency, .. } => counts.work.min(counts.work_each * concurrency),
            Self::Latency => counts.samples,
            Self::CallLatency { pace, .. } => match pace {
                Pace::AtOnce => counts.timed_calls,
                Pace::Idle => counts.samples,
            },
            Self::Calls { .. } => counts.calls,
            Self::Memory { .. } => counts.memory,
        }
    }

    /// The same without what is asked for beside, if anything is.
    pub(super) fn plain(self) -> Option<Self> {
        match self {
            Self::Work { concurrency, with } if with != With::Nothing => Some(Self::Work {
                concurrency,
                with: With::Nothing,
            }),
            _ => None,
        }
    }

    /// How the floor can do the same.
    pub(super) fn shapes(self) -> Vec<Shape> {
        let shape = |callers, batch| Shape { callers, batch };
        match self {
            Self::EnqueueOne | Self::Latency | Self::CallLatency { .. } => vec![shape(1, 1)],
            Self::Calls { in_flight, .. } => vec![shape(in_flight, 1)],
            Self::EnqueueBulk | Self::Memory { .. } => vec![shape(4, 100)],
            Self::Work { concurrency: 1, .. } => vec![shape(1, 1)],
            // A call for each handler, or one for all.
            Self::Work { concurrency, .. } => vec![shape(concurrency, 1), shape(1, concurrency)],
        }
    }

    /// What it asks of the server's command line.
    pub(super) fn server_args(self) -> &'static [&'static str] {
        match self {
            Self::Memory { packed: true } => &["--hash-max-listpack-value", "1024"],
            _ => &[],
        }
    }
}

/// A payload as a handler takes it: JSON of as many bytes as the floor's.
pub(super) fn payload() -> String {
    "x".repeat(PAYLOAD - 2)
}
