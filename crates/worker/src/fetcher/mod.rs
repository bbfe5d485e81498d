//! Fetcher: exchanges results for jobs, and gives each job to the spawner. A ready result is sent at once unless a call
//! is in flight. Later results go with the next call, which also claims for the free slots. So batches grow with the load.
//! [`claims`] has the rules of a call, [`prefetched`] the claimed jobs that wait for a slot.

mod arrivals;
mod batch;
mod claims;
mod prefetched;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{StreamExt, poll};
use meshwork_broker::{Backoff, Error};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::capacity::demand::BlockedQueues;
use crate::capacity::prefetch::Depth;
use crate::capacity::slots::Seat;
use crate::completer::log;
use crate::config::Prefetch;
use crate::engine::{Engine, Registered};
use crate::exchange::{Completed, Exchange, ExchangeEvent, Exchanged, FetchRequest};
use crate::fetched::Fetched;
use crate::protocol::Protocol;
use crate::release::release_all;
use crate::spawner::{Placed, Spawner, Starter};
use crate::task::{Completion, LeasedJob, RunEvent};

use arrivals::TimedClaim;
use batch::count;
use meshwork_runtime::lease::Moment;
use prefetched::Prefetched;

/// Interval of claims without arrivals, which find ids whose wakeup was lost and queues without a blocking read. Also
/// the interval of reads of all prefetch lists: an id may be in a list whose blocking read broke.
const SAFETY: Duration = Duration::from_secs(1);
/// Greatest number of calls in flight: while the server handles one, the worker uses the answer of the other.
const MOST_CALLS: usize = 2;
/// Number of parts of the slots. Each call carries the results of at most one part, and a second call is sent when it
/// has as many. So the server works on one part while the worker runs the other.
const PARTS: usize = MOST_CALLS;
/// Number of claims without a job in a row after which found ids are claimed once per [`SAFETY`] only. A key of another
/// type looks like a queue.
const FRUITLESS: usize = 10;

/// Shutdown signals of the loop.
pub(super) struct ShutdownTokens {
    /// Cancelled when unreported jobs were released.
    pub(super) released: CancellationToken,
    /// Fires when no more jobs will come.
    pub(super) quiet: oneshot::Sender<()>,
}

/// Claims, starts and reports jobs until the engine stops and every job in flight is reported.
pub(super) async fn fetch<P: Protocol>(
    engine: Arc<Engine<P>>,
    starter: Arc<Starter<P>>,
    events: mpsc::UnboundedReceiver<RunEvent<P::Job>>,
    tokens: ShutdownTokens,
) {
    // Workers that share slots would take them from one another.
    let prefetch = match engine.protocol.prefetches() && engine.seat.is_none() {
        true => engine.config.prefetch,
        false => Prefetch::Off,
    };
    let fetcher = Fetcher {
        registered: engine.registered.subscribe(),
        depth: Depth::new(prefetch, engine.config.concurrency),
        engine,
        spawner: Spawner::new(starter),
        blocked: BlockedQueues::default(),
        prefetched: Prefetched::default(),
        in_flight: 0,
        reserved: 0,
        ready: VecDeque::new(),
        flying: FuturesUnordered::new(),
        calls: 0,
        claims: 0,
        releases: 0,
        rounds: 0,
        resting: false,
        backoff: Backoff::new(),
        empty: false,
        full: false,
        arrivals: BTreeSet::new(),
        looked: Instant::now(),
        fruitless: 0,
        waits_for_turn: false,
        swept: None,
        timed: None,
        stopping: false,
    };
    fetcher.run(events, tokens).await;
}

struct Fetcher<P: Protocol> {
    engine: Arc<Engine<P>>,
    registered: watch::Receiver<Option<Registered<P::Queues>>>,
    spawner: Spawner<P>,
    blocked: BlockedQueues,
    prefetched: Prefetched<P::Job>,
    depth: Depth,
    /// Prefetched and running jobs, and results that are in no call in flight.
    in_flight: usize,
    /// Slots that calls in flight may need.
    reserved: usize,
    /// Results to be stored.
    ready: VecDeque<Completion<P::Job>>,
    flying: FuturesUnordered<BoxFuture<'static, ExchangeEvent<P::Job>>>,
    /// Number of calls in flight; of those, the ones that claim, and the ones that release jobs.
    calls: usize,
    claims: usize,
    releases: usize,
    /// Number of claims that returned jobs.
    rounds: usize,
    /// True during the pause after a failed call; nothing is sent.
    resting: bool,
    backoff: Backoff,
    /// True if the last claim returned fewer jobs than there were free slots.
    empty: bool,
    /// True if the last claim returned as many jobs as requested.
    full: bool,
    /// Queues from which ids have arrived since the last claim was sent.
    arrivals: BTreeSet<String>,
    /// Time of the answer to the last claim.
    looked: Instant,
    /// Number of claims in a row that returned nothing.
    fruitless: usize,
    /// True if a claim waits for a slot.
    waits_for_turn: bool,
    /// Time of the last answer that included the prefetch lists of all queues.
    swept: Option<Instant>,
    /// The last claim.
    timed: Option<TimedClaim>,
    stopping: bool,
}

impl<P: Protocol> Fetcher<P> {
    async fn run(
        mut self,
        mut events: mpsc::UnboundedReceiver<RunEvent<P::Job>>,
        tokens: ShutdownTokens,
    ) {
        let (engine, mut quiet) = (Arc::clone(&self.engine), Some(tokens.quiet));
        let wake = tokio::time::sleep(Duration::ZERO);
        tokio::pin!(wake);
        loop {
            if self.is_worth_a_look() {
                tokio::task::yield_now().await;
            }
            while let Ok(event) = events.try_recv() {
                self.ended(event);
            }
            self.start_prefetched();
            self.waits_for_turn = false;
            while let Some(call) = self.next() {
                self.send(call).await;
            }
            self.start_prefetched();
            if let Some(seat) = &engine.seat {
                seat.settle(self.in_flight + self.reserved, self.waits_for_turn);
            }
            if self.stopping && self.claims + self.releases + self.prefetched.len() == 0 {
                // The receiver is gone if the worker was dropped.
                let _ = quiet.take().map(|quiet| quiet.send(()));
                if self.in_flight + self.calls == 0 {
                    break;
                }
            }
            engine.demand.tell(self.is_hungry());
            let at = self
                .wakes()
                .into_iter()
                .chain(self.prefetched.until())
                .min();
            // A timer costs as much as a call saves, and waking early does no harm.
            if let Some(at) = at.filter(|at| *at < wake.deadline() || wake.is_elapsed()) {
                wake.as_mut().reset(at);
            }
            tokio::select! {
                Some(landed) = self.flying.next() => self.landed(landed),
                Some(event) = events.recv() => self.ended(event),
                arrived = engine.demand.arrivals() => self.arrivals.extend(arrived),
                () = &mut wake, if at.is_some() => {}
                () = engine.demand.ids() => self.seen(),
                () = turn(engine.seat.as_ref()) => {}
                // The sender is in the engine.
                _ = self.registered.changed(), if P::PUSH_DELIVERY && !self.stopping => {}
                () = engine.stop.cancelled(), if !self.stopping => self.stopping = true,
                () = tokens.released.cancelled(), if self.resting && self.stopping => self.give_up(),
            }
        }
        events.close();
        while let Ok(event) = events.try_recv() {
            if let RunEvent::Arrived(arrival) = event {
                self.spawner.starter.release_arrival(arrival);
            }
        }
    }

    /// Returns true if other runs may end soon, so that their results can share a call.
    fn is_worth_a_look(&self) -> bool {
        self.calls < MOST_CALLS && !self.ready.is_empty() && self.in_flight > self.ready.len()
    }

    fn ended(&mut self, event: RunEvent<P::Job>) {
        match event {
            RunEvent::TakenIn => self.in_flight += 1,
            RunEvent::Arrived(arrival) => self.arrived(arrival),
            RunEvent::Completed(ran) => {
                self.depth.ran(ran.took);
                self.engine.in_flight.ended(ran.task.seq);
                self.ready.push_back(ran);
            }
            RunEvent::Settled(task, took) => {
                if let Some(took) = took {
                    self.depth.ran(took);
                }
                self.settled(&task);
            }
        }
    }

    fn settled(&mut self, task: &LeasedJob<P::Job>) {
        self.in_flight -= 1;
        self.unblock(P::queue(&task.job), Instant::now());
        self.engine.in_flight.remove(task.seq);
    }

    /// Tries a queue again, since an ended job may have freed a slot.
    fn unblock(&mut self, queue: &str, now: Instant) {
        let protocol = &self.engine.protocol;
        let same = |other: &str| protocol.share_limits(other, queue);
        self.blocked.unblock(now, same);
    }

    /// Sends a call, and polls it once so that it is written before the next one. The server answers commands of one
    /// read together.
    async fn send(&mut self, call: Exchange<P::Job>) {
        self.in_flight -= call.results.len();
        self.reserved += call.slots();
        self.calls += 1;
        self.claims += usize::from(call.fetch.is_some());
        let (engine, call) = (Arc::clone(&self.engine), Box::new(call));
        self.flying.push(Box::pin(async move {
            let (protocol, config) = (&engine.protocol, &engine.config);
            let exchanged = protocol.complete_and_claim(config, &call.results, call.fetch.as_ref());
            let exchanged = exchanged.await;
            ExchangeEvent::Ended(call, exchanged)
        }));
        if let Poll::Ready(Some(landed)) = poll!(self.flying.next()) {
            self.landed(landed);
        }
        tokio::task::yield_now().await;
    }

    fn landed(&mut self, event: ExchangeEvent<P::Job>) {
        match event {
            ExchangeEvent::Ended(call, exchanged) => self.exchanged(*call, exchanged),
            ExchangeEvent::Released => self.releases -= 1,
            ExchangeEvent::Rested(backoff) => {
                self.resting = false;
                self.backoff = backoff;
            }
        }
    }

    fn exchanged(&mut self, call: Exchange<P::Job>, exchanged: Exchanged<P::Job>) {
        self.calls -= 1;
        self.claims -= usize::from(call.fetch.is_some());
        self.reserved -= call.slots();
        let Exchange {
            results,
            fetch,
            sent,
            sent_at,
        } = call;
        if fetch.is_some() {
            self.depth.called(sent.elapsed());
        }
        let together = results.len() > 1 || fetch.is_some();
        match exchanged.completed {
            Ok(completed) => {
                self.completed(results, &completed);
                match (fetch, exchanged.fetched) {
                    (Some(fetch), Some(Ok(fetched))) => {
                        self.succeeded();
                        self.fetched(&fetch, sent_at, fetched);
                    }
                    (Some(fetch), Some(Err(error))) => {
                        self.failed("claim", &error);
                        self.unfetched(fetch);
                    }
                    (Some(fetch), None) => self.unfetched(fetch),
                    (None, _) => self.succeeded(),
                }
            }
            Err(error) => {
                self.failed("report", &error);
                self.unreported(results, &error, together);
                if let Some(fetch) = fetch {
                    self.unfetched(fetch);
                }
            }
        }
    }

    fn succeeded(&mut self) {
        if !self.resting {
            self.backoff = Backoff::new();
        }
        self.engine
            .protocol
            .outages()
            .succeeded("complete_and_claim");
    }

    fn completed(&mut self, results: Vec<Completion<P::Job>>, completed: &[Completed]) {
        if !results.is_empty() {
            self.engine.meter.heard();
        }
        for (ran, completed) in results.into_iter().zip(completed) {
            log(*completed, &P::id(&ran.task.job));
            self.engine.in_flight.remove(ran.task.seq);
        }
    }

    fn fetched(&mut self, request: &FetchRequest, sent: Moment, fetched: Fetched<P::Job>) {
        let engine = Arc::clone(&self.engine);
        count(&engine, &fetched);
        let got = fetched.jobs.len();
        self.looked = Instant::now();
        if request.sweep {
            self.swept = Some(self.looked);
        }
        self.rounds = self.rounds.wrapping_add(usize::from(got > 0));
        self.blocked.update(
            &engine.demand,
            &request.skipped,
            fetched.blocked,
            self.looked,
        );
        self.fruitless = match got + fetched.dropped {
            0 => self.fruitless.saturating_add(1),
            _ => 0,
        };
        if request.want > 0 {
            self.full = got >= request.want || fetched.more;
            self.empty = got < request.want - request.ahead && !fetched.more;
        }
        self.timed = Some(TimedClaim {
            sent,
            at_ms: fetched.at_ms,
        });
        self.place(fetched.jobs, request.until, usize::MAX);
        engine.demand.claimed();
    }

    /// Starts claimed jobs, keeps at most `keeps` for slots that become free, and releases the others. After `until`,
    /// their leases may have expired.
    fn place(&mut self, jobs: Vec<P::Job>, until: Moment, keeps: usize) {
        let got = jobs.len();
        let mut placed = if got == 0 || self.engine.config.clock.now() < until {
            self.spawner.start(jobs, until, self.room())
        } else {
            // The process was suspended, or the answer was late: other workers may have started these jobs.
            tracing::warn!(jobs = got, "jobs released: claim answered after its lease");
            Placed::left(jobs)
        };
        let kept = keeps.min(placed.waiting.len());
        placed.left.extend(placed.waiting.split_off(kept));
        self.in_flight += got - placed.left.len();
        self.keep(placed.waiting, until);
        if !placed.left.is_empty() {
            self.release(placed.left);
        }
    }

    /// Releases unwanted jobs before the next claim. The last one goes first, so that they keep their order.
    fn release(&mut self, left: Vec<P::Job>) {
        self.releases += 1;
        let engine = Arc::clone(&self.engine);
        self.flying.push(Box::pin(async move {
            let protocol = &engine.protocol;
            let release = |job: P::Job| async move { protocol.release(&job).await };
            release_all(left.into_iter().rev(), engine.config.lease, release).await;
            ExchangeEvent::Released
        }));
    }

    /// Begins a pause after a failed call.
    fn failed(&mut self, operation: &'static str, error: &Error) {
        self.engine.failed((operation, "complete_and_claim"), error);
        if !std::mem::replace(&mut self.resting, true) {
            let mut backoff = std::mem::take(&mut self.backoff);
            self.flying.push(Box::pin(async move {
                backoff.wait().await;
                ExchangeEvent::Rested(backoff)
            }));
        }
    }

    /// Puts results back that were not stored. After a permanent refusal each is sent alone.
    fn unreported(&mut self, results: Vec<Completion<P::Job>>, error: &Error, together: bool) {
        let apart = !error.is_repeated() && together;
        for mut ran in results.into_iter().rev() {
            if !apart && !ran.repeats(error, &P::id(&ran.task.job)) {
                self.engine.in_flight.remove(ran.task.seq);
                continue;
            }
            self.in_flight += 1;
            ran.alone |= apart;
            self.ready.push_front(ran);
        }
    }

    /// Records a claim without an answer. If it claimed jobs, they return when their leases expire.
    fn unfetched(&mut self, request: FetchRequest) {
        self.arrivals.extend(request.arrivals);
        self.empty = false;
    }

    /// Drops unreported jobs, since their leases have expired.
    fn give_up(&mut self) {
        while let Some(ran) = self.ready.pop_front() {
            self.in_flight -= 1;
            self.engine.in_flight.remove(ran.task.seq);
        }
        self.resting = false;
    }
}

/// Waits for the turn of an engine that shares its slots.
async fn turn(seat: Option<&Seat>) {
    match seat {
        Some(seat) => seat.turn().await,
        None => std::future::pending().await,
    }
}
