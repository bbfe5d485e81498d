//! Pull: exchanges results for jobs while there are any, and hands each job to a task of its own. Batches make
//! themselves: a result that is ready goes out at once unless a call is under way, and what becomes ready
//! meanwhile goes with the next one, which claims for the slots that are free by then.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use meshwork_broker::{Backoff, Claimed, Finished, Taken};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Setup;
use super::appetite::{Appetite, Holds};
use super::call::{self, Asked, Call, Landed, Told};
use super::held::Held;
use super::lists::{Order, Turn, base_of};
use super::report::Ran;
use super::slot::Ended;
use super::start::Starter;
use crate::worker::release::hand_back;

/// Between two claims while nothing comes: what no wake-up told of is found then, and what came to a list
/// that no connection waits on. Between two looks into all feeds too: into one of them an id may have come
/// whose wait broke off before it told so.
const SAFETY: Duration = Duration::from_secs(1);
/// Calls under way at once: while the server does one, the worker makes use of the last.
const MOST_CALLS: usize = 2;
/// A second call is worth its cost for so much of what the worker runs at once: a half.
const SECOND_CALL: usize = 2;
/// The most that the results of one call take, in bytes: others wait while the server reads it.
const MOST_BYTES: usize = 4 * 1024 * 1024;

/// How the loop is told to end.
pub(super) struct Ends {
    /// Takes no more jobs.
    pub(super) stop: CancellationToken,
    /// What is not reported by now was handed back.
    pub(super) given_up: CancellationToken,
    /// Told when no job comes any more.
    pub(super) quiet: oneshot::Sender<()>,
}

/// Claims, starts and reports jobs: until it is told to stop, and all that it has in hand is reported.
pub(super) async fn pull(
    setup: Arc<Setup>,
    held: Arc<Held>,
    appetite: Arc<Appetite>,
    running: TaskTracker,
    ends: Ends,
) {
    let (sender, ended) = mpsc::unbounded_channel();
    let starter = Starter::new(Arc::clone(&setup), Arc::clone(&held), running, sender);
    let pull = Pull {
        setup,
        held,
        appetite,
        starter,
        order: Order::default(),
        holds: Holds::default(),
        in_hand: 0,
        reserved: 0,
        ready: VecDeque::new(),
        flying: FuturesUnordered::new(),
        calls: 0,
        claims: 0,
        releases: 0,
        resting: false,
        backoff: Backoff::new(),
        empty: false,
        fed: BTreeSet::new(),
        looked: Instant::now(),
        swept: None,
        stopping: false,
    };
    pull.run(ended, ends).await;
}

struct Pull {
    setup: Arc<Setup>,
    held: Arc<Held>,
    appetite: Arc<Appetite>,
    starter: Starter,
    order: Order,
    holds: Holds,
    /// Jobs that run, and results that no call under way carries.
    in_hand: usize,
    /// Slots that calls under way may need.
    reserved: usize,
    /// Results to be told.
    ready: VecDeque<Ran>,
    flying: FuturesUnordered<BoxFuture<'static, Landed>>,
    /// How many of these are calls, how many of those claim, and how many bring jobs back.
    calls: usize,
    claims: usize,
    releases: usize,
    /// Nothing is sent: the last call failed.
    resting: bool,
    backoff: Backoff,
    /// The last claim brought less than was wanted.
    empty: bool,
    /// The lists whose feeders have brought an id since the last claim was sent.
    fed: BTreeSet<String>,
    /// When a claim came back last.
    looked: Instant,
    /// When one came back last that had looked into the feeds of all lists.
    swept: Option<Instant>,
    stopping: bool,
}

impl Pull {
    async fn run(mut self, mut ended: mpsc::UnboundedReceiver<Ended>, ends: Ends) {
        let mut quiet = Some(ends.quiet);
        let wake = tokio::time::sleep(Duration::ZERO);
        tokio::pin!(wake);
        loop {
            if self.is_worth_a_look() {
                tokio::task::yield_now().await;
            }
            while let Ok(ended) = ended.try_recv() {
                self.ended(ended);
            }
            while let Some(call) = self.next() {
                self.send(call);
            }
            if self.stopping && self.claims + self.releases == 0 {
                // Nobody listens if the worker was dropped.
                let _ = quiet.take().map(|quiet| quiet.send(()));
                if self.in_hand + self.calls == 0 {
                    return;
                }
            }
            self.appetite.tell(self.is_hungry());
            let at = self.wakes();
            if let Some(at) = at.filter(|at| *at != wake.deadline()) {
                wake.as_mut().reset(at);
            }
            tokio::select! {
                Some(landed) = self.flying.next() => self.landed(landed),
                Some(one) = ended.recv() => self.ended(one),
                fed = self.appetite.fed() => self.fed.extend(fed),
                () = &mut wake, if at.is_some() => {}
                () = ends.stop.cancelled(), if !self.stopping => self.stopping = true,
                () = ends.given_up.cancelled(), if self.resting && self.stopping => self.give_up(),
            }
        }
    }

    /// Whether others that run may be about to end too, so that their results go together.
    fn is_worth_a_look(&self) -> bool {
        self.calls == 0 && !self.ready.is_empty() && self.in_hand > self.ready.len()
    }

    fn ended(&mut self, ended: Ended) {
        match ended {
            Ended::Ran(ran) => {
                self.held.ended(ran.slot.place);
                self.ready.push_back(ran);
            }
            Ended::Told(slot) => {
                self.in_hand -= 1;
                self.may_pass(&slot.claimed.queue, Instant::now());
                self.held.remove(slot.place);
            }
        }
    }

    /// A job of this queue has ended: a slot may be free for another one.
    fn may_pass(&mut self, queue: &str, now: Instant) {
        let same = |list: &str| base_of(list) == base_of(queue);
        self.holds.may_pass(now, same);
    }

    /// What is to be sent now, if anything.
    fn next(&mut self) -> Option<Call> {
        if self.resting || self.calls >= MOST_CALLS {
            return None;
        }
        if self.ready.front().is_some_and(|ran| ran.alone) {
            let results = self.ready.pop_front().into_iter().collect();
            let claim = None;
            return Some(Call { results, claim });
        }
        let many = self.ready.len() * SECOND_CALL >= self.setup.concurrency;
        if self.calls > 0 && self.fed.is_empty() && !many {
            return None;
        }
        let results = self.batch();
        let now = Instant::now();
        for ran in &results {
            self.may_pass(&ran.slot.claimed.queue, now);
        }
        let claim = self.claim(results.len(), now);
        (claim.is_some() || !results.is_empty()).then_some(Call { results, claim })
    }

    /// The results that go together.
    fn batch(&mut self) -> Vec<Ran> {
        let mut bytes = 0;
        let fits = |ran: &&Ran| {
            let first = bytes == 0;
            bytes += ran.bytes().max(1);
            !ran.alone && (first || bytes <= MOST_BYTES)
        };
        let most = self.ready.iter().take(meshwork_broker::MAX_ITEMS);
        let together = most.take_while(fits).count();
        self.ready.drain(..together).collect()
    }

    /// What to claim beside so many results.
    fn claim(&mut self, results: usize, now: Instant) -> Option<Asked> {
        let want = self.want(results);
        if self.stopping {
            // What came to a worker that stops is handed back when it leaves.
            self.fed.clear();
        }
        let hungry = !self.empty || self.wakes().is_some_and(|at| at <= now);
        if self.fed.is_empty() && (want == 0 || !hungry) {
            return None;
        }
        let fed = std::mem::take(&mut self.fed);
        Some(Asked {
            until: now + self.setup.lease,
            want,
            turn: self.turn(),
            lists: self.setup.lists(),
            // What came through a feeder may be of a list that is held: then it goes back.
            skipped: if fed.is_empty() {
                self.holds.skipped(now)
            } else {
                Vec::new()
            },
            fed,
            sweep: self.swept.is_none_or(|swept| swept + SAFETY <= now),
        })
    }

    /// The order of the next claim: two that are under way go the usual way round.
    fn turn(&self) -> Turn {
        if self.claims > 0 {
            return Turn::default();
        }
        self.order.turn(self.setup.places.routes())
    }

    /// How many jobs there is room for when so many results are told.
    fn want(&self, results: usize) -> usize {
        let busy = (self.in_hand - results) + self.reserved;
        let free = self.setup.concurrency.saturating_sub(busy);
        if self.stopping || self.releases > 0 || self.starter.is_closed() {
            0
        } else if !self.starter.one_by_one {
            free
        } else if self.claims > 0 {
            0
        } else {
            free.min(1)
        }
    }

    /// When to claim although nothing was heard.
    fn wakes(&self) -> Option<Instant> {
        if !self.empty
            || self.claims > 0
            || self.resting
            || self.want(0) == 0 && self.ready.is_empty()
        {
            return None;
        }
        let safety = self.looked + SAFETY;
        Some(self.holds.next().map_or(safety, |next| next.min(safety)))
    }

    fn is_hungry(&self) -> bool {
        self.empty && self.fed.is_empty() && !self.resting && self.claims == 0 && self.want(0) > 0
    }

    fn send(&mut self, call: Call) {
        self.in_hand -= call.results.len();
        self.reserved += call.slots();
        self.calls += 1;
        self.claims += usize::from(call.claim.is_some());
        let setup = Arc::clone(&self.setup);
        self.flying
            .push(Box::pin(call::make(setup, Box::new(call))));
    }

    fn landed(&mut self, landed: Landed) {
        match landed {
            Landed::Called(call, told) => self.called(*call, told),
            Landed::Released => self.releases -= 1,
            Landed::Rested(backoff) => {
                self.resting = false;
                self.backoff = backoff;
            }
        }
    }

    fn called(&mut self, call: Call, told: Told) {
        self.calls -= 1;
        self.claims -= usize::from(call.claim.is_some());
        self.reserved -= call.slots();
        match told {
            Ok((finished, taken)) => {
                if !self.resting {
                    self.backoff = Backoff::new();
                }
                self.setup.broker.outages().succeeded("exchange");
                self.finished(call.results, &finished);
                if let Some((asked, taken)) = call.claim.zip(taken) {
                    self.taken(&asked, taken);
                }
            }
            Err(error) => self.failed(call, &error),
        }
    }

    fn finished(&mut self, results: Vec<Ran>, finished: &[Finished]) {
        self.setup.meter.heard();
        for (ran, finished) in results.into_iter().zip(finished) {
            ran.told(*finished);
            self.held.remove(ran.slot.place);
        }
    }

    fn taken(&mut self, asked: &Asked, taken: Taken) {
        self.setup.meter.claimed(&taken);
        if taken.dropped > 0 {
            tracing::debug!(
                ids = taken.dropped,
                "dropped ids of jobs that are not there to run"
            );
        }
        let got = taken.jobs.len();
        self.looked = Instant::now();
        if asked.sweep {
            self.swept = Some(self.looked);
        }
        self.order.note(got);
        let skipped = &asked.skipped;
        self.holds
            .told(&self.appetite, skipped, taken.held, self.looked);
        if asked.want > 0 {
            self.empty = got < asked.want && !taken.more;
        }
        let left = if got == 0 || self.looked < asked.until {
            self.starter.start(taken.jobs)
        } else {
            // This process was stopped, or the answer held up: others may have begun them by now.
            tracing::warn!(jobs = got, "a claim was answered after its lease");
            taken.jobs
        };
        self.in_hand += got - left.len();
        if !left.is_empty() {
            self.release(left);
        }
        self.appetite.claimed();
    }

    /// Hands back what is not wanted now, before anything else is claimed.
    fn release(&mut self, left: Vec<Claimed>) {
        self.releases += 1;
        let setup = Arc::clone(&self.setup);
        self.flying.push(Box::pin(async move {
            let (setup, id) = (&setup, |claimed: &Claimed| claimed.job.id.to_string());
            hand_back(left, setup.lease, id, |claimed| async move {
                setup.broker.release(&claimed).await
            })
            .await;
            Landed::Released
        }));
    }

    /// A call failed as a whole: its results are told again, and it claims again, after a pause. What was
    /// claimed for nobody comes back when its lease ends.
    fn failed(&mut self, call: Call, error: &meshwork_broker::Error) {
        let Call { results, claim } = call;
        let what = if results.is_empty() {
            "claim"
        } else {
            "report"
        };
        self.setup.meter.failed(what, error);
        self.setup.broker.outages().failed("exchange", error);
        let apart = !error.is_temporary() && (results.len() > 1 || claim.is_some());
        for mut ran in results.into_iter().rev() {
            if !apart && !ran.is_worth(error) {
                self.held.remove(ran.slot.place);
                continue;
            }
            self.in_hand += 1;
            ran.alone |= apart;
            self.ready.push_front(ran);
        }
        if let Some(asked) = claim {
            self.fed.extend(asked.fed);
            self.empty = false;
        }
        if !std::mem::replace(&mut self.resting, true) {
            let mut backoff = std::mem::take(&mut self.backoff);
            self.flying.push(Box::pin(async move {
                backoff.wait().await;
                Landed::Rested(backoff)
            }));
        }
    }

    /// What could not be told is somebody else's by now.
    fn give_up(&mut self) {
        while let Some(ran) = self.ready.pop_front() {
            self.in_hand -= 1;
            self.held.remove(ran.slot.place);
        }
        self.resting = false;
    }
}
