//! A run of one case on one place: its namespace, its limits, and the checks after every case.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::BoxFuture;
use meshwork_broker::script::Scripts;
use rustix::time::{ClockId, clock_gettime};

use crate::cases::harness::world::BESIDE;
use crate::cases::{Case, Engine, Failure, Outcome, Place, World};
use crate::snapshot::keys_outside;

/// Limits of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Greatest duration.
    pub time: Duration,
    /// Greatest processor time of its own, which includes the embedded engine but no other case.
    pub work: Duration,
}

impl Bounds {
    /// Limits of a case that is not heavy; most take some milliseconds. The limit of processor time is tight, since a
    /// busy machine does not increase it; that of the duration is not.
    const LIGHT: Self = Self {
        time: Duration::from_secs(120),
        work: Duration::from_secs(2),
    };

    /// The same on [`Engine::FullLog`], which tries each command three more times on a copy.
    const LIGHT_TRIED_OUT: Self = Self {
        time: Duration::from_secs(300),
        work: Duration::from_secs(30),
    };

    /// Limits of a case with 100,000 items: only one that hangs exceeds them.
    const HEAVY: Self = Self {
        time: Duration::from_secs(600),
        work: Duration::from_secs(600),
    };

    /// Returns the limits of a case.
    #[must_use]
    pub const fn of(heavy: bool, engine: Engine) -> Self {
        match (heavy, engine) {
            (true, _) => Self::HEAVY,
            (false, Engine::FullLog) => Self::LIGHT_TRIED_OUT,
            (false, _) => Self::LIGHT,
        }
    }
}

impl Case {
    /// Runs the case with `scripts`. A panic, and a case that exceeds `bounds`, are failures too.
    ///
    /// # Errors
    /// The violation that the case found.
    pub async fn run_on(&'static self, place: &Place, scripts: Scripts, bounds: Bounds) -> Outcome {
        let world = World::new(place.ways().clone(), scripts)?;
        let worked = Arc::new(AtomicU64::new(0));
        let metered = Arc::clone(&worked);
        let run = tokio::spawn(async move {
            let case = (self.run)(&world);
            Metered { case, metered }.await
        });
        let stop = run.abort_handle();
        match tokio::time::timeout(bounds.time, run).await {
            Ok(Ok(outcome)) => outcome?,
            Ok(Err(panic)) => return Err(Failure::new(panic)),
            Err(_) => {
                stop.abort();
                let time = bounds.time;
                return Err(Failure::new(format!("it did not end within {time:?}")));
            }
        }
        let (worked, most) = (
            Duration::from_nanos(worked.load(Ordering::Relaxed)),
            bounds.work,
        );
        if worked > most {
            let what = format!("it took {worked:?} of the processor, and {most:?} are the most");
            return Err(Failure::new(what));
        }
        alone(place).await
    }
}

/// A case whose processor time is added up, in nanoseconds. Tasks that it spawns do not count.
struct Metered<'a> {
    case: BoxFuture<'a, Outcome>,
    metered: Arc<AtomicU64>,
}

impl Future for Metered<'_> {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome> {
        let before = thread_time();
        let polled = self.case.as_mut().poll(cx);
        let nanos = (thread_time() - before).as_nanos();
        let nanos = u64::try_from(nanos).unwrap_or(u64::MAX);
        self.metered.fetch_add(nanos, Ordering::Relaxed);
        polled
    }
}

/// Returns the processor time of this thread.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// Checks that no key exists outside of the namespace.
async fn alone(place: &Place) -> Outcome {
    let namespace = &place.ways().namespace;
    let beside = format!("{namespace}{BESIDE}");
    let outside = keys_outside(place.conn(), &[namespace, &beside]).await?;
    if let Some(first) = outside.first() {
        let (many, first) = (outside.len(), first.escape_ascii());
        let what = format!("{many} keys lie outside of the namespace, `{first}` among them");
        return Err(Failure::new(what));
    }
    Ok(())
}
