//! Take: messages that are there, those that are waited for, and those that services that are gone left behind.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::join_all;
use meshwork_broker::nooble::{Nooble, Received};
use meshwork_broker::{BlockingConn, Error};

use super::message::Message;
use super::queue::Queue;
use super::state::NoobleProtocol;
use crate::worker::exchange::{FetchRequest, Fetched};
use crate::worker::protocol::Intake;

/// The most messages taken in one call: others share the queue.
const MOST: usize = 32;
/// So many queues in which nothing was found last are looked at in one claim, in turn: there may be a hundred, and while
/// slots are free each is waited on.
const LOOKS: usize = 2;
/// Time between two claims from a queue that cannot be taken from.
const REFUSED: Duration = Duration::from_secs(1);

impl NoobleProtocol {
    /// Takes what is there, from one queue after the other.
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
                // Reported when it fails again.
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
            // What is only away for now may have more.
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

    /// Takes over the messages of services that are gone, and those that this one was given without its knowledge. Other services leave to one that is there what it was given, so it looks for that also when it is full;
    /// what it has no slot for goes back to them.
    pub(super) async fn take_over(
        &self,
        broker: &Nooble,
        lease: Duration,
        intake: &dyn Intake<Arc<Message>>,
    ) -> Result<(), Error> {
        let each = self.queues.iter().map(|queue| async move {
            let is_in_doubt = queue.is_in_doubt();
            if is_in_doubt {
                self.find_strays(broker, queue, intake).await?;
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
            tracing::warn!(many, "took over what nobody renewed");
        }
        messages(queue, taken.messages)
            .into_iter()
            .for_each(|message| intake.take(message));
        Ok(())
    }

    /// Runs what was given to this service of a list when a connection broke: what it knows nothing of, now and a renewal
    /// ago, when these were the suspects.
    async fn find_strays(
        &self,
        broker: &Nooble,
        queue: &Arc<Queue>,
        intake: &dyn Intake<Arc<Message>>,
    ) -> Result<(), Error> {
        let giving = queue.gives();
        let given = broker.in_hand(&self.worker, &queue.source).await?;
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
            // Of two that are alike, each stands for one.
            let at = known.iter().position(same);
            at.map(|at| known.swap_remove(at)).is_none()
        });
        let suspects = std::mem::take(&mut queue.looks().suspects);
        let (strays, now): (Vec<_>, Vec<_>) =
            unknown.into_iter().partition(|one| suspects.contains(one));
        queue.looks().suspects = now;
        for stray in messages(queue, strays) {
            tracing::warn!(
                queue = queue.name(),
                "in hand without a run: it came when a connection broke, or its report was refused"
            );
            intake.take(stray);
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
