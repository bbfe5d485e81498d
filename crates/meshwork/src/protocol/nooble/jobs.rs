//! Actions for the engine: claims, prepares, reports and renews them.

use std::borrow::Cow;
use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::join_all;
use meshwork_broker::nooble::{self, Nooble};
use meshwork_broker::{BlockingConn, Error, MAX_ITEMS, Outages};
use meshwork_model::job::limits::MAX_LOST;
use meshwork_model::nooble::Action;
use meshwork_model::outcome::{Failure, FailureKind, Report};
use meshwork_model::trace::TraceContext;
use meshwork_model::worker_request::WorkerRequest;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::Span;

use super::call::call;
use super::client::CallbackRequest;
use super::context::ActionContext;
use super::error::{ActionError, PROCESSING};
use super::handler::{Deals, data_of, job_of};
use super::maintenance;
use super::message::Message;
use super::queue::Queue;
use super::request::{span as span_id, traceparent};
use super::script_calls::ScriptCalls;
use super::state::NoobleProtocol;
use super::tidy;
use meshwork_runtime::clock::host_micros;
use meshwork_runtime::{ActionCaller, CallActions, Inputs};
use meshwork_worker::Completion;
use meshwork_worker::InFlight;
use meshwork_worker::span::Subject;
use meshwork_worker::{Config, Protocol};
use meshwork_worker::{Exchanged, FetchRequest};
use meshwork_worker::{Failed, FailedRun, Intake, Prepared, Renewed, Step, Waited};

/// Name of the input of a callback's script with the record of its request.
const REQUEST_INPUT: &str = "request";
/// Longest time of the last trace entries and of the deregistration; both also expire.
const DEPART: Duration = Duration::from_secs(2);

impl NoobleProtocol {
    /// Returns the record of a callback's request. Without a record the callback is unrequested or repeated, and is
    /// dropped unless the service accepts it.
    ///
    /// # Errors
    /// The step to take instead of a run.
    async fn asked_for(
        &self,
        message: &Message,
        action: &Action,
    ) -> Result<Option<CallbackRequest>, Step> {
        let id = action.correlation_id.as_deref().unwrap_or_default();
        let names = self.broker.names();
        let key = names.pending_callback(self.client.service(), &action.action_type, id);
        let found = self.refused(message, self.broker.pending_callback(&key).await);
        let found = found.map_err(Step::Again)?;
        if found.is_none() && !self.accept_unsolicited {
            tracing::info!(key, "callback dropped: no pending request, or repeated");
            let finished = self.broker.complete(
                &self.worker,
                &message.received,
                nooble::Completion::default(),
            );
            let finished = self.refused(message, finished.await);
            return Err(finished.map_or_else(Step::Again, |_| Step::Settled));
        }
        let record = found.and_then(|text| serde_json::from_str::<CallbackRequest>(&text).ok());
        let record = record.map(|record| record.of(&action.action_id));
        let mut run = message.run();
        run.asker = record.as_ref().map(|record| span_id(&record.action_id));
        run.record = Some(key);
        Ok(record)
    }

    /// Renews the messages of one queue.
    async fn renew_queue(
        &self,
        broker: &Nooble,
        queue: &Queue,
        held: &[(usize, &Message)],
        lease: Duration,
    ) -> Result<Vec<usize>, Error> {
        let mut gone = Vec::new();
        let proof = |(_, message): &(usize, &Message)| {
            let received = &message.received;
            (received.id.clone(), received.given)
        };
        // Without messages, only the registration is renewed.
        let none = held.is_empty().then_some(&[][..]);
        for part in held.chunks(MAX_ITEMS).chain(none) {
            let proofs: Vec<_> = part.iter().map(proof).collect();
            let lost = broker.renew(&self.worker, &queue.source, &proofs, lease);
            let lost = lost.await?;
            let is_lost = |one: &&(usize, &Message)| lost.contains(&one.1.received.id);
            gone.extend(part.iter().filter(is_lost).map(|(at, _)| *at));
        }
        Ok(gone)
    }
}

/// Returns the record of a callback's request as an input of a script.
fn request_input(record: CallbackRequest) -> Inputs {
    let json = serde_json::to_vec(&record).unwrap_or_default();
    Inputs::single(REQUEST_INPUT, &record.action_id, json)
}

impl Protocol for NoobleProtocol {
    type Job = Arc<Message>;
    type Conn = Nooble;
    type WaitConn = BlockingConn;
    type Queues = Vec<String>;

    const PUSH_DELIVERY: bool = true;
    const BATCH_REPORTS: bool = false;
    const MAX_READS: usize = 2;

    fn worker(&self) -> &str {
        &self.worker
    }

    fn outages(&self) -> &Outages {
        self.broker.outages()
    }

    fn queues(&self) -> &watch::Sender<Arc<Vec<String>>> {
        &self.names
    }

    fn id(job: &Arc<Message>) -> Cow<'_, str> {
        let id = job.action().map(|action| action.action_id.as_str());
        id.unwrap_or_default().into()
    }

    fn queue(job: &Arc<Message>) -> &str {
        job.queue.name()
    }

    /// Types without a handler are not counted, since there may be any number of them.
    fn kind(&self, job: &Arc<Message>) -> Option<String> {
        let action_type = &job.action()?.action_type;
        let known = job.queue.handlers.contains_key(action_type);
        known.then(|| action_type.clone())
    }

    fn span(&self, job: &Arc<Message>) -> (Span, Option<TraceContext>) {
        let queue = job.queue.name();
        let Ok(action) = job.read(self.broker.names().dialect()) else {
            let subject = Subject {
                queue,
                ..Subject::default()
            };
            return subject.run(&self.worker, None);
        };
        let subject = Subject {
            job: &action.action_id,
            kind: &action.action_type,
            queue,
            task: action.task_id.as_deref(),
            ..Subject::default()
        };
        let trace = traceparent(action);
        let trace = trace.and_then(|trace| TraceContext::parse(&trace, None).ok());
        subject.run(&self.worker, trace)
    }

    async fn complete_and_claim(
        &self,
        _config: &Config,
        results: &[Completion<Arc<Message>>],
        fetch: Option<&FetchRequest>,
    ) -> Exchanged<Arc<Message>> {
        let finished = results.iter().map(|one| self.finish(one.job(), one.took));
        let completed = join_all(finished).await.into_iter().collect();
        let fetched = match fetch {
            Some(request) => Some(self.claim(request).await),
            None => None,
        };
        Exchanged { completed, fetched }
    }

    async fn prepare(
        &self,
        config: &Config,
        job: &Arc<Arc<Message>>,
        _trace: Option<&TraceContext>,
    ) -> Step {
        let action = match job.read(self.broker.names().dialect()) {
            Ok(action) => action,
            Err(what) => {
                return Step::End(Report::failed(Failure::new(FailureKind::Permanent, what)));
            }
        };
        let mut record = None;
        if job.queue.callbacks {
            record = match self.asked_for(job, action).await {
                Ok(record) => record,
                Err(step) => return step,
            };
        }
        job.run().began = host_micros();
        let lost = job.received.lost;
        if lost >= MAX_LOST {
            let message = format!("lost: {lost} services went away while they dealt with it");
            let error = ActionError::new("ProcessingError", "LOST", &message).permanent();
            return Step::End(job.failed(error));
        }
        let Some(deals) = job.queue.handlers.get(&action.action_type) else {
            let message = format!("No handler for {}", action.action_type);
            let error = ActionError::new(PROCESSING.0, PROCESSING.1, &message).permanent();
            return Step::End(job.failed(error));
        };
        Step::Run(Box::new(match deals {
            Deals::Function(act) => {
                let stop = CancellationToken::new();
                let (action, client) = (Arc::clone(action), self.client.clone());
                let context = ActionContext::new(action, record, client, stop);
                let runtime = call(act, job, context);
                Prepared::new(runtime, Arc::clone(&self.no_job), config.timeout)
            }
            Deals::Script(entry) => {
                let runtime = entry.runtime.clone();
                let given = Arc::new(job_of(entry, action));
                let calls = ScriptCalls::of_handler(&self.client, action);
                let calls: Arc<dyn CallActions> = Arc::new(calls);
                let mut prepared = Prepared::new(runtime, given, config.timeout);
                prepared.run.inputs = record.map(request_input).unwrap_or_default();
                prepared.run.caller = ActionCaller::new(&calls);
                prepared
            }
        }))
    }

    fn encode(&self, job: &Arc<Message>, report: Report) -> Report {
        let action_type = job.action().map(|action| &action.action_type);
        match (
            action_type.and_then(|it| job.queue.handlers.get(it)),
            &report.result,
        ) {
            (Some(Deals::Script(_)), Ok(output)) => job.ended(data_of(output)),
            _ => report,
        }
    }

    async fn fail(&self, job: &Arc<Message>, failed: &FailedRun<'_>) -> Result<Failed, Error> {
        self.fails(job, failed).await
    }

    /// A message that could not be released is searched later.
    async fn release(&self, job: &Arc<Message>) -> Result<bool, Error> {
        let released = self.broker.release(&self.worker, &job.received).await;
        if released.is_err() {
            job.queue.doubt();
        }
        released
    }

    async fn wait_conn(&self) -> Result<BlockingConn, Error> {
        self.broker.blocking_conn().await
    }

    async fn wait(
        &self,
        _config: &Config,
        conn: &BlockingConn,
        queue: &str,
        most: Duration,
        before: Duration,
    ) -> Result<Waited<Arc<Message>>, Error> {
        let Some(queue) = self.queue(queue) else {
            return Ok(Waited::Nothing);
        };
        let came = self.await_message(conn, queue, (most, before)).await?;
        Ok(came.map_or(Waited::Nothing, Waited::Job))
    }

    async fn end_wait(&self, conn: &BlockingConn) -> Result<(), Error> {
        self.broker.unblock(conn).await
    }

    /// Running actions belong to this worker until it deregisters.
    async fn deregister(&self, _queues: &[String]) -> Result<(), Error> {
        self.leaves.store(true, Ordering::Relaxed);
        Ok(())
    }

    async fn connect(&self) -> Result<Nooble, Error> {
        self.broker.dedicated().await
    }

    async fn renew(
        &self,
        broker: &Nooble,
        lease: Duration,
        jobs: &[Arc<Message>],
        _queues: Option<&Vec<String>>,
    ) -> Result<Renewed, Error> {
        let mut held: HashMap<&str, Vec<(usize, &Message)>> = HashMap::new();
        for (at, job) in jobs.iter().enumerate() {
            held.entry(job.queue.name()).or_default().push((at, job));
        }
        let each = self.queues.iter().map(|queue| {
            let held = held.get(queue.name()).map_or(&[][..], Vec::as_slice);
            self.renew_queue(broker, queue, held, lease)
        });
        let mut renewed = Renewed::default();
        for (queue, outcome) in self.queues.iter().zip(join_all(each).await) {
            match outcome {
                Ok(gone) => renewed.gone.extend(gone),
                Err(error) if error.is_temporary() => return Err(error),
                // Other queues are still renewed; no more is claimed from this one.
                Err(error) => {
                    self.broker.outages().failed("keep", &error);
                    renewed.refused.push(queue.name().to_owned());
                }
            }
        }
        if renewed.refused.is_empty() {
            self.broker.outages().succeeded("keep");
        }
        Ok(renewed)
    }

    async fn load(&self, broker: &Nooble) -> Result<(), Error> {
        broker.load().await
    }

    async fn requests(
        &self,
        broker: &Nooble,
        obey: &(dyn Fn(WorkerRequest) + Sync),
    ) -> Result<(), Error> {
        let key = |request| broker.keys().worker_request(&self.worker, request);
        broker.obey_requests(key, obey).await
    }

    async fn reclaim(
        &self,
        broker: &Nooble,
        lease: Duration,
        intake: &dyn Intake<Arc<Message>>,
    ) -> Result<(), Error> {
        self.reclaim(broker, lease, intake).await
    }

    async fn maintain(
        &self,
        broker: &Nooble,
        config: &Config,
        _in_flight: &InFlight<Arc<Message>>,
    ) -> Result<Infallible, Error> {
        tokio::select! {
            failed = maintenance::run(broker, &self.queues, config.lease) => failed,
            // Over the connection of the runs, so that renewals do not wait.
            never = tidy::tidy(&self.broker, &self.over) => match never {},
        }
    }

    async fn depart(&self) {
        // Other connections may need a runtime that waits for this thread.
        let departs = async {
            let broker = self.broker.dedicated().await?;
            tidy::flush(&broker, &self.over).await;
            if self.leaves.load(Ordering::Relaxed) {
                let leave = |queue: &Arc<Queue>| {
                    let queue = Arc::clone(queue);
                    let broker = &broker;
                    async move { broker.deregister(&self.worker, &queue.source).await }
                };
                let left = join_all(self.queues.iter().map(leave)).await;
                left.into_iter().collect::<Result<Vec<_>, _>>()?;
            }
            Ok::<_, Error>(())
        };
        match tokio::time::timeout(DEPART, departs).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(%error, "worker not deregistered: the registration will expire");
            }
            Err(_) => tracing::warn!("trace entries lost: the buffer was full"),
        }
    }
}
