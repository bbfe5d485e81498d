//! Jobs of Hero for the engine: claims, prepares, reports and renews them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use meshwork_broker::{
    BlockingConn, Broker, Claimed, Error, Line, Listener, Logged, Outages, Released, Renewal,
};
use meshwork_model::job::{Job, limits::SUSPECT_LOST};
use meshwork_model::keys::hero::{JobKeys, QueueParts};
use meshwork_model::name::BatchId;
use meshwork_model::outcome::{Failure, FailureKind, Report};
use meshwork_model::route::{Priority, routes::Routes};
use meshwork_model::sandbox::{Effective, RunUsage};
use meshwork_model::time::parse_iso;
use meshwork_model::trace::TraceContext;
use meshwork_model::worker_request::WorkerRequest;
use tokio::sync::{Notify, watch};
use tracing::Span;

use super::child_adder::ChildAdder;
use super::claims::{completed, fetched, result};
use super::control_poll::poll_control;
#[cfg(feature = "scripts")]
use super::flows::with_flow;
use super::job_reads::{inputs, sandbox};
use super::maintenance::{Leadership, maintain, wait_for_wakeups};
use super::objects::RunObjects;
use super::pool::Member;
use super::registry::reclaim_dead;
use super::run_sandbox::RunSandbox;
use super::state::HeroProtocol;
use super::subscription::{Lists, base_of};
use crate::Batch;
use meshwork_runtime as runtime;
use meshwork_runtime::Runtime;
use meshwork_worker::InFlight;
use meshwork_worker::span;
use meshwork_worker::{Completion, Config, Protocol};
use meshwork_worker::{Exchanged, FetchRequest};
use meshwork_worker::{Failed, FailedRun, Intake, Prepared, RIGHTS_FOR, Renewed, Step, Waited};

/// Limit of the release of the worker's name, which also expires.
const DEPART: Duration = Duration::from_millis(500);

/// Returns true if a job may be what killed its workers.
fn is_suspect(job: &Job) -> bool {
    job.lost >= SUSPECT_LOST
}

impl Protocol for HeroProtocol {
    type Job = Claimed;
    type Conn = Broker;
    type WaitConn = BlockingConn;
    type Queues = Lists;

    const KEEPS_LOGS: bool = true;

    fn worker(&self) -> &str {
        self.identity.worker()
    }

    fn outages(&self) -> &Outages {
        self.broker.outages()
    }

    fn queues(&self) -> &watch::Sender<Arc<Lists>> {
        &self.lists
    }

    fn share_limits(&self, one: &str, other: &str) -> bool {
        base_of(one) == base_of(other)
    }

    fn id(job: &Claimed) -> Cow<'_, str> {
        job.job.id.as_str().into()
    }

    fn queue(job: &Claimed) -> &str {
        &job.queue
    }

    fn prefetches(&self) -> bool {
        // Weights count claims: claims of many jobs would let one route have all slots for long.
        !self.places.routes().is_some_and(Routes::is_weighted)
    }

    /// A suspect runs alone, so that it condemns no other job.
    fn is_exclusive(job: &Claimed) -> bool {
        !job.job.concurrent || is_suspect(&job.job)
    }

    /// Each enqueue changes `updated_at`. Records of foreign clients may have another format, or lack it.
    fn ready_ms(job: &Claimed) -> Option<u64> {
        let said = [&job.job.updated_at, &job.job.created_at];
        said.into_iter().find_map(|at| parse_iso(at))
    }

    fn attempt(job: &Claimed) -> Option<u32> {
        Some(job.job.attempt)
    }

    /// The name of an old list replaces the type.
    fn place(&self, queue: &str) -> QueueParts {
        let parts = self.broker.keys().queue_parts(queue);
        let parts = parts.unwrap_or_else(|| QueueParts {
            script_type: queue.to_owned(),
            group: None,
            instance: None,
            priority: Priority::Normal,
        });
        parts.by_routing_key()
    }

    /// An old list has the runtime of the queue to which its jobs return.
    fn runtime(&self, queue: &str) -> String {
        let lists = Arc::clone(&self.lists.borrow());
        let old = lists.old().iter().find(|old| old.list == queue);
        self.place(old.map_or(queue, |old| &old.requeue_to))
            .script_type
    }

    fn runtimes(&self) -> Vec<(String, Arc<dyn Runtime>)> {
        let runtimes = self.runtimes.iter();
        runtimes
            .map(|(name, runtime)| (name.clone(), Arc::clone(runtime)))
            .collect()
    }

    fn note_faults(&self, faults: &BTreeMap<String, String>) {
        self.present.set_faults(faults);
    }

    fn kind(&self, job: &Claimed) -> Option<String> {
        Some(self.place(&job.queue).script_type)
    }

    fn span(&self, job: &Claimed) -> (Span, Option<TraceContext>) {
        span::of_run(job, self.identity.worker())
    }

    fn runtime_of(&self, job: &Claimed) -> Option<&Arc<dyn Runtime>> {
        self.runtime_of_queue(&job.queue)
    }

    async fn complete_and_claim(
        &self,
        config: &Config,
        results: &[Completion<Claimed>],
        fetch: Option<&FetchRequest>,
    ) -> Exchanged<Claimed> {
        let results: Vec<_> = results.iter().map(result).collect();
        let Some(request) = fetch else {
            let finished = self.broker.complete_all(&results).await;
            return Exchanged {
                completed: finished.map(completed),
                fetched: None,
            };
        };
        match self.call(&results, config.lease, request).await {
            Ok((finished, taken)) => Exchanged {
                completed: Ok(completed(finished)),
                fetched: Some(Ok(fetched(taken))),
            },
            Err(error) if results.is_empty() => Exchanged {
                completed: Ok(Vec::new()),
                fetched: Some(Err(error)),
            },
            Err(error) => Exchanged {
                completed: Err(error),
                fetched: None,
            },
        }
    }

    async fn prepare(
        &self,
        _config: &Config,
        claimed: &Arc<Claimed>,
        trace: Option<&TraceContext>,
    ) -> Step {
        let job = &claimed.job;
        if runtime::is_ping(job) {
            return Step::End(Report::done(runtime::PONG));
        }
        let Some(runtime) = self.runtime_of_queue(&claimed.queue) else {
            let message = format!("no runtime for the jobs of {}", claimed.queue);
            let failure = Failure::new(FailureKind::Permanent, message);
            return Step::End(Report::failed(failure));
        };
        if is_suspect(job) {
            match self.broker.isolate(claimed).await {
                Ok(true) => {}
                Ok(false) => return Step::Settled,
                Err(error) => return Step::Again(error),
            }
        }
        let inputs = match inputs(&self.broker, job).await {
            Ok(inputs) => inputs,
            Err(failure) => return Step::End(Report::failed(failure)),
        };
        #[cfg(feature = "scripts")]
        let job = &match with_flow(self, job).await {
            Ok(job) => job,
            Err(failure) => return Step::End(Report::failed(failure)),
        };
        let run_sandbox = RunSandbox::new(&self.broker, &self.sandbox, claimed);
        let sandbox = match runtime.starts_processes() {
            true => sandbox(&self.broker, job, &run_sandbox).await,
            false => Ok(Effective::default()),
        };
        let sandbox = match sandbox {
            Ok(sandbox) => sandbox,
            Err(failure) => return Step::End(Report::failed(failure)),
        };
        let batch = job.batch.clone().map(|id| {
            let (id, token) = (BatchId::foreign(id), claimed.token.clone());
            Batch::of_run(&self.broker, id, job.job_id(), token)
        });
        let timeout = Duration::from_secs(job.timeout);
        let objects = RunObjects::new(&self.broker, self.access.as_ref(), job);
        let mut prepared = Prepared::new(Arc::clone(runtime), Arc::clone(job), timeout);
        let run = &mut prepared.run;
        run.objects = Some(Arc::new(objects));
        run.inputs = inputs;
        run.child_adder = ChildAdder::of_run(&self.broker, claimed, trace.cloned(), &run_sandbox);
        run.caller = self.caller();
        if let Some(batch) = batch {
            run.extensions.insert(batch);
        }
        run.confinement = run_sandbox.confinement(sandbox);
        // A record may name any context, so it does not count.
        run.tenant = match self.broker.keys() {
            JobKeys::Hero(namespace) => format!("node {namespace}"),
            JobKeys::Context(context, _) => format!("context {}", context.context()),
        };
        Step::Run(Box::new(prepared))
    }

    fn encode(&self, claimed: &Claimed, report: Report) -> Report {
        let report = match &report.result {
            // Waiting clients of Bananas read JSON.
            Ok(output) if claimed.job.taken_over => Report {
                result: Ok(runtime::as_json(output).unwrap_or_default().into()),
                ..report
            },
            _ => report,
        };
        report.bounded()
    }

    async fn fail(&self, claimed: &Claimed, failed: &FailedRun<'_>) -> Result<Failed, Error> {
        let pause = failed.failure.after.unwrap_or_else(|| {
            let first = claimed.job.backoff_ms.map(Duration::from_millis);
            self.backoff
                .pause(claimed.job.attempt, first, rand::random())
        });
        let FailedRun {
            failure,
            stdout,
            stderr,
            ..
        } = failed;
        let failed = self.broker.fail(claimed, failure, stdout, stderr, pause);
        Ok(match failed.await? {
            meshwork_broker::Failed::Requeued => {
                self.next_due.note(pause);
                Failed::Retried(claimed.job.attempt)
            }
            meshwork_broker::Failed::Failed => Failed::Dead(claimed.job.attempt),
            meshwork_broker::Failed::Stale => Failed::Stale,
        })
    }

    async fn release(&self, claimed: &Claimed) -> Result<bool, Error> {
        let released = self.broker.release(claimed).await?;
        Ok(released == Released::Released)
    }

    async fn log(
        &self,
        claimed: &Claimed,
        lines: &[Line<'_>],
        progress: Option<&str>,
    ) -> Result<Logged, Error> {
        self.broker.log(claimed, lines, progress).await
    }

    async fn record_usage(&self, claimed: &Claimed, usage: &RunUsage) -> Result<Logged, Error> {
        self.broker.record_usage(claimed, usage).await
    }

    fn polls(&self) -> bool {
        self.pooled.is_some()
    }

    async fn wait_conn(&self) -> Result<BlockingConn, Error> {
        self.broker.blocking_conn().await
    }

    async fn wait(
        &self,
        config: &Config,
        conn: &BlockingConn,
        queue: &str,
        most: Duration,
        _before: Duration,
    ) -> Result<Waited<Claimed>, Error> {
        self.wait_and_claim(config, conn, queue, most).await
    }

    async fn end_wait(&self, conn: &BlockingConn) -> Result<(), Error> {
        self.broker.unblock(conn).await
    }

    async fn deregister(&self, queues: &[String]) -> Result<(), Error> {
        let worker = self.identity.worker();
        self.broker
            .deregister_prefetch(Listener { worker, queues })
            .await?;
        Ok(())
    }

    async fn connect(&self) -> Result<Broker, Error> {
        match &self.pooled {
            Some((pool, _)) => pool.beats(&self.broker).await,
            None => self.broker.dedicated().await,
        }
    }

    async fn renew(
        &self,
        broker: &Broker,
        lease: Duration,
        jobs: &[Claimed],
        queues: Option<&Lists>,
    ) -> Result<Renewed, Error> {
        if queues.is_none() {
            self.present.set_quiet();
        }
        let is_pooled = self.pooled.is_some();
        if is_pooled && jobs.is_empty() {
            // Neither leases nor prefetch lists are to be kept. The call shows that the server answers.
            if !self.member().is_some_and(Member::is_reached) {
                broker.now().await?;
            }
            return Ok(Renewed::default());
        }
        let queues = queues.filter(|_| !is_pooled);
        let listener = Listener {
            worker: self.identity.worker(),
            queues: queues.map_or(&[], meshwork_worker::Queues::names),
        };
        let renewal = Renewal {
            held: jobs,
            lease,
            listener,
            alive: lease,
        };
        let renewed = broker.renew(renewal).await?;
        let places = |ids: &[String]| {
            let all = jobs.iter().enumerate();
            let meant = all.filter(|(_, claimed)| ids.contains(&claimed.job.id));
            meant.map(|(at, _)| at).collect()
        };
        Ok(Renewed {
            gone: places(&renewed.gone),
            cancel: places(&renewed.stop),
            refused: Vec::new(),
        })
    }

    fn rights_for(&self) -> Duration {
        self.member().map_or(RIGHTS_FOR, Member::rights_for)
    }

    async fn lacks(&self, broker: &Broker) -> Result<Option<Vec<&'static str>>, Error> {
        Ok(broker.lacks().await)
    }

    async fn load(&self, broker: &Broker) -> Result<(), Error> {
        if self.pooled.is_none() {
            // A pool would load those of each context: there, calls load what they need.
            broker.load().await?;
        }
        reclaim_dead(broker).await?;
        Ok(())
    }

    async fn requests(
        &self,
        broker: &Broker,
        obey: &(dyn Fn(WorkerRequest) + Sync),
    ) -> Result<(), Error> {
        if self.member().is_some_and(|member| !member.take_request()) {
            return Ok(());
        }
        let key = |request| {
            broker
                .keys()
                .worker_request(self.identity.worker(), request)
        };
        broker.obey_requests(key, obey).await
    }

    async fn reclaim(
        &self,
        broker: &Broker,
        _lease: Duration,
        _intake: &dyn Intake<Claimed>,
    ) -> Result<(), Error> {
        if self.member().is_some_and(|member| !member.take_expired()) {
            return Ok(());
        }
        let taken = broker.reclaim().await?;
        if taken != meshwork_broker::Reclaimed::default() {
            let (requeued, ended, moved) = (&taken.requeued, &taken.ended, taken.moved);
            tracing::warn!(?requeued, ?ended, moved, "jobs of dead workers reclaimed");
        }
        Ok(())
    }

    async fn maintain(
        &self,
        broker: &Broker,
        _config: &Config,
        in_flight: &InFlight<Claimed>,
    ) -> Result<Infallible, Error> {
        let (polls, own) = (watch::Sender::new(Leadership::default()), Notify::new());
        let (leadership, due, member) = (polls.subscribe(), &self.next_due, self.member());
        let wakeup = member.map_or(&own, |member| &member.wakeup);
        let more = || member.into_iter().for_each(Member::expect_poll);
        let tasks = maintain(broker, self.retention, leadership, (due, wakeup), &more);
        let wakeups = async {
            match member {
                Some(_) => std::future::pending().await,
                None => wait_for_wakeups(broker, wakeup).await,
            }
        };
        let is_pooled = member.is_some();
        let Err(error) = tokio::select! {
            failed = poll_control(broker, self, in_flight, &polls) => failed,
            failed = tasks => failed,
            never = wakeups => match never {},
            failed = self.present.keep(broker, in_flight, is_pooled) => failed,
        };
        Err(error)
    }

    async fn runs_ended(&self) {
        self.calls.close().await;
    }

    async fn depart(&self) {
        // Other connections may need a runtime that waits for this thread.
        if let Ok(Ok(broker)) = tokio::time::timeout(DEPART, self.connect()).await {
            let _ = tokio::time::timeout(DEPART, self.present.depart(&broker)).await;
        }
    }
}
