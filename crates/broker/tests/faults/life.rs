//! The lives of a few jobs, each with another story, driven like a client and a worker do. Client and worker repeat
//! each call until it is answered, except that a failed claim is left to its lease. Afterwards the invariants are
//! checked, however often the connection broke.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use meshwork_broker::conn::Conn;
use meshwork_broker::script::Scripts;
use meshwork_broker::{
    Broker, Cancelled, Claim, Claimed, Clock, Completed, Error, Failed, Listener, PrefetchLists,
    Released, Renewal, Renewed,
};
use meshwork_conformance::faulty::{Faulty, Plan};
use meshwork_conformance::snapshot::{keys, snapshot};
use meshwork_model::job::{Job, NewJob};
use meshwork_model::keys::hero::JobKeys;
use meshwork_model::name::JobId;
use meshwork_model::outcome::{Failure, FailureKind};
use meshwork_model::route::Route;
use meshwork_model::state::Status;
use redis::Value;

/// The result of a life's checks.
type Said<T> = Result<T, String>;

const LEASE: Duration = Duration::from_secs(10);
const LEASE_MS: u64 = 10_000;
const NAMESPACE: &str = "{faults}";
const WORKER: &str = "w1-a";

/// Greatest number of tries of a call: more than failures in a row.
const TRIES: usize = 10;
/// Greatest number of claims: more than the story needs with every failure.
const ROUNDS: usize = 40;

/// A job's story, which its script names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Story {
    /// Runs and ends.
    Plain,
    /// Fails, is retried, ends.
    Flaky,
    /// Fails so that no retry helps.
    Hopeless,
    /// Is released once, then ends.
    Handed,
    /// Runs for longer than one lease.
    Slow,
    /// Is stopped before it runs.
    Stopped,
    /// Is stopped while it runs.
    Halted,
    /// Is cancelled while it runs, and ends.
    CancelRequested,
    /// Fails, is put off, ends.
    PutOff,
    /// Waits for the plain one, then runs and ends.
    Chained,
    /// Waits for the hopeless one, and fails with it.
    Doomed,
    /// Waits for the doomed one.
    Last,
}

const STORIES: [Story; 12] = [
    Story::Plain,
    Story::Flaky,
    Story::Hopeless,
    Story::Handed,
    Story::Slow,
    Story::Stopped,
    Story::Halted,
    Story::CancelRequested,
    Story::PutOff,
    Story::Chained,
    Story::Doomed,
    Story::Last,
];

impl Story {
    fn id(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    fn of(job: &Job) -> Said<Self> {
        let story = STORIES.into_iter().find(|story| story.id() == job.id);
        story.ok_or_else(|| format!("{} has no story", job.id))
    }

    /// Expected number of runs, number of counted reports, and final status.
    fn expected(self) -> (u32, u32, &'static str) {
        match self {
            Self::Plain | Self::Slow | Self::Chained => (1, 1, "finished"),
            Self::Flaky | Self::PutOff => (2, 2, "finished"),
            Self::Handed => (1, 1, "finished"),
            Self::Hopeless | Self::Halted | Self::CancelRequested => (1, 1, "error"),
            Self::Stopped | Self::Doomed | Self::Last => (0, 0, "error"),
        }
    }

    /// Whom it waits for.
    fn waits_for(self) -> Option<Self> {
        match self {
            Self::Chained => Some(Self::Plain),
            Self::Doomed => Some(Self::Hopeless),
            Self::Last => Some(Self::Doomed),
            _ => None,
        }
    }
}

struct Life {
    /// Over the connection that breaks.
    broker: Broker,
    /// Over one that does not.
    clean: Broker,
    hand: Arc<AtomicU64>,
    queues: [String; 1],
    tokens: u64,
    handed: bool,
    /// Number of runs by job.
    ran: BTreeMap<String, u32>,
    /// The output that was reported last, and how often it was answered that the job is finished.
    finished: BTreeMap<String, (String, u32)>,
}

/// Runs all the lives over a connection that breaks as planned, and returns how often it did.
pub(crate) async fn run(conn: Conn, plan: Plan) -> Said<usize> {
    let faulty = Faulty::new(conn.clone(), Some(plan));
    // No server has seen these scripts: each verb's first call is refused, sent whole, and repeated.
    // A comment would not tell them apart, since comments are not sent.
    let mark = format!(
        "local mark = '{plan:?} of process {}'\n",
        std::process::id()
    );
    let scripts = Scripts::altered(|_, source| format!("{mark}{source}"));
    let (clock, hand) = Clock::manual(1_700_000_000_000);
    let keys = JobKeys::new(NAMESPACE.parse().map_err(said)?);
    let over = |conn: Conn| {
        Broker::new(conn, keys.clone())
            .with_clock(clock.clone())
            .with_scripts(&scripts)
    };
    let mut life = Life {
        broker: over(Conn::new(faulty.clone())),
        clean: Broker::new(conn, keys.clone()).with_clock(clock.clone()),
        hand,
        queues: [format!("{}osis", keys.work_prefix())],
        tokens: 0,
        handed: false,
        ran: BTreeMap::new(),
        finished: BTreeMap::new(),
    };
    life.ask().await?;
    life.work().await?;
    life.check(&lost(&faulty)).await?;
    Ok(faulty.broken())
}

fn said(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Returns the number of lost claims by job: those whose answer was lost. No other verb's answer has that form.
fn lost(faulty: &Faulty) -> BTreeMap<String, u32> {
    // Form of the record, id, queue, attempt, record.
    type Row = (String, String, String, i64, Value);
    let mut lost = BTreeMap::new();
    for swallowed in faulty.swallowed() {
        let answer = redis::from_redis_value::<(usize, usize, Vec<Row>, Vec<u64>, u64)>(swallowed);
        for (_, id, ..) in answer.map(|(_, _, rows, ..)| rows).unwrap_or_default() {
            *lost.entry(id).or_insert(0) += 1;
        }
    }
    lost
}

/// Repeats a call until it is answered; the answer, and at which try it came.
async fn again<T>(mut call: impl AsyncFnMut() -> Result<T, Error>) -> Said<(T, usize)> {
    for tried in 1..=TRIES {
        match call().await {
            Ok(answer) => return Ok((answer, tried)),
            Err(error) if error.is_temporary() => {}
            Err(error) => return Err(said(error)),
        }
    }
    Err(format!("no answer in {TRIES} tries"))
}

/// Checks the answer of a call, with another accepted answer if the call was repeated.
fn is<T: PartialEq + std::fmt::Debug>((answer, tried): (T, usize), once: T, later: T) -> Said<()> {
    if answer == once || (tried > 1 && answer == later) {
        return Ok(());
    }
    Err(format!("{answer:?} at try {tried}"))
}

fn holds(what: impl std::fmt::Display, holds: bool) -> Said<()> {
    if holds { Ok(()) } else { Err(said(what)) }
}

impl Life {
    /// The client's part: all jobs in one call, and one of them stopped at once.
    async fn ask(&mut self) -> Said<()> {
        let job = |story: Story| {
            let id = story.id().parse().map_err(said)?;
            let route = Route::to("osis".parse().map_err(said)?);
            let mut job = NewJob::new(id, route, story.id());
            (job.retries, job.reply) = (1, true);
            if let Some(other) = story.waits_for() {
                job.depends_on.push(other.id().parse().map_err(said)?);
            }
            Ok(job)
        };
        let jobs: Said<Vec<_>> = STORIES.into_iter().map(job).collect();
        let jobs = jobs?;
        again(async || self.broker.enqueue(&jobs).await).await?;
        let queued: usize = self.raw(&["LLEN", &self.queues[0]]).await?;
        let ready = STORIES.iter().filter(|story| story.waits_for().is_none());
        holds(format!("{queued} ids are queued"), queued == ready.count())?;
        let stopped = self.read(Story::Stopped).await?;
        let said = again(async || self.broker.cancel(&stopped, "stopped", true).await).await?;
        is(said, Cancelled::Cancelled, Cancelled::Ended)?;
        // One id came to the worker while it waited.
        let feed = self.clean.keys().feed(WORKER, &self.queues[0]);
        self.raw(&["LMOVE", &self.queues[0], &feed, "RIGHT", "LEFT"])
            .await
    }

    /// The worker's part: until all jobs have ended.
    async fn work(&mut self) -> Said<()> {
        for _ in 0..ROUNDS {
            // All are repeated in the next round anyway.
            let _ = self.broker.reclaim().await;
            let _ = self.broker.promote().await;
            let _ = self.broker.resolve_dependents().await;
            let _ = self.renew(&[]).await;
            self.tokens += 1;
            let claim = Claim {
                queues: &self.queues,
                old: &[],
                reverse: false,
                prefetch: PrefetchLists::All,
                want: 3,
                ahead: 0,
                lease: LEASE,
                worker: WORKER,
                token: &format!("t{}", self.tokens),
            };
            match self.broker.claim(claim).await {
                Ok(taken) if taken.jobs.is_empty() => {
                    if self.all_ended().await? {
                        return self.leave().await;
                    }
                    self.pass(LEASE_MS);
                }
                Ok(taken) => {
                    for at in 0..taken.jobs.len() {
                        self.live(&taken.jobs[at..]).await?;
                    }
                }
                // Whatever it claimed comes back when its lease ends.
                Err(error) if error.is_temporary() => self.pass(LEASE_MS),
                Err(error) => return Err(said(error)),
            }
        }
        Err(format!("not all ended within {ROUNDS} rounds"))
    }

    /// The first of the jobs that are held lives on.
    async fn live(&mut self, held: &[Claimed]) -> Said<()> {
        let claimed = &held[0];
        let story = Story::of(&claimed.job)?;
        if story == Story::Handed && !self.handed {
            self.handed = true;
            let said = again(async || self.broker.release(claimed).await).await?;
            return is(said, Released::Released, Released::Stale);
        }
        let ran = self.ran.entry(story.id()).or_insert(0);
        *ran += 1;
        let output = format!("{} in run {ran}", story.id());
        match story {
            Story::Flaky if *ran == 1 => {
                let said = self
                    .fail(claimed, FailureKind::Script, Duration::ZERO)
                    .await?;
                return is(said, Failed::Requeued, Failed::Stale);
            }
            Story::PutOff if *ran == 1 => {
                let said = self.fail(claimed, FailureKind::Script, LEASE).await?;
                return is(said, Failed::Requeued, Failed::Stale);
            }
            Story::Hopeless => {
                let kind = FailureKind::Permanent;
                let said = self.fail(claimed, kind, Duration::ZERO).await?;
                return is(said, Failed::Failed, Failed::Failed);
            }
            Story::Halted => return self.halt(claimed).await,
            Story::CancelRequested => return self.ask_to_stop(claimed).await,
            Story::Slow => self.take_long(held).await?,
            _ => {}
        }
        let said = self.finish(claimed, &output).await?;
        is(said, Completed::Finished, Completed::Finished)?;
        let finished = self.finished.entry(story.id()).or_default();
        *finished = (output, finished.1 + 1);
        Ok(())
    }

    /// Somebody stops the job while it runs: the worker learns so, and its result is thrown away.
    async fn halt(&self, claimed: &Claimed) -> Said<()> {
        let said = again(async || self.broker.cancel(&claimed.job, "stopped", true).await).await?;
        is(said, Cancelled::Cancelled, Cancelled::Ended)?;
        let held = std::slice::from_ref(claimed);
        let (renewed, _) = again(async || self.renew(held).await).await?;
        let reported = renewed.gone == [claimed.job.id.as_str()];
        holds("the renewal does not report the loss", reported)?;
        let said = self.finish(claimed, "too late").await?;
        is(said, Completed::Stale, Completed::Stale)
    }

    /// Somebody asks for its end while it runs: the worker learns so, and reports that it stopped.
    async fn ask_to_stop(&self, claimed: &Claimed) -> Said<()> {
        let said = again(async || self.broker.cancel(&claimed.job, "stop", false).await).await?;
        is(said, Cancelled::Stopping, Cancelled::Stopping)?;
        let held = std::slice::from_ref(claimed);
        let (renewed, _) = again(async || self.renew(held).await).await?;
        let reported = renewed.stop == [claimed.job.id.as_str()] && renewed.gone.is_empty();
        holds("the renewal does not report the cancel request", reported)?;
        let kind = FailureKind::Stopped;
        let said = self.fail(claimed, kind, Duration::ZERO).await?;
        is(said, Failed::Failed, Failed::Failed)
    }

    /// Nearly two leases pass, with a renewal in between; another process looks for what was lost.
    async fn take_long(&self, held: &[Claimed]) -> Said<()> {
        self.pass(LEASE_MS - 1);
        let (renewed, _) = again(async || self.renew(held).await).await?;
        let gone = renewed.gone;
        holds(format!("{gone:?} are gone"), gone.is_empty())?;
        self.pass(LEASE_MS - 1);
        let back = self.clean.reclaim().await.map_err(said)?;
        holds(format!("{back:?} was taken"), back.requeued.is_empty())
    }

    async fn leave(&self) -> Said<()> {
        let listener = Listener {
            worker: WORKER,
            queues: &self.queues,
        };
        again(async || self.broker.deregister_prefetch(listener).await).await?;
        Ok(())
    }

    async fn renew(&self, held: &[Claimed]) -> Result<Renewed, Error> {
        let renewal = Renewal {
            held,
            lease: LEASE,
            listener: Listener {
                worker: WORKER,
                queues: &self.queues,
            },
            alive: LEASE,
        };
        self.broker.renew(renewal).await
    }

    async fn finish(&self, claimed: &Claimed, output: &str) -> Said<(Completed, usize)> {
        let output = output.as_bytes();
        again(async || self.broker.complete(claimed, output, b"", b"").await).await
    }

    async fn fail(
        &self,
        claimed: &Claimed,
        kind: FailureKind,
        delay: Duration,
    ) -> Said<(Failed, usize)> {
        let failure = Failure::new(kind, "boom");
        again(async || self.broker.fail(claimed, &failure, b"", b"", delay).await).await
    }

    fn pass(&self, ms: u64) {
        self.hand.fetch_add(ms, Ordering::SeqCst);
    }

    async fn all_ended(&self) -> Said<bool> {
        let ids = STORIES.map(|story| JobId::foreign(story.id()));
        let statuses = self.clean.statuses(&ids).await.map_err(said)?;
        Ok(statuses
            .into_iter()
            .all(|status| status.is_some_and(Status::is_final)))
    }

    async fn read(&self, story: Story) -> Said<Job> {
        let job = self.clean.inspect(&JobId::foreign(story.id())).await;
        job.map_err(said)?
            .ok_or_else(|| format!("{} is gone", story.id()))
    }

    async fn raw<T: redis::FromRedisValue>(&self, words: &[&str]) -> Said<T> {
        let mut cmd = redis::Cmd::new();
        cmd.arg(words);
        let answer = cmd.query_async(&mut self.clean.conn().clone()).await;
        answer.map_err(said)
    }

    /// Checks that each job has ended once, in the right way, with the runs and losses that happened. Nothing else
    /// may be left than records, replies, sets of ended jobs, events, metrics and name of the queue, and the cancellation that
    /// no worker took.
    async fn check(&self, lost: &BTreeMap<String, u32>) -> Said<()> {
        for story in STORIES {
            let checked = self.check_one(story, lost.get(&story.id()).copied()).await;
            if let Err(why) = checked {
                let all = snapshot(self.clean.conn(), NAMESPACE).await.map_err(said)?;
                return Err(format!("{}: {why}; all there is:\n{all}", story.id()));
            }
        }
        let keys = keys(self.clean.conn(), NAMESPACE).await.map_err(said)?;
        let prefix = self.clean.keys().queue_stats_prefix();
        let (figures, others): (Vec<_>, Vec<_>) = keys
            .iter()
            .partition(|key| key.starts_with(prefix.as_bytes()));
        holds(
            format!(
                "{} figures and {} other keys are left",
                figures.len(),
                others.len()
            ),
            figures.len() == 1 && others.len() == 2 * STORIES.len() + 5,
        )
    }

    /// Returns the number of events about the end of a job.
    async fn ends(&self, id: &str) -> Said<usize> {
        let events = self.clean.keys().events();
        let entries: Vec<(String, Vec<String>)> = self.raw(&["XRANGE", &events, "-", "+"]).await?;
        let is_end = |words: &[String]| {
            let what = words.get(3).map(String::as_str);
            words.get(1).is_some_and(|job| job == id) && matches!(what, Some("finished" | "error"))
        };
        Ok(entries.iter().filter(|(_, words)| is_end(words)).count())
    }

    async fn check_one(&self, story: Story, lost: Option<u32>) -> Said<()> {
        let job = self.read(story).await?;
        let (runs, attempts, status) = story.expected();
        let ran = self.ran.get(&story.id()).copied().unwrap_or_default();
        holds(format!("it ran {ran} times"), ran == runs)?;
        holds(format!("{} attempts", job.attempt), job.attempt == attempts)?;
        let lost = lost.unwrap_or_default();
        holds(format!("{} of {lost} lost", job.lost), job.lost == lost)?;
        holds(format!("it is {}", job.status), job.status == status)?;
        let ends = self.ends(&story.id()).await?;
        holds(format!("its end has {ends} events"), ends == 1)?;
        let reply = format!("{}{}", self.clean.keys().reply_prefix(), story.id());
        let replies: Vec<String> = self.raw(&["LRANGE", &reply, "0", "-1"]).await?;
        let entries = match self.finished.get(&story.id()) {
            Some((output, times)) => {
                holds(format!("it ended {times} times"), *times == 1)?;
                holds(
                    "another output",
                    job.output.as_deref() == Some(output.as_bytes()),
                )?;
                output.clone()
            }
            None => job.error.unwrap_or_default(),
        };
        holds(format!("replies {replies:?}"), replies == [entries])
    }
}
