//! Promoter: moves due delayed jobs to their queues. It gets the time of the next job from each run, from a job that
//! failed here ([`NextDue`]), and from the wakeup of a new first delayed job.

use std::time::Duration;

use futures_util::future::BoxFuture;
use meshwork_broker::{Backoff, Broker, Error};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::leader::POLL_EVERY;
use super::task::{Outcome, Task};
use meshwork_worker::dedicated_thread::Never;

/// Resolution of the server's clock: a job is due when its millisecond is over.
pub(super) const TICK: Duration = Duration::from_millis(1);
/// Jobs that are due later than this are promoted by the leader.
const NEAR: Duration = Duration::from_secs(2);
/// Longest single wait for a wakeup.
const WAIT: Duration = Duration::from_secs(20);

pub(super) struct Promoter(Broker);

impl Promoter {
    pub(super) fn new(broker: &Broker) -> Self {
        Self(broker.clone())
    }
}

impl Task for Promoter {
    fn name(&self) -> &'static str {
        "promote"
    }

    fn run_once(&mut self) -> BoxFuture<'_, Result<Outcome, Error>> {
        Box::pin(async move {
            let promoted = self.0.promote().await?;
            let worked = promoted.due > 0;
            // If nothing was promoted although something is due, it is the slot of a schedule, which [`super::cron`]
            // fires.
            let pause = |next: Duration| match worked || !next.is_zero() {
                true => next + TICK,
                false => POLL_EVERY,
            };
            let next = promoted.next.map(pause);
            Ok(Outcome { worked, next })
        })
    }
}

/// Time of the next retry of jobs that failed here; this worker promotes them.
#[derive(Debug)]
pub(in crate::protocol::hero) struct NextDue(watch::Sender<Option<Instant>>);

impl NextDue {
    pub(in crate::protocol::hero) fn new() -> Self {
        Self(watch::Sender::new(None))
    }

    /// Records that a job is due after `delay`.
    pub(in crate::protocol::hero) fn note(&self, delay: Duration) {
        if delay > NEAR {
            return;
        }
        let at = Instant::now() + delay + TICK;
        self.0.send_if_modified(|first| {
            let sooner = first.is_none_or(|first| at < first);
            if sooner {
                *first = Some(at);
            }
            sooner
        });
    }

    /// Returns a receiver of changes, which also reports earlier ones.
    pub(super) fn subscribe(&self) -> watch::Receiver<Option<Instant>> {
        let mut noted = self.0.subscribe();
        // Jobs may have failed before this connection was made.
        noted.mark_changed();
        noted
    }

    /// Returns the earliest time since the last call.
    pub(super) fn take(&self) -> Option<Instant> {
        let mut taken = None;
        self.0.send_if_modified(|first| {
            taken = first.take();
            false
        });
        taken
    }
}

/// Waits for wakeups, on a connection of its own that reconnects.
pub(in crate::protocol::hero) async fn wait_for_wakeups(broker: &Broker, wakeup: &Notify) -> Never {
    let mut backoff = Backoff::new();
    loop {
        let Err(error) = wait_over_one(broker, wakeup, &mut backoff).await;
        // Jobs that are due soon may be late.
        broker.outages().failed("listen", &error);
        if error.is_temporary() {
            backoff.wait().await;
        } else {
            tokio::time::sleep(WAIT).await;
        }
    }
}

async fn wait_over_one(
    broker: &Broker,
    wakeup: &Notify,
    backoff: &mut Backoff,
) -> Result<Never, Error> {
    let blocking = broker.blocking_conn().await?;
    loop {
        if broker.wait_for_due(&blocking, WAIT).await? {
            wakeup.notify_one();
        }
        *backoff = Backoff::new();
        broker.outages().succeeded("listen");
    }
}
