//! The promoter puts jobs whose delay is over into their queues, and learns when the next one is due: from each run, from
//! a job that failed here ([`NextDue`]), and from the wakeup that whoever stores the first of all delayed jobs leaves.

use std::time::Duration;

use futures_util::future::BoxFuture;
use meshwork_broker::{Backoff, Broker, Error};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::leader::POLL_EVERY;
use super::task::{Outcome, Task};
use crate::worker::dedicated_thread::Never;

/// The clock of the server counts in milliseconds: a job is due when this one is over.
pub(super) const TICK: Duration = Duration::from_millis(1);
/// A job that is due later than this is seen by whoever leads then.
const NEAR: Duration = Duration::from_secs(2);
/// Longest single wait for a wakeup, then repeated.
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
            // What is due now and is no job is the slot of a schedule, which [`super::cron`] decides.
            let pause = |next: Duration| match worked || !next.is_zero() {
                true => next + TICK,
                false => POLL_EVERY,
            };
            let next = promoted.next.map(pause);
            Ok(Outcome { worked, next })
        })
    }
}

/// Time of the next retry of jobs that failed here: this worker promotes them, whoever leads.
#[derive(Debug)]
pub(in crate::protocol::hero) struct NextDue(watch::Sender<Option<Instant>>);

impl NextDue {
    pub(in crate::protocol::hero) fn new() -> Self {
        Self(watch::Sender::new(None))
    }

    /// A job is due after `delay`.
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

    /// Tells of what is noted; what was noted before it was called too.
    pub(super) fn subscribe(&self) -> watch::Receiver<Option<Instant>> {
        let mut noted = self.0.subscribe();
        // What failed before this connection was made.
        noted.mark_changed();
        noted
    }

    /// The first of the times noted since it was taken last.
    pub(super) fn take(&self) -> Option<Instant> {
        let mut taken = None;
        self.0.send_if_modified(|first| {
            taken = first.take();
            false
        });
        taken
    }
}

/// Waits for wakeups, on a connection of its own that is made again when it breaks.
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
