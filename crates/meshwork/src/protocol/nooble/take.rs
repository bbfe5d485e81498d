//! Take: claims waiting messages, waits for new ones, and takes those of dead services.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::join_all;
use meshwork_broker::nooble::{Nooble, Received};
use meshwork_broker::{BlockingConn, Error};

use super::message::Message;
use super::queue::Queue;
use super::state::NoobleProtocol;
use meshwork_worker::FetchRequest;
use meshwork_worker::Fetched;
use meshwork_worker::Intake;

/// Greatest number of messages of one call, since other services share the queue.
const MOST: usize = 32;
/// Number of empty queues that one claim reads, in turn. There may be a hundred queues, and blocking reads wait on each
/// while slots are free.
const LOOKS: usize = 2;
/// Pause between two claims from a queue that refuses them.
const REFUSED: Duration = Duration::from_secs(1);

impl NoobleProtocol {
    /// Claims waiting messages, from one queue after another.
    pub(super) async fn claim(
        &self,
        request: &FetchRequest,
    ) -> Result<Fetched<Arc<Message>>, Error> {
        let (mut jobs, mut blocked) = (Vec::new(), Vec::new());
        let (mut looks, mut more) = (LOOKS, false);
        let first = request.round.unwrap_or_default() % self.queues.len().max(1);
        let (before, from) = self.queues.split_at(first);
        for queue in from.iter().chain(before) {
            let (name, room) = (queue.name(), request.want - jobs.len());
            if room == 0 {
                break;
            }
            if request.skipped.iter().any(|skipped| skipped == name) {
                continue;
            }
            if !queue.more.load(Ordering::Relaxed) && !request.arrivals.contains(name) {
                if looks == 0 {
                    continue;
                }
                looks -= 1;
            }
            match self.receive(queue, room.min(MOST)).await {
                Ok(taken) => {
                    more |= queue.more.load(Ordering::Relaxed);
                    jobs.extend(taken);
                }
                Err(error) if !error.is_temporary() => {
                    self.broker.outages().failed("claim", &error);
                    blocked.push((name.to_owned(), REFUSED));
                }
                Err(error) if jobs.is_empty() => return Err(error),
                // Reported at the next failure.
                Err(_) => {
                    more = true;
                    break;
                }
            }
        }
        if blocked.is_empty() {
            self.broker.outages().succeeded("claim");
        }
        Ok(Fetched {
            jobs,
            dropped: 0,
            more,
            blocked,
            at_ms: 0,
        })
    }

    async fn receive(&self, queue: &Arc<Queue>, most: usize) -> Result<Vec<Arc<Message>>, Error> {
        let giving = queue.gives();
        let taken = self.broker.receive(&self.worker, &queue.source, most).await;
        let is_more = taken.as_ref().map_or_else(
            // A queue that is temporarily unavailable may have more messages.
            |error| error.is_temporary(),
            |taken| taken.len() == most,
        );
        queue.more.store(is_more, Ordering::Relaxed);
        let taken = taken?;
        giving.all_known();
        Ok(messages(queue, taken))
    }

    /// Waits for a message.
    pub(super) async fn await_message(
        &self,
        conn: &BlockingConn,
        queue: &Arc<Queue>,
        (most, before): (Duration, Duration),
    ) -> Result<Option<Arc<Message>>, Error> {
        let giving = queue.gives();
        let came = self
            .broker
            .wait(conn, &self.worker, &queue.source, most, before);
        let came = came.await?;
        giving.all_known();
        Ok(came.map(|received| Arc::new(Message::new(queue, received))))
    }

    /// Takes messages of dead services, and messages that this service was given without knowing it. No other service
    /// takes the latter while this one is alive, so it searches for them even without a free slot. Messages without a
    /// slot are released.
    pub(super) async fn reclaim(
        &self,
        broker: &Nooble,
        lease: Duration,
        intake: &dyn Intake<Arc<Message>>,
    ) -> Result<(), Error> {
        let each = self.queues.iter().map(|queue| async move {
            let is_in_doubt = queue.is_in_doubt();
            if is_in_doubt {
                self.find_orphans(broker, queue, intake).await?;
            }
            let most = if is_in_doubt { MOST } else { intake.free() };
            self.reclaim_from(broker, queue, (most.clamp(1, MOST), lease), intake)
                .await
        });
        join_all(each).await.into_iter().collect()
    }

    async fn reclaim_from(
        &self,
        broker: &Nooble,
        queue: &Arc<Queue>,
        (most, lease): (usize, Duration),
        intake: &dyn Intake<Arc<Message>>,
    ) -> Result<(), Error> {
        let from = queue.looks().from.clone();
        let from = from.as_deref().unwrap_or("-");
        let (giving, ages) = (queue.gives(), (lease, self.adopt));
        let taken = broker.reclaim(&self.worker, &queue.source, most, ages, from);
        let taken = taken.await?;
        giving.all_known();
        queue.looks().from = Some(taken.next);
        if !taken.messages.is_empty() {
            let many = taken.messages.len();
            tracing::warn!(many, "messages of dead services reclaimed");
        }
        messages(queue, taken.messages)
            .into_iter()
            .for_each(|message| intake.take(message));
        Ok(())
    }

    /// Runs messages of a list that were delivered to this service when a connection broke: those that it does not
    /// know, and did not know one renewal ago (`suspects`).
    async fn find_orphans(
        &self,
        broker: &Nooble,
        queue: &Arc<Queue>,
        intake: &dyn Intake<Arc<Message>>,
    ) -> Result<(), Error> {
        let giving = queue.gives();
        let given = broker.in_flight(&self.worker, &queue.source).await?;
        giving.all_known();
        let mut unknown = given;
        let mut known = Vec::new();
        intake.each(&mut |message: &Arc<Message>| {
            if Arc::ptr_eq(&message.queue, queue) {
                known.push(Arc::clone(message));
            }
        });
        unknown.retain(|one| {
            let same = |it: &Arc<Message>| it.received.bytes() == one.bytes();
            // Each of two equal messages matches one known message.
            let at = known.iter().position(same);
            at.map(|at| known.swap_remove(at)).is_none()
        });
        let suspects = std::mem::take(&mut queue.looks().suspects);
        let (orphans, now): (Vec<_>, Vec<_>) =
            unknown.into_iter().partition(|one| suspects.contains(one));
        queue.looks().suspects = now;
        for orphan in messages(queue, orphans) {
            tracing::warn!(
                queue = queue.name(),
                "message claimed without a run: its connection broke, or its report was refused"
            );
            intake.take(orphan);
        }
        Ok(())
    }
}

fn messages(queue: &Arc<Queue>, received: Vec<Received>) -> Vec<Arc<Message>> {
    let received = received.into_iter();
    received
        .map(|one| Arc::new(Message::new(queue, one)))
        .collect()
}
