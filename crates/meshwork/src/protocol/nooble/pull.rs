//! Pull: takes messages of one queue while slots are free, waits for them while there are none, and takes over what
//! services that are gone left behind. Queues get slots in turn.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use meshwork_broker::nooble::{MAX_WAIT, Received, Reclaimed};
use meshwork_broker::{Backoff, Error};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, Sleep, sleep};

use super::run::{release, run};
use super::state::{InHand, Queue, State};
use super::waits::Waits;

/// The most messages taken in one call: others share the queue.
const MOST: usize = 32;
/// The most waits under way, if as many slots are free.
const AHEAD: usize = 2;
/// For how long at most nothing is sent that would hold up an answer which comes at once. A handler may hold its thread for
/// longer in its first step, and other slots are free.
const PATIENCE: Duration = Duration::from_millis(10);
/// Between two looks at what is to run again, at most: another process may have put it there.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The shortest time between two looks.
const LOOK_SOON: Duration = Duration::from_millis(5);

/// How the next messages of a queue are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// As many as there are slots: more may be there.
    Receive,
    /// One, when it comes: nothing was left, or what came last came alone.
    Wait,
}

/// Takes messages of one queue.
struct Pull {
    state: Arc<State>,
    queue: Arc<Queue>,
    next: Next,
    waits: Option<Waits<Option<Received>>>,
    /// A message that came alone, until its run is over or takes longer: nothing is sent that would hold up its answer.
    begun: Option<Arc<InHand>>,
    /// When that ends at the latest. Set anew when it is over and not for each message, since a timer costs as much as a call
    /// saves: one that comes early does no harm.
    patience: Pin<Box<Sleep>>,
}

/// Takes and runs messages until the service stops.
pub(super) async fn pull(state: Arc<State>, queue: Arc<Queue>) {
    let mut backoff = Backoff::new();
    let mut pull = Pull {
        state,
        queue,
        next: Next::Receive,
        waits: None,
        begun: None,
        patience: Box::pin(sleep(PATIENCE)),
    };
    let stop = pull.state.stop.clone();
    while !stop.is_cancelled() {
        match pull.once().await {
            Ok(true) => {
                backoff = Backoff::new();
                pull.state.setup.broker.outages().succeeded("claim");
            }
            // A server that has no room says so when it is asked to wait.
            Ok(false) => {}
            Err(error) => {
                (pull.next, pull.waits, pull.begun) = (Next::Receive, None, None);
                pull.queue.doubt();
                pull.state.failed("claim", "claim", &error);
                tokio::select! {
                    () = stop.cancelled() => break,
                    () = backoff.wait() => {}
                }
            }
        }
    }
    pull.end().await;
}

impl Pull {
    fn under_way(&self) -> usize {
        self.waits.as_ref().map_or(0, Waits::len)
    }

    /// Takes what is there, or waits for the next message, once a slot is free. Whether one came, or a wait went well.
    async fn once(&mut self) -> Result<bool, Error> {
        if self.under_way() == 0 {
            let most = match self.next {
                Next::Receive => MOST,
                // Who waits gives it back, and took none that another queue could have had.
                Next::Wait => 1,
            };
            let Some(free) = self.state.free(&self.queue, most).await else {
                return Ok(false);
            };
            if self.next == Next::Receive {
                return self.receive(free).await;
            }
        }
        if self.begun.is_none() && self.next == Next::Wait {
            self.send().await?;
        }
        if let Some(received) = self.came().await? {
            self.start(received);
        }
        Ok(true)
    }

    /// Takes as many as there are slots. False if none came.
    async fn receive(&mut self, free: Vec<OwnedSemaphorePermit>) -> Result<bool, Error> {
        let setup = &self.state.setup;
        let (slots, source, known) = (free.len(), &self.queue.source, self.queue.known_for());
        let taken = setup.broker.receive(&setup.worker, source, slots).await?;
        let taken = known.in_time("receive", taken, Vec::is_empty)?;
        self.state.meter.took(taken.len());
        let some_came = !taken.is_empty();
        if !some_came {
            self.next = Next::Wait;
        }
        start(&self.state, &self.queue, taken, free);
        Ok(some_came)
    }

    /// Sends as many waits as slots are free, of which none has one: another queue may have something to run in it.
    async fn send(&mut self) -> Result<(), Error> {
        let (state, queue) = (&self.state, &self.queue);
        let (broker, source) = (&state.setup.broker, &queue.source);
        let waits = match &mut self.waits {
            Some(waits) if !state.is_known(queue) && waits.len() > 0 => return Ok(()),
            Some(waits) => waits,
            none => {
                broker.prepare(source).await?;
                none.insert(Waits::open(broker).await?)
            }
        };
        let most = state.slots.available_permits().clamp(1, AHEAD);
        let wait = state.beat().min(MAX_WAIT) / AHEAD as u32;
        while waits.len() < most {
            let before = wait * waits.len() as u32;
            let (state, source) = (Arc::clone(state), Arc::clone(source));
            let known = queue.known_for();
            waits.push(|broker, blocking| async move {
                let worker = &state.setup.worker;
                let came = broker
                    .wait(&blocking, worker, &source, wait, before)
                    .await?;
                known.in_time("wait", came, Option::is_none)
            });
        }
        Ok(())
    }

    /// The next message. None if none came in its time, if it is time to send the next wait, or to stop.
    async fn came(&mut self) -> Result<Option<Received>, Error> {
        let came = async {
            match &mut self.waits {
                Some(waits) => waits.next().await,
                None => std::future::pending().await,
            }
        };
        let begun = async {
            match &self.begun {
                Some(in_hand) => in_hand.begun.notified().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            came = came => return came,
            () = begun => {}
            () = &mut self.patience, if self.begun.is_some() => {}
            () = self.state.stop.cancelled() => return Ok(None),
        }
        self.begun = None;
        Ok(None)
    }

    /// Runs a message that was waited for.
    fn start(&mut self, received: Received) {
        self.state.meter.took(1);
        let in_hand = start_soon(&self.state, &self.queue, received);
        let alone = self.state.running.len() <= 1;
        self.next = if alone { Next::Wait } else { Next::Receive };
        self.begun = alone.then_some(in_hand);
        let now = Instant::now();
        if self.begun.is_some() && self.patience.deadline() <= now {
            self.patience.as_mut().reset(now + PATIENCE);
        }
    }

    /// The service stops: what came meanwhile is handed back.
    async fn end(&mut self) {
        let Some(waits) = &mut self.waits else {
            return;
        };
        let mut came = Vec::new();
        if let Err(error) = waits.end(|received| came.extend(received)).await {
            tracing::warn!(%error, "what came last, another service takes over");
        }
        for received in came {
            let in_hand = self.state.take(received);
            release(&self.state, &in_hand).await;
            self.state.done(&in_hand);
        }
    }
}

fn start(
    state: &Arc<State>,
    queue: &Arc<Queue>,
    taken: Vec<Received>,
    free: Vec<OwnedSemaphorePermit>,
) {
    for (received, slot) in taken.into_iter().zip(free) {
        // Whoever stops the service may have waited for its runs already.
        let slot = (!state.stop.is_cancelled()).then_some(slot);
        let slot = std::future::ready(slot);
        spawn(state, queue, state.take(received), slot);
    }
}

/// Runs a message once it has a slot. If other messages have taken them all and keep them, another service may have one.
fn start_soon(state: &Arc<State>, queue: &Arc<Queue>, received: Received) -> Arc<InHand> {
    let in_hand = state.take(received);
    let shared = Arc::clone(state);
    let slot = async move {
        let slot = tokio::time::timeout(shared.beat(), shared.slot()).await;
        slot.unwrap_or(None)
    };
    spawn(state, queue, Arc::clone(&in_hand), slot);
    in_hand
}

/// Runs a message when it has a slot; if it gets none, it is handed back.
fn spawn<S>(state: &Arc<State>, queue: &Arc<Queue>, in_hand: Arc<InHand>, slot: S)
where
    S: Future<Output = Option<OwnedSemaphorePermit>> + Send + 'static,
{
    let (shared, queue) = (Arc::clone(state), Arc::clone(queue));
    state.running.spawn(async move {
        let _begun = in_hand.begins();
        let slot = slot.await;
        match slot {
            // Boxed, since the runtime copies what it is given.
            Some(_) => Box::pin(run(&shared, &in_hand, &queue)).await,
            None => _ = Box::pin(release(&shared, &in_hand)).await,
        }
        shared.done(&in_hand);
        drop(slot);
    });
}

/// What takes over the messages of one queue.
struct TakeOver {
    state: Arc<State>,
    queue: Arc<Queue>,
    /// Where in a stream it looks next.
    from: String,
    /// What this service knew nothing of when it last looked.
    suspects: Vec<Received>,
}

/// Takes over what services that are gone had in hand, and runs it.
pub(super) async fn take_over(state: Arc<State>, queue: Arc<Queue>) {
    let mut take_over = TakeOver {
        from: "-".to_owned(),
        suspects: Vec::new(),
        state,
        queue,
    };
    let (stop, beat) = (take_over.state.stop.clone(), take_over.state.beat());
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = sleep(beat) => {}
        }
        if take_over.queue.is_in_doubt() {
            Box::pin(take_over.find_strays()).await;
        }
        let Some(free) = take_over.slots().await else {
            return;
        };
        let taken = take_over.reclaim(free.len()).await;
        start(&take_over.state, &take_over.queue, taken, free);
    }
}

impl TakeOver {
    /// Slots, once some are free; None when the service stops. Other services leave to one that is there what it was given,
    /// so it looks for that meanwhile: what it has no slot for goes back to them.
    async fn slots(&mut self) -> Option<Vec<OwnedSemaphorePermit>> {
        let (state, queue) = (Arc::clone(&self.state), Arc::clone(&self.queue));
        // Not given up in between: it would lose its place among those who wait for a slot.
        let free = state.free(&queue, MOST);
        tokio::pin!(free);
        loop {
            tokio::select! {
                free = &mut free => return free,
                () = sleep(state.beat()) => {}
            }
            if queue.is_in_doubt() {
                Box::pin(self.look_without_slots()).await;
            }
        }
    }

    async fn look_without_slots(&mut self) {
        self.find_strays().await;
        for stray in self.reclaim(MOST).await {
            start_soon(&self.state, &self.queue, stray);
        }
    }

    /// What services that are gone had in hand, and of a stream what this one was given without its knowledge.
    async fn reclaim(&mut self, most: usize) -> Vec<Received> {
        let (setup, queue) = (&self.state.setup, &self.queue);
        let (broker, ages, known) = (
            &setup.broker,
            (setup.config.lease, setup.adopt),
            queue.known_for(),
        );
        let taken = broker.reclaim(&setup.worker, &queue.source, most, ages, &self.from);
        let in_time =
            |taken| known.in_time("reclaim", taken, |it: &Reclaimed| it.messages.is_empty());
        match taken.await.and_then(in_time) {
            Ok(taken) => {
                setup.broker.outages().succeeded("reclaim");
                self.from = taken.next;
                if !taken.messages.is_empty() {
                    let many = taken.messages.len();
                    tracing::warn!(many, "took over what nobody renewed");
                }
                taken.messages
            }
            Err(error) => {
                queue.doubt();
                self.state.failed("claim", "reclaim", &error);
                Vec::new()
            }
        }
    }

    /// Runs what was given to this service of a list when a connection broke: what it knows nothing of, now and a renewal
    /// ago, when these were the suspects.
    async fn find_strays(&mut self) {
        let (state, queue) = (&self.state, &self.queue);
        let (setup, known) = (&state.setup, queue.known_for());
        let given = setup.broker.in_hand(&setup.worker, &queue.source).await;
        let given = given.and_then(|given| known.in_time("in_hand", given, Vec::is_empty));
        let Ok(given) = setup.broker.outages().told("in_hand", given) else {
            queue.doubt();
            return;
        };
        let (strays, now): (Vec<_>, Vec<_>) = state
            .unknown(&queue.source, given)
            .into_iter()
            .partition(|one| self.suspects.contains(one));
        for stray in strays {
            tracing::warn!(
                queue = queue.source.queue(),
                "in hand without a run: it came when a connection broke, or its report was refused"
            );
            start_soon(state, queue, stray);
        }
        self.suspects = now;
    }
}

/// Puts back what failed when its pause is over.
pub(super) async fn promote(state: Arc<State>, queue: Arc<Queue>) {
    loop {
        let broker = &state.setup.broker;
        let promoted = broker.promote(&queue.source).await;
        let next = match broker.outages().told("promote", promoted) {
            Ok((_, next)) => next.unwrap_or(LOOK_EVERY),
            Err(_) => LOOK_EVERY,
        };
        tokio::select! {
            () = state.stop.cancelled() => return,
            () = sleep(next.clamp(LOOK_SOON, LOOK_EVERY)) => {}
        }
    }
}

/// Between two looks at what a stream keeps that is done with.
const TRIM_EVERY: Duration = Duration::from_secs(10);
/// For how long a stream keeps what workers of another make acknowledged: somebody may want to look at it.
const KEEP: Duration = Duration::from_secs(600);

/// Deletes what is done with from a stream, and who is gone from its group.
pub(super) async fn trim(state: Arc<State>, queue: Arc<Queue>) {
    // Who waits is not heard of while it does.
    let gone = state.setup.config.lease + MAX_WAIT;
    loop {
        let broker = &state.setup.broker;
        let deleted = broker.trim(&queue.source, KEEP, gone).await;
        let pause = match broker.outages().told("trim", deleted) {
            Ok(many) if many > 0 => LOOK_SOON,
            _ => TRIM_EVERY,
        };
        tokio::select! {
            () = state.stop.cancelled() => return,
            () = sleep(pause) => {}
        }
    }
}
