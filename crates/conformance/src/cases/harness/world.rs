//! Environment of a case: the verbs with a clock that it sets, and direct access to the data.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use meshwork_broker::bananas::Bananas;
use meshwork_broker::conn::Conn;
use meshwork_broker::context::ContextStore;
use meshwork_broker::nooble::Nooble;
use meshwork_broker::script::Scripts;
use meshwork_broker::{
    Broker, Claim, Claimed, ClaimedJobs, Clock, Completed, Enqueued, Failed, Listener,
    PrefetchLists, Reclaimed, Renewal, Renewed,
};
use meshwork_model::job::limits::SUSPECT_LOST;
use meshwork_model::job::{Job, NewJob};
use meshwork_model::keys::bananas::BananasKeys;
use meshwork_model::keys::hero::JobKeys;
use meshwork_model::keys::nooble::{Dialect, NoobleKeys};
use meshwork_model::name::JobId;
use meshwork_model::outcome::{Failure as Wrong, FailureKind};
use meshwork_model::route::Route;

use crate::cases::Failure;
use crate::cases::harness::engine::Ways;
use crate::cases::harness::failure::same_text;
use crate::snapshot::snapshot;

/// First time of the clock: 2023-11-14T22:13:20.123Z, in milliseconds.
pub(crate) const START: u64 = 1_700_000_000_123;
/// Lease of the claims of cases.
pub(crate) const LEASE: Duration = Duration::from_secs(10);
/// The same lease in milliseconds.
pub(crate) const LEASE_MS: u64 = 10_000;
/// Time for which a registration of a foreign listener counts, in milliseconds.
pub(crate) const ALIVE_MS: u64 = 15_000;
/// Worker that claims by default.
pub(crate) const WORKER: &str = "w1-a";
/// Suffix of the namespace for the names of another system, in cases with both.
pub(crate) const BESIDE: &str = "b";
/// Timeout of waits for an event that must come.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Namespace, clock and verbs of one case.
#[derive(Debug)]
pub struct World {
    /// The verbs.
    pub(crate) broker: Broker,
    /// Connection for direct access to the data.
    pub(crate) raw: Conn,
    pub(crate) namespace: String,
    /// URL of the server, if it has users.
    pub(crate) url: Option<String>,
    pub(crate) hand: Arc<AtomicU64>,
    pub(crate) scripts: Scripts,
    pub(crate) tokens: AtomicU64,
    /// Start of the case, by the real clock.
    pub(crate) began: Instant,
}

pub(crate) type Got<T> = Result<T, Failure>;

impl World {
    /// Creates an empty namespace over `ways`, with the clock at [`START`].
    pub(crate) fn new(ways: Ways, scripts: Scripts) -> Got<Self> {
        let (clock, hand) = Clock::manual(START);
        let broker = Broker::new(ways.verbs, JobKeys::new(ways.namespace.parse()?))
            .with_clock(clock)
            .with_scripts(&scripts);
        Ok(Self {
            broker,
            raw: ways.raw,
            namespace: ways.namespace,
            url: ways.url,
            hand,
            scripts,
            tokens: AtomicU64::new(0),
            began: Instant::now(),
        })
    }

    /// Returns the verbs over another connection.
    pub(crate) fn broker_over(&self, conn: Conn) -> Broker {
        Broker::new(conn, self.keys().clone())
            .with_clock(Clock::Manual(Arc::clone(&self.hand)))
            .with_scripts(&self.scripts)
    }

    /// Returns another namespace, whose key names are inside of this one.
    pub(crate) fn neighbour(&self) -> Got<Self> {
        let scripts = Scripts::default();
        let ways = Ways {
            verbs: self.broker.conn().clone(),
            raw: self.raw.clone(),
            namespace: format!("{}-", self.namespace),
            url: self.url.clone(),
        };
        Self::new(ways, scripts)
    }

    /// Returns the same namespace and clock with scripts that no server has seen: each begins with a unique name.
    pub(crate) fn with_unknown_scripts(&self) -> Self {
        static MARKS: AtomicU64 = AtomicU64::new(0);
        let number = MARKS.fetch_add(1, Ordering::Relaxed);
        let mark = format!("local mark_{number}_{}\n", std::process::id());
        let scripts = Scripts::altered(|_, source| format!("{mark}{source}"));
        Self {
            broker: self.broker.clone().with_scripts(&scripts),
            raw: self.raw.clone(),
            namespace: self.namespace.clone(),
            url: self.url.clone(),
            hand: Arc::clone(&self.hand),
            scripts,
            tokens: AtomicU64::new(1_000),
            began: self.began,
        }
    }

    /// Returns the verbs for jobs of Bananas, whose keys have the same prefix here.
    pub(crate) fn bananas(&self) -> Got<Bananas> {
        self.bananas_under(&self.namespace)
    }

    /// Returns the same with another prefix, for cases with jobs of both systems.
    pub(crate) fn bananas_beside(&self) -> Got<Bananas> {
        self.bananas_under(&format!("{}{BESIDE}", self.namespace))
    }

    fn bananas_under(&self, prefix: &str) -> Got<Bananas> {
        let keys = BananasKeys::new(prefix.parse()?);
        Ok(Bananas::new(self.broker.conn().clone(), keys)
            .with_clock(Clock::Manual(Arc::clone(&self.hand)))
            .with_scripts(&self.scripts))
    }

    /// Returns the verbs for actions of Nooble4, whose keys have the same prefix here.
    pub(crate) fn nooble(&self, dialect: Dialect) -> Got<Nooble> {
        let names = NoobleKeys::new(self.namespace.parse()?, None, dialect);
        Ok(Nooble::new(self.broker.conn().clone(), names)
            .with_clock(Clock::Manual(Arc::clone(&self.hand)))
            .with_scripts(&self.scripts))
    }

    /// Returns the verbs for records and messages of contexts.
    pub(crate) fn contexts(&self) -> ContextStore {
        ContextStore::of(&self.broker).with_scripts(&self.scripts)
    }

    pub(crate) fn keys(&self) -> &JobKeys {
        self.broker.keys()
    }

    pub(crate) fn conn(&self) -> &Conn {
        &self.raw
    }

    /// Sets the clock.
    pub(crate) fn at(&self, ms: u64) {
        self.hand.store(ms, Ordering::SeqCst);
    }

    /// Returns the time of the clock.
    pub(crate) fn now(&self) -> u64 {
        self.hand.load(Ordering::SeqCst)
    }

    /// Moves the clock.
    pub(crate) fn pass(&self, ms: u64) {
        self.hand.fetch_add(ms, Ordering::SeqCst);
    }

    /// Returns a token that no other claim of this case has: `t1`, `t2` …
    pub(crate) fn token(&self) -> String {
        format!("t{}", self.tokens.fetch_add(1, Ordering::SeqCst) + 1)
    }

    // Changes of the data.

    /// Returns a job for any worker of type `osis`; its script is its id.
    pub(crate) fn job(&self, id: &str) -> Got<NewJob> {
        Ok(NewJob::new(id.parse()?, Route::to("osis".parse()?), id))
    }

    /// Returns the queue of such jobs.
    pub(crate) fn queue(&self) -> String {
        self.queue_of("osis")
    }

    /// Returns the queue of another type.
    pub(crate) fn queue_of(&self, script_type: &str) -> String {
        format!("{}{script_type}", self.keys().work_prefix())
    }

    /// Enqueues new jobs.
    pub(crate) async fn put_jobs(&self, jobs: &[NewJob]) -> Got<()> {
        let stored = self.broker.enqueue(jobs).await?;
        if stored != vec![Enqueued::Stored; jobs.len()] {
            return Err(Failure::new(format!("not all were stored: {stored:?}")));
        }
        Ok(())
    }

    /// Enqueues jobs like those of [`Self::job`].
    pub(crate) async fn put(&self, ids: &[&str]) -> Got<()> {
        let jobs: Got<Vec<_>> = ids.iter().map(|id| self.job(id)).collect();
        self.put_jobs(&jobs?).await
    }

    /// Writes a job as a foreign client does, with these fields, and by default a status and a script. Pushes its id.
    pub(crate) async fn put_foreign(&self, id: &str, fields: &[(&str, &str)]) -> Got<()> {
        let own = [("status", "dispatched"), ("script", "1")];
        self.put_hash(id, &[&own, fields].concat()).await
    }

    /// Writes a hash with exactly these fields, and pushes its id.
    pub(crate) async fn put_hash(&self, id: &str, fields: &[(&str, &str)]) -> Got<()> {
        let mut set = redis::cmd("HSET");
        set.arg(self.key(id));
        for (name, value) in fields {
            set.arg(*name).arg(*value);
        }
        set.query_async::<()>(&mut self.conn().clone()).await?;
        self.push(id).await
    }

    /// Pushes an id by hand.
    pub(crate) async fn push(&self, id: &str) -> Got<()> {
        self.raw(&["LPUSH", &self.queue(), id]).await
    }

    // The verbs in a short form.

    pub(crate) async fn claim(
        &self,
        worker: &str,
        queues: &[String],
        want: usize,
    ) -> Got<ClaimedJobs> {
        let claim = Claim {
            queues,
            old: &[],
            reverse: false,
            prefetch: PrefetchLists::All,
            want,
            ahead: 0,
            lease: LEASE,
            worker,
            token: &self.token(),
        };
        Ok(self.broker.claim(claim).await?)
    }

    /// Claims from the queue of [`Self::job`].
    pub(crate) async fn take(&self, want: usize) -> Got<Vec<Claimed>> {
        Ok(self.claim(WORKER, &[self.queue()], want).await?.jobs)
    }

    /// Claims the next job; fails if there is none.
    pub(crate) async fn take_one(&self) -> Got<Claimed> {
        let mut jobs = self.take(1).await?;
        let (Some(job), None) = (jobs.pop(), jobs.pop()) else {
            return Err(Failure::new("no job was claimed, or more than one"));
        };
        // As workers do.
        if job.job.lost >= SUSPECT_LOST {
            self.broker.isolate(&job).await?;
        }
        Ok(job)
    }

    /// Enqueues a job and claims it.
    pub(crate) async fn started(&self, id: &str) -> Got<Claimed> {
        self.put(&[id]).await?;
        self.take_one().await
    }

    pub(crate) async fn finish(&self, claimed: &Claimed, output: &str) -> Got<Completed> {
        Ok(self
            .broker
            .complete(claimed, output.as_bytes(), b"", b"")
            .await?)
    }

    /// Fails a job with the message `boom`.
    pub(crate) async fn fail(&self, claimed: &Claimed, kind: FailureKind) -> Got<Failed> {
        let failure = Wrong::new(kind, "boom");
        Ok(self
            .broker
            .fail(claimed, &failure, b"", b"", Duration::ZERO)
            .await?)
    }

    /// Renews jobs and a registration at the queue of [`Self::job`].
    pub(crate) async fn renew(&self, worker: &str, held: &[Claimed]) -> Got<Vec<String>> {
        Ok(self.try_renew(worker, held).await?.gone)
    }

    /// Does the same, and returns the whole answer or the error.
    pub(crate) async fn try_renew(
        &self,
        worker: &str,
        held: &[Claimed],
    ) -> Result<Renewed, meshwork_broker::Error> {
        let queues = [self.queue()];
        let renewal = Renewal {
            held,
            lease: LEASE,
            listener: Listener {
                worker,
                queues: &queues,
            },
            alive: Duration::from_millis(ALIVE_MS),
        };
        self.broker.renew(renewal).await
    }

    /// Lets all leases expire and reclaims their jobs.
    pub(crate) async fn lose_all(&self) -> Got<Reclaimed> {
        self.pass(LEASE_MS);
        Ok(self.broker.reclaim().await?)
    }

    /// Returns the record of a job; fails if there is none.
    pub(crate) async fn read(&self, id: &str) -> Got<Job> {
        self.broker
            .inspect(&JobId::foreign(id.to_owned()))
            .await?
            .ok_or_else(|| Failure::new(format!("job {id} is not there")))
    }

    // Reads of the data.

    /// Runs any command.
    pub(crate) async fn raw<T: redis::FromRedisValue>(&self, words: &[&str]) -> Got<T> {
        let mut cmd = redis::Cmd::new();
        for word in words {
            cmd.arg(*word);
        }
        Ok(cmd.query_async(&mut self.conn().clone()).await?)
    }

    /// Returns a job's key.
    pub(crate) fn key(&self, id: &str) -> String {
        let id = JobId::foreign(id.to_owned());
        self.keys().job_hash_key(&id)
    }

    /// Returns a job's fields.
    pub(crate) async fn record(&self, id: &str) -> Got<BTreeMap<String, String>> {
        self.raw(&["HGETALL", &self.key(id)]).await
    }

    /// Returns one field of a job.
    pub(crate) async fn field(&self, id: &str, name: &str) -> Got<Option<String>> {
        self.raw(&["HGET", &self.key(id), name]).await
    }

    /// Returns a job's status.
    pub(crate) async fn status(&self, id: &str) -> Got<String> {
        Ok(self.field(id, "status").await?.unwrap_or_default())
    }

    /// Returns the time to live of a key in seconds, rounded up; negative without one. Above 20 s it is rounded to ten
    /// seconds if this case has run for a second already, as on a busy machine: the time passes while it runs.
    pub(crate) async fn ttl(&self, key: &str) -> Got<i64> {
        let ms: i64 = self.raw(&["PTTL", key]).await?;
        let is_late = self.began.elapsed() >= Duration::from_secs(1);
        let step = if is_late && ms > 20_000 {
            10_000
        } else {
            1_000
        };
        Ok(if ms < 0 {
            ms
        } else {
            (ms + step - 1) / step * step / 1_000
        })
    }

    /// Returns a list, from the end that is popped first.
    pub(crate) async fn list(&self, key: &str) -> Got<Vec<String>> {
        let mut items: Vec<String> = self.raw(&["LRANGE", key, "0", "-1"]).await?;
        items.reverse();
        Ok(items)
    }

    /// Returns the ids in the queue of [`Self::job`], the next one first.
    pub(crate) async fn waiting(&self) -> Got<Vec<String>> {
        self.list(&self.queue()).await
    }

    /// Returns the expiry of a job's lease.
    pub(crate) async fn lease(&self, id: &str) -> Got<Option<u64>> {
        self.raw(&["ZSCORE", &self.keys().lease(), id]).await
    }

    /// Returns the expiry of a registration at the queue of [`Self::job`].
    pub(crate) async fn listener(&self, worker: &str) -> Got<Option<u64>> {
        let member = JobKeys::prefetch_member(worker, &self.queue());
        self.raw(&["ZSCORE", &self.keys().prefetch_registry(), &member])
            .await
    }

    /// Returns the prefetch list of a worker for the queue of [`Self::job`].
    pub(crate) fn feed(&self, worker: &str) -> String {
        self.keys().feed(worker, &self.queue())
    }

    /// Returns a key, or a prefix of keys, by its name in the scripts.
    pub(crate) fn named(&self, name: &str) -> Got<String> {
        let names = self.keys().script_names();
        let found = names.into_iter().find(|(known, _)| *known == name);
        found
            .map(|(_, key)| key)
            .ok_or_else(|| Failure::new(format!("no script knows {name}")))
    }

    /// Returns the reply list of a job.
    pub(crate) fn reply(&self, id: &str) -> String {
        format!("{}{id}", self.keys().reply_prefix())
    }

    /// Returns all keys and values as text.
    pub(crate) async fn all(&self) -> Got<String> {
        Ok(snapshot(self.conn(), &self.namespace).await?)
    }

    /// Compares all data except the counters and the names of queues with an earlier text and the events since: lines such
    /// as `j1 delete by  note`.
    pub(crate) async fn events_since(&self, before: &str, since: &[&str]) -> Got<()> {
        let (mut should, mut events) = apart(before);
        let line = |(id, what): (&str, &str)| format!("  job {id} event {what}");
        events.extend(
            since
                .iter()
                .filter_map(|line| line.split_once(' '))
                .map(line),
        );
        let (mut is, events_are) = apart(&self.all().await?);
        for (text, lines) in [(&mut should, events), (&mut is, events_are)] {
            text.push_str(&lines.join("\n"));
        }
        same_text(&is, &should)
    }

    /// Returns the events so far: the job, the change, the actor, and a note.
    pub(crate) async fn events(&self) -> Got<Vec<[String; 4]>> {
        let events = self.keys().events();
        let entries: Vec<(String, Vec<String>)> = self.raw(&["XRANGE", &events, "-", "+"]).await?;
        let value =
            |words: &[String], at: usize| words.get(2 * at + 1).cloned().unwrap_or_default();
        let event = |(_, words): (_, Vec<_>)| {
            let [jobs, what, by, note] = [0, 1, 2, 3].map(|at| value(&words, at));
            let of = |job: &str| [job.to_owned(), what.clone(), by.clone(), note.clone()];
            match words.first().is_some_and(|name| name == "jobs") {
                true => jobs.split(' ').map(of).collect(),
                false => vec![of(&jobs)],
            }
        };
        Ok(entries.into_iter().flat_map(event).collect())
    }

    /// Compares all data with an earlier text.
    pub(crate) async fn unchanged(&self, before: &str) -> Got<()> {
        same_text(&self.all().await?, before)
    }
}

/// Splits a text of all data into the part without counters and events, and the events, one for each job.
fn apart(all: &str) -> (String, Vec<String>) {
    let (mut rest, mut events, mut key) = (String::new(), Vec::new(), "");
    for line in all.lines() {
        if !line.starts_with(' ') {
            key = line;
        }
        if key.starts_with("~:meta:queue:stats:") || key == NOTED {
            continue;
        }
        match (key == "~:q:events stream", line.split_once(" event ")) {
            (false, _) => rest.extend([line, "\n"]),
            (true, Some((jobs, what))) => {
                let jobs = jobs.split(' ').filter(|word| !word.is_empty()).skip(1);
                events.extend(jobs.map(|job| format!("  job {job} event {what}")));
            }
            (true, None) => {}
        }
    }
    (rest, events)
}

/// The key of the names of queues, in [`World::all`].
pub(crate) const NOTED: &str = "~:q:lists zset";

/// Returns the ids of claimed jobs, in order.
pub(crate) fn ids(jobs: &[Claimed]) -> Vec<&str> {
    jobs.iter().map(|claimed| claimed.job.id.as_str()).collect()
}
