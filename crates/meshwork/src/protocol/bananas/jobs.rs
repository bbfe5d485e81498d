//! Jobs of Bananas for the engine: claims, prepares, reports and renews them.

use std::borrow::Cow;
use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use meshwork_broker::bananas::{
    self, Bananas, Claim, Claimed, Failed as Reported, Found, Moved, Reclaimed, Renewal, Requeue,
};
use meshwork_broker::{BlockingConn, Error, Outages};
use meshwork_model::bananas::Record;
use meshwork_model::job::limits::MAX_LOST;
use meshwork_model::outcome::{Failure, FailureKind, Report};
use meshwork_model::trace::TraceContext;
use meshwork_model::worker_request::WorkerRequest;
use tokio::sync::watch;
use tracing::Span;

use super::state::BananasProtocol;
use super::{Foreign, left, maintenance};
use crate::protocol::handlers::Entry;
use meshwork_runtime::Runtime;
use meshwork_worker::Completion;
use meshwork_worker::Fetched;
use meshwork_worker::InFlight;
use meshwork_worker::span::Subject;
use meshwork_worker::{Completed, Exchanged, FetchRequest};
use meshwork_worker::{Config, Protocol};
use meshwork_worker::{Failed, FailedRun, Intake, Prepared, Renewed, Step, Waited};

/// Greatest length of an error in a record, in bytes, with the details of the failure.
const MAX_ERROR: usize = 64 * 1024;

impl BananasProtocol {
    /// Stores results.
    async fn complete(&self, results: &[Completion<Claimed>]) -> Result<Vec<Completed>, Error> {
        if results.is_empty() {
            return Ok(Vec::new());
        }
        let texts: Vec<_> = results
            .iter()
            .map(|one| String::from_utf8_lossy(&one.output))
            .collect();
        let ended = results
            .iter()
            .zip(&texts)
            .map(|(one, text)| bananas::Completion {
                claimed: one.job(),
                result: Some(&**text).filter(|text| !text.is_empty()),
                took: one.took,
            });
        let ended: Vec<_> = ended.collect();
        let finished = self.broker.complete(&ended).await?;
        let each = |finished| match finished {
            bananas::Completed::Finished => Completed::Stored,
            bananas::Completed::Stale => Completed::Stale,
        };
        Ok(finished.into_iter().map(each).collect())
    }

    /// Claims jobs from all queues that are not blocked. A prefetched id of a blocked queue is returned to it.
    async fn claim(
        &self,
        lease: Duration,
        request: &FetchRequest,
    ) -> Result<Fetched<Claimed>, Error> {
        if request.want > 0 {
            left::look(self, lease).await?;
        }
        let mut lists = self.lists(request.round.unwrap_or_default());
        lists.retain(|list| !request.skipped.contains(list));
        let claim = Claim {
            lists: &lists,
            want: request.want,
            lease,
            worker: self.identity.worker(),
            token: &self.identity.token(),
        };
        let taken = self.broker.claim(claim).await?;
        Ok(Fetched {
            jobs: taken.jobs,
            dropped: taken.dropped,
            more: taken.more,
            blocked: taken.held,
            at_ms: taken.at_ms,
        })
    }

    /// Returns the handler of a job, if its record is readable and it has one.
    fn entry(&self, claimed: &Claimed) -> Option<&Entry> {
        match &claimed.found {
            Found::Job(record) => self.handlers.get(record.name()),
            _ => None,
        }
    }

    /// Returns true if a job on a queue without a route was moved to its route's queue, or stays for foreign workers.
    async fn is_elsewhere(&self, claimed: &Claimed, record: &Record) -> bool {
        // Jobs with an invalid route run on any queue. Jobs of this worker's routes are moved too, so that the limits
        // of their route apply.
        let Some(route) = record.route().filter(|route| !route.is_default()) else {
            return false;
        };
        if !self.broker.keys().is_plain(&claimed.list) {
            return false;
        }
        let moved = self.broker.move_to(claimed, &route, record.priority());
        match moved.await {
            Ok(Moved::Moved | Moved::Stale) => return true,
            Ok(Moved::Nobody) => {}
            Err(error) => tracing::warn!(%error, "job not moved to the queue of its route"),
        }
        if self.foreign == Foreign::Run || self.routes.keys().contains(&route) {
            return false;
        }
        self.let_plain_rest();
        self.release_to(claimed, Requeue::Last).await;
        true
    }

    async fn release_to(&self, claimed: &Claimed, to: Requeue) {
        if let Err(error) = self.broker.release(claimed, to).await {
            tracing::warn!(%error, "job not released: its lease will expire");
        }
    }
}

fn failed(kind: FailureKind, message: impl Into<String>) -> Step {
    Step::End(Report::failed(Failure::new(kind, message)))
}

/// Returns the index of the newest claim of each job, and the indexes of all other claims, whose leases have expired.
/// `jobs` has the order of the claims.
fn newest_claims(jobs: &[Claimed]) -> (HashMap<&[u8], usize>, Vec<usize>) {
    let (mut newest, mut gone) = (HashMap::new(), Vec::new());
    for (at, job) in jobs.iter().enumerate() {
        gone.extend(newest.insert(job.hold.as_slice(), at));
    }
    (newest, gone)
}

impl Protocol for BananasProtocol {
    type Job = Claimed;
    type Conn = Bananas;
    type WaitConn = BlockingConn;
    type Queues = Vec<String>;

    fn worker(&self) -> &str {
        self.identity.worker()
    }

    fn outages(&self) -> &Outages {
        self.broker.outages()
    }

    fn queues(&self) -> &watch::Sender<Arc<Vec<String>>> {
        &self.lists
    }

    fn share_limits(&self, one: &str, other: &str) -> bool {
        let keys = self.broker.keys();
        let route = |list: &str| keys.parse_list(list).map(|(route, _)| route);
        route(one) == route(other)
    }

    fn id(job: &Claimed) -> Cow<'_, str> {
        job.id().into()
    }

    fn queue(job: &Claimed) -> &str {
        &job.list
    }

    fn record_bytes(job: &Claimed) -> usize {
        job.found.bytes()
    }

    /// The record counts failures; losses are counted separately.
    fn attempt(job: &Claimed) -> Option<u32> {
        match &job.found {
            Found::Job(record) => Some(record.attempts().saturating_add(1)),
            _ => None,
        }
    }

    /// Names without a handler are not counted, since there may be any number of them.
    fn kind(&self, job: &Claimed) -> Option<String> {
        self.entry(job)?;
        match &job.found {
            Found::Job(record) => Some(record.name().to_owned()),
            _ => None,
        }
    }

    fn span(&self, job: &Claimed) -> (Span, Option<TraceContext>) {
        let (id, worker) = (job.id(), self.identity.worker());
        let mut subject = Subject {
            job: &id,
            queue: &job.list,
            ..Subject::default()
        };
        let Found::Job(record) = &job.found else {
            return subject.run(worker, None);
        };
        let route = record.route();
        subject.kind = record.name();
        subject.route = route.as_ref().map(|route| route.as_str());
        subject.priority = Some(record.priority().as_str());
        subject.run(worker, None)
    }

    fn runtime_of(&self, job: &Claimed) -> Option<&Arc<dyn Runtime>> {
        self.entry(job).map(|entry| &entry.runtime)
    }

    async fn complete_and_claim(
        &self,
        config: &Config,
        results: &[Completion<Claimed>],
        fetch: Option<&FetchRequest>,
    ) -> Exchanged<Claimed> {
        let completed = self.complete(results).await;
        let fetched = match (&completed, fetch) {
            (Ok(_), Some(request)) => Some(self.claim(config.lease, request).await),
            _ => None,
        };
        Exchanged { completed, fetched }
    }

    async fn prepare(
        &self,
        config: &Config,
        claimed: &Arc<Claimed>,
        _trace: Option<&TraceContext>,
    ) -> Step {
        let record = match &claimed.found {
            Found::Job(record) => record,
            found => return failed(FailureKind::Permanent, found.fault().unwrap_or_default()),
        };
        if claimed.lost >= MAX_LOST {
            let lost = claimed.lost;
            let message = format!("lost: {lost} workers went away while they ran this job");
            return failed(FailureKind::Permanent, message);
        }
        // A repeated push of a completed job; an id is removed from a list only once.
        if claimed.is_done() {
            tracing::debug!("job skipped: it has ended already");
            self.release_to(claimed, Requeue::Nowhere).await;
            return Step::Settled;
        }
        if self.is_elsewhere(claimed, record).await {
            return Step::Settled;
        }
        let Some(entry) = self.handlers.get(record.name()) else {
            let message = format!("no handler for jobs of the name {:?}", record.name());
            return failed(FailureKind::Script, message);
        };
        let mut job = entry.job(&claimed.id(), record.payload());
        job.attempt = Self::attempt(claimed).unwrap_or_default();
        let runtime = Arc::clone(&entry.runtime);
        let prepared = Prepared::new(runtime, Arc::new(job), config.timeout);
        Step::Run(Box::new(prepared))
    }

    fn encode(&self, claimed: &Claimed, report: Report) -> Report {
        let Some(entry) = self.entry(claimed) else {
            return report;
        };
        Report {
            result: report
                .result
                .map(|output| entry.result(output).unwrap_or_default().into()),
            ..report
        }
    }

    async fn fail(&self, claimed: &Claimed, failed: &FailedRun<'_>) -> Result<Failed, Error> {
        let (error, kind) = (failed.reason.whole(MAX_ERROR), failed.reason.kind);
        // The protocol has no snooze, so the job waits for a retry.
        let again = kind.retryable() || kind == FailureKind::Snoozed;
        let (most, took) = (self.max_retries, failed.took);
        let run = Self::attempt(claimed).unwrap_or_default();
        let reported = self.broker.fail(claimed, &error, again, most, took);
        Ok(match reported.await? {
            Reported::Again(_) => Failed::Retried(run),
            Reported::Dead => Failed::Dead(run),
            Reported::Stale => Failed::Stale,
        })
    }

    async fn release(&self, claimed: &Claimed) -> Result<bool, Error> {
        self.broker.release(claimed, Requeue::Next).await
    }

    async fn wait_conn(&self) -> Result<BlockingConn, Error> {
        self.broker.blocking_conn().await
    }

    async fn may_wait(&self, queue: &str) {
        if self.rests(queue) {
            // The sender lives as long as `self`.
            let _ = self.rests.subscribe().wait_for(Option::is_none).await;
        }
    }

    async fn wait(
        &self,
        _config: &Config,
        conn: &BlockingConn,
        queue: &str,
        most: Duration,
        _before: Duration,
    ) -> Result<Waited<Claimed>, Error> {
        let worker = self.identity.worker();
        let came = self.broker.wait_for_job(conn, worker, queue, most).await?;
        Ok(Waited::hint(came))
    }

    async fn end_wait(&self, conn: &BlockingConn) -> Result<(), Error> {
        self.broker.unblock(conn).await
    }

    async fn deregister(&self, queues: &[String]) -> Result<(), Error> {
        self.broker
            .deregister(self.identity.worker(), queues)
            .await?;
        Ok(())
    }

    async fn connect(&self) -> Result<Bananas, Error> {
        self.broker.dedicated().await
    }

    async fn renew(
        &self,
        broker: &Bananas,
        lease: Duration,
        jobs: &[Claimed],
        queues: Option<&Vec<String>>,
    ) -> Result<Renewed, Error> {
        let renewal = Renewal {
            in_flight: jobs,
            lease,
            worker: self.identity.worker(),
            lists: queues.map_or(&[], Vec::as_slice),
            routes: if queues.is_some() {
                self.routes.keys()
            } else {
                &[]
            },
            alive: lease,
        };
        let holds = broker.renew(renewal).await?;
        let (newest, mut gone) = newest_claims(jobs);
        gone.extend(holds.iter().filter_map(|hold| newest.get(hold.as_slice())));
        Ok(Renewed {
            gone,
            ..Renewed::default()
        })
    }

    async fn load(&self, broker: &Bananas) -> Result<(), Error> {
        broker.load().await
    }

    async fn requests(
        &self,
        broker: &Bananas,
        obey: &(dyn Fn(WorkerRequest) + Sync),
    ) -> Result<(), Error> {
        let key = |request| {
            broker
                .keys()
                .worker_request(self.identity.worker(), request)
        };
        broker.obey_requests(key, obey).await
    }

    async fn reclaim(
        &self,
        broker: &Bananas,
        _lease: Duration,
        _intake: &dyn Intake<Claimed>,
    ) -> Result<(), Error> {
        let taken = broker.reclaim().await?;
        if taken != Reclaimed::default() {
            let (requeued, moved) = (taken.requeued.len(), taken.moved);
            tracing::warn!(requeued, moved, "jobs of dead workers reclaimed");
        }
        Ok(())
    }

    async fn maintain(
        &self,
        broker: &Bananas,
        config: &Config,
        _in_flight: &InFlight<Claimed>,
    ) -> Result<Infallible, Error> {
        maintenance::run(broker, self, config.lease).await
    }
}
