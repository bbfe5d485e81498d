//! Figures that open pages share: one task reads them while somebody looks, however many do.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use meshwork_broker::{Broker, KnownQueues, QueueStats, Stats};
use meshwork_model::keys::hero::JobKeys;
use tokio::sync::{Notify, watch};

use crate::api::Calls;

/// Pause between two readings.
const EVERY: Duration = Duration::from_secs(2);
/// Time after the last viewer for which readings go on.
const LINGERS: Duration = Duration::from_secs(8);
/// Pause between two searches for queues, which scan keys.
const SEARCH_EVERY: Duration = Duration::from_secs(30);
/// Time that the store has for one reading.
const PATIENCE: Duration = Duration::from_millis(2500);
/// Readings that are kept: two minutes.
const KEPT: usize = 61;
/// Greatest number of queues whose history is kept.
const MOST_QUEUES: usize = 1000;

/// Counts of a queue at one reading.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sample {
    pub(super) waiting: u64,
    pub(super) finished: u64,
    pub(super) failed: u64,
}

/// One reading of the past.
#[derive(Debug)]
struct Past {
    at_ms: u64,
    queues: HashMap<String, Sample>,
}

/// Figures of one reading, and those before it.
#[derive(Debug)]
pub(super) struct Figures {
    pub(super) stats: Stats,
    /// Time of the reading, on the clock of this host.
    pub(super) at_ms: u64,
    past: Vec<Arc<Past>>,
}

/// Rates of a queue, per second.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Rate {
    pub(super) finished: f64,
    pub(super) failed: f64,
}

impl Figures {
    /// Returns the counts of a queue at the readings of the last two minutes.
    pub(super) fn history(&self, queue: &str) -> Vec<Sample> {
        let past = self.past.iter();
        past.map(|past| past.queues.get(queue).copied().unwrap_or_default())
            .collect()
    }

    /// Returns the sums of all queues at these readings.
    pub(super) fn totals(&self) -> Vec<Sample> {
        let sum = |past: &Arc<Past>| {
            past.queues
                .values()
                .fold(Sample::default(), |sum, queue| Sample {
                    waiting: sum.waiting + queue.waiting,
                    finished: sum.finished + queue.finished,
                    failed: sum.failed + queue.failed,
                })
        };
        self.past.iter().map(sum).collect()
    }

    /// Returns the rates over the last ten seconds.
    pub(super) fn rate(&self, samples: &[Sample]) -> Rate {
        let first = samples.len().saturating_sub(6);
        let (Some(from), Some(to)) = (samples.get(first), samples.last()) else {
            return Rate::default();
        };
        let (Some(begin), Some(end)) = (self.past.get(first), self.past.last()) else {
            return Rate::default();
        };
        let seconds = end.at_ms.saturating_sub(begin.at_ms) as f64 / 1000.0;
        // A server that was started again counts from 0.
        let per_second = |from: u64, to: u64| match seconds > 0.0 {
            true => to.saturating_sub(from) as f64 / seconds,
            false => 0.0,
        };
        Rate {
            finished: per_second(from.finished, to.finished),
            failed: per_second(from.failed, to.failed),
        }
    }

    /// Returns the figures of a queue.
    pub(super) fn queue(&self, name: &str) -> Option<&QueueStats> {
        self.stats.queues.iter().find(|queue| queue.queue == name)
    }

    /// Age of the reading in milliseconds.
    pub(super) fn age_ms(&self) -> u64 {
        meshwork::host_ms().saturating_sub(self.at_ms)
    }
}

/// Reads the figures while somebody looks.
#[derive(Debug)]
pub(super) struct Poller {
    broker: Broker,
    began: Instant,
    /// Time of the last look, in milliseconds from `began`; 0: none yet.
    looked: AtomicU64,
    wake: Notify,
    last: watch::Sender<Option<Arc<Figures>>>,
    /// Number of readings that were tried.
    tried: watch::Sender<u64>,
    past: Mutex<VecDeque<Arc<Past>>>,
}

impl Poller {
    pub(super) fn new(broker: Broker) -> Self {
        Self {
            broker,
            began: Instant::now(),
            looked: AtomicU64::new(0),
            wake: Notify::new(),
            last: watch::Sender::new(None),
            tried: watch::Sender::new(0),
            past: Mutex::default(),
        }
    }

    /// Notes that a page is open.
    pub(super) fn look(&self) {
        let ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let before = self.looked.swap(ms.max(1), Ordering::Relaxed);
        if before == 0 || ms.saturating_sub(before) >= EVERY.as_millis() as u64 {
            self.wake.notify_one();
        }
    }

    /// Tells of new figures.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.tried.subscribe()
    }

    /// Returns the last figures; waits for new ones if nobody has looked for a while.
    pub(super) async fn figures(&self) -> Option<Arc<Figures>> {
        let mut tried = self.tried.subscribe();
        self.look();
        let is_old = |last: &Option<Arc<Figures>>| {
            last.as_ref()
                .is_none_or(|it| it.age_ms() > 2 * EVERY.as_millis() as u64)
        };
        if is_old(&self.last.borrow()) {
            // Its end is the end of the process.
            let _ = tokio::time::timeout(PATIENCE, tried.changed()).await;
        }
        self.last.borrow().clone()
    }

    fn is_watched(&self) -> bool {
        let looked = self.looked.load(Ordering::Relaxed);
        let until = Duration::from_millis(looked) + LINGERS;
        looked > 0 && self.began.elapsed() < until
    }

    /// Reads again and again while somebody looks, until it is dropped.
    pub(super) async fn run(&self, calls: &Calls) -> ! {
        let (mut known, mut searched) = (KnownQueues::default(), None::<Instant>);
        loop {
            if !self.is_watched() {
                self.wake.notified().await;
                continue;
            }
            let searches = searched.is_none_or(|at| at.elapsed() >= SEARCH_EVERY);
            if searches {
                searched = Some(Instant::now());
            }
            if let Some(found) = calls.census.last() {
                known.extend(found.queues.iter().map(|queue| queue.queue.clone()));
            }
            self.read(&mut known, searches).await;
            self.tried.send_modify(|count| *count += 1);
            tokio::time::sleep(EVERY).await;
        }
    }

    async fn read(&self, known: &mut KnownQueues, searches: bool) {
        let broker = &self.broker;
        let read = async {
            match searches {
                true => broker.stats(known, false).await,
                false => broker.stats_of_known(known).await,
            }
        };
        let read = tokio::time::timeout(PATIENCE, read).await;
        let stats = match read {
            Ok(Ok(stats)) => stats,
            // The pages show the last figures with their time.
            Ok(Err(error)) => return tracing::debug!(%error, "figures for the dashboard not read"),
            Err(_) => return tracing::debug!("figures for the dashboard not read: timeout"),
        };
        let at_ms = meshwork::host_ms();
        let queues = samples(&stats);
        let mut past = self.past.lock().unwrap_or_else(PoisonError::into_inner);
        if past
            .back()
            .is_some_and(|last| at_ms.saturating_sub(last.at_ms) > 10_000)
        {
            // Nobody looked meanwhile: a line over the gap would be a lie.
            past.clear();
        }
        past.push_back(Arc::new(Past { at_ms, queues }));
        if past.len() > KEPT {
            past.pop_front();
        }
        let past = past.iter().cloned().collect();
        self.last
            .send_replace(Some(Arc::new(Figures { stats, at_ms, past })));
    }
}

/// Sums the lists of each queue.
fn samples(stats: &Stats) -> HashMap<String, Sample> {
    let mut samples: HashMap<String, Sample> = HashMap::new();
    for list in &stats.queues {
        let name = JobKeys::without_priority(&list.queue);
        if samples.len() >= MOST_QUEUES && !samples.contains_key(name) {
            continue;
        }
        let sample = samples.entry(name.to_owned()).or_default();
        sample.waiting += list.waiting + list.set_aside;
        sample.finished += list.finished;
        sample.failed += list.failed;
    }
    samples
}
