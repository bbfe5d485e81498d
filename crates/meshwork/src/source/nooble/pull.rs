//! Pull: takes messages of one queue while slots are free, waits for them while there are none, and takes over what
//! services that are gone left behind. Queues get slots in turn.

use std::sync::Arc;
use std::time::Duration;

use meshwork_broker::nooble::{MAX_WAIT, Received};
use meshwork_broker::{Backoff, Error, Parking};
use tokio::sync::OwnedSemaphorePermit;

use super::run::{release, run};
use super::state::{Queue, State};

/// The most messages taken in one call: others share the queue.
const MOST: usize = 32;
/// How long a wait that is told to end may take before the server is asked once more.
const UNPARK_AGAIN: Duration = Duration::from_millis(20);
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

/// Takes and runs messages until the service stops.
pub(super) async fn pull(state: Arc<State>, queue: Queue) {
    let mut backoff = Backoff::new();
    let (mut parking, mut next) = (None, Next::Receive);
    while !state.stop.is_cancelled() {
        tokio::select! {
            biased;
            () = state.known() => {}
            () = state.stop.cancelled() => return,
        }
        match once(&state, &queue, &mut parking, next).await {
            Ok(then) => (backoff, next) = (Backoff::new(), then),
            Err(error) => {
                (parking, next) = (None, Next::Receive);
                queue.doubt();
                tracing::warn!(%error, queue = queue.source.queue(), "nothing was taken; trying again");
                tokio::select! {
                    () = state.stop.cancelled() => return,
                    () = backoff.wait() => {}
                }
            }
        }
    }
}

/// Takes what is there, or waits for the next message, once a slot is free. Returns how to go on.
async fn once(
    state: &Arc<State>,
    queue: &Queue,
    parking: &mut Option<Parking>,
    next: Next,
) -> Result<Next, Error> {
    let setup = &state.setup;
    let most = match next {
        Next::Receive => MOST,
        // Who waits gives it back, and took none that another queue could have had.
        Next::Wait => 1,
    };
    let Some(free) = state.free(most).await else {
        return Ok(next);
    };
    if next == Next::Receive {
        let (slots, source) = (free.len(), &queue.source);
        let taken = setup.broker.receive(&setup.worker, source, slots).await?;
        let none = taken.is_empty();
        start(state, queue, taken, free);
        return Ok(if none { Next::Wait } else { Next::Receive });
    }
    // Who waits has no slot: another queue may have something to run in it.
    drop(free);
    let Some(received) = wait(state, queue, parking).await? else {
        return Ok(Next::Wait);
    };
    let in_hand = state.take(received);
    match state.free(1).await {
        Some(slot) => spawn(state, queue.callbacks, in_hand, slot),
        None => {
            release(state, &in_hand).await;
            state.done(&in_hand);
        }
    }
    // Its run goes first: asking for the next message, or looking for more, would hold up the answer of one that comes
    // alone.
    tokio::task::yield_now().await;
    let alone = state.running.len() <= 1;
    Ok(if alone { Next::Wait } else { Next::Receive })
}

fn start(state: &Arc<State>, queue: &Queue, taken: Vec<Received>, free: Vec<OwnedSemaphorePermit>) {
    for (received, slot) in taken.into_iter().zip(free) {
        spawn(state, queue.callbacks, state.take(received), vec![slot]);
    }
}

fn spawn(
    state: &Arc<State>,
    callbacks: bool,
    in_hand: super::state::InHand,
    slot: Vec<OwnedSemaphorePermit>,
) {
    let shared = Arc::clone(state);
    state.running.spawn(async move {
        run(&shared, &in_hand, callbacks).await;
        shared.done(&in_hand);
        drop(slot);
    });
}

/// One wait. When the service stops, the server is asked to end it, and what came meanwhile is seen.
async fn wait(
    state: &State,
    queue: &Queue,
    parking: &mut Option<Parking>,
) -> Result<Option<Received>, Error> {
    let setup = &state.setup;
    if parking.is_none() {
        setup.broker.prepare(&queue.source).await?;
        *parking = Some(setup.broker.parking().await?);
    }
    let Some(parking) = parking else {
        return Ok(None);
    };
    let wait = setup
        .broker
        .wait(parking, &setup.worker, &queue.source, state.beat());
    tokio::pin!(wait);
    tokio::select! {
        came = &mut wait => return came,
        () = state.stop.cancelled() => {}
    }
    loop {
        if let Err(error) = setup.broker.unpark(parking).await {
            tracing::debug!(%error, "the wait ends by itself");
        }
        // The wait may have reached the server only after the word to end it.
        if let Ok(came) = tokio::time::timeout(UNPARK_AGAIN, &mut wait).await {
            return came;
        }
    }
}

/// Takes over what services that are gone had in hand, and runs it.
pub(super) async fn take_over(state: Arc<State>, queue: Queue) {
    let setup = &state.setup;
    let (mut from, mut suspects) = ("-".to_owned(), Vec::new());
    loop {
        tokio::select! {
            () = state.stop.cancelled() => return,
            () = tokio::time::sleep(state.beat()) => {}
        }
        if queue.is_in_doubt() {
            suspects = Box::pin(find_strays(&state, &queue, suspects)).await;
        }
        let Some(free) = state.free(MOST).await else {
            return;
        };
        let (broker, ages) = (&setup.broker, (setup.lease, setup.adopt));
        let taken = broker.reclaim(&setup.worker, &queue.source, free.len(), ages, &from);
        match taken.await {
            Ok(taken) => {
                from = taken.next;
                if !taken.messages.is_empty() {
                    let many = taken.messages.len();
                    tracing::warn!(many, "took over what a service that is gone left behind");
                }
                start(&state, &queue, taken.messages, free);
            }
            Err(error) => {
                queue.doubt();
                tracing::warn!(%error, "nothing was taken over; trying again");
            }
        }
    }
}

/// Runs what was given to this service when a connection broke: what it knows nothing of, now and a renewal ago, when
/// these were the messages. Returns those of now.
async fn find_strays(state: &Arc<State>, queue: &Queue, before: Vec<Received>) -> Vec<Received> {
    let setup = &state.setup;
    let given = match setup.broker.in_hand(&setup.worker, &queue.source).await {
        Ok(given) => given,
        Err(error) => {
            queue.doubt();
            tracing::warn!(%error, "it is not known what came when the connection broke; trying again");
            return before;
        }
    };
    let (strays, now): (Vec<_>, Vec<_>) = state
        .unknown(&queue.source, given)
        .into_iter()
        .partition(|one| before.contains(one));
    for stray in strays {
        tracing::warn!(
            queue = queue.source.queue(),
            "it came when the connection broke"
        );
        let Some(slot) = state.free(1).await else {
            break;
        };
        spawn(state, queue.callbacks, state.take(stray), slot);
    }
    now
}

/// Puts back what failed when its pause is over.
pub(super) async fn promote(state: Arc<State>, queue: Queue) {
    loop {
        let next = match state.setup.broker.promote(&queue.source).await {
            Ok((_, next)) => next.unwrap_or(LOOK_EVERY),
            Err(error) => {
                tracing::warn!(%error, "what is to run again was not looked at; trying again");
                LOOK_EVERY
            }
        };
        tokio::select! {
            () = state.stop.cancelled() => return,
            () = tokio::time::sleep(next.clamp(LOOK_SOON, LOOK_EVERY)) => {}
        }
    }
}

/// Between two looks at what a stream keeps that is done with.
const TRIM_EVERY: Duration = Duration::from_secs(10);
/// For how long a stream keeps what workers of another make acknowledged: somebody may want to look at it.
const KEEP: Duration = Duration::from_secs(600);

/// Deletes what is done with from a stream, and who is gone from its group.
pub(super) async fn trim(state: Arc<State>, queue: Queue) {
    // Who waits is not heard of while it does.
    let gone = state.setup.lease + MAX_WAIT;
    loop {
        let deleted = state.setup.broker.trim(&queue.source, KEEP, gone).await;
        if let Err(error) = &deleted {
            tracing::warn!(%error, "a stream was not trimmed; trying again");
        }
        let pause = match deleted {
            Ok(many) if many > 0 => LOOK_SOON,
            _ => TRIM_EVERY,
        };
        tokio::select! {
            () = state.stop.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
    }
}
