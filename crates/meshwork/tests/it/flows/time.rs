//! Times of a flow, on a clock that the test sets: its timeout, its stops, and what plain runners do meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use meshwork_broker::flow::Flows;
use meshwork_model::keys::context::FlowId;

use super::*;

/// Longest time in which runs of plain runners are noticed.
pub(super) const LOOK: Duration = Duration::from_secs(5);

/// A flow and a stepper in a context, without a worker.
pub(super) struct Timed {
    pub(super) broker: Broker,
    pub(super) flows: FlowClient,
    stepper: Stepper,
    hand: Arc<AtomicU64>,
    pub(super) id: FlowId,
}

impl Timed {
    pub(super) async fn new(yaml: &str, layout: ContextLayout) -> Self {
        let mut timed = Self::of(FlowId(0), layout).await;
        let submitted = timed.flows.submit(&plan(yaml), ActorId(12)).await;
        timed.id = submitted.unwrap();
        timed
    }

    /// A context without the flow.
    pub(super) async fn of(id: FlowId, layout: ContextLayout) -> Self {
        let (clock, hand) = Clock::manual(1_700_000_000_000);
        let node = Broker::new(Conn::embedded(&Handle::in_memory()), JobKeys::default());
        let keys = ContextKeys::new(ContextId::new(7).unwrap(), layout);
        let broker = node.with_clock(clock).of_context(keys).await.unwrap();
        let flows = FlowClient::new(&broker).unwrap();
        let stepper = Stepper::new(&broker).unwrap();
        Self {
            broker,
            flows,
            stepper,
            hand,
            id,
        }
    }

    /// Lets time pass, and takes all steps that are due then.
    pub(super) async fn pass(&self, time: Duration) -> FlowView {
        self.steps(time).await;
        self.flows.status(self.id).await.unwrap()
    }

    pub(super) async fn steps(&self, time: Duration) {
        self.let_pass(time);
        self.broker.promote().await.unwrap();
        while self.stepper.step().await.unwrap().is_none() {}
    }

    pub(super) fn let_pass(&self, time: Duration) {
        let ms = time.as_millis() as u64;
        self.hand.fetch_add(ms, Ordering::SeqCst);
    }

    pub(super) async fn raw<T: redis::FromRedisValue>(&self, words: &[&str]) -> T {
        let mut command = redis::cmd(words[0]);
        command.arg(&words[1..]);
        let conn = &mut self.broker.conn().clone();
        command.query_async(conn).await.unwrap()
    }

    /// Takes the next job as a plain runner, and starts it.
    pub(super) async fn take(&self) -> Option<String> {
        let prefix = Flows::of(&self.broker).unwrap().keys().prefix().to_owned();
        let queue = format!("{prefix}queue:osis");
        let job: Option<String> = self.raw(&["RPOP", &queue]).await;
        let job = job?;
        self.raw::<()>(&["HSET", &job, "status", "started"]).await;
        Some(job)
    }
}

#[tokio::test]
async fn a_timeout_ends_approvals_and_waits_on_time() {
    const ASKS: &str = "
flow: asks
timeout: 60s
jobs:
  ask: {approve: 'Go on?'}
  pause: {wait: {for: 1h}}
  last: {script: '1', type: osis, needs: [ask, pause]}
";
    for layout in ContextLayout::ALL {
        let flow = Timed::new(ASKS, layout).await;
        let view = flow.pass(Duration::from_millis(59_999)).await;
        assert_eq!(ends(&view), "ask=started pause=started last=waiting");
        let view = flow.pass(Duration::from_millis(1)).await;
        assert_eq!(ends(&view), "ask=stopped pause=stopped last=stopped");
        assert_eq!(view.error.as_deref(), Some("timeout"));
        let flow = Timed::new(ASKS, layout).await;
        flow.pass(Duration::from_secs(1)).await;
        assert!(flow.flows.cancel(flow.id, true).await.unwrap());
        let view = flow.pass(Duration::ZERO).await;
        assert_eq!(view.error.as_deref(), Some("stopped"));
    }
}

#[tokio::test]
async fn a_plain_runner_that_does_not_stop_is_not_waited_for() {
    const LONG: &str = "
flow: long
timeout: 60s
jobs:
  a: {script: '1', type: osis}
  b: {script: '1', type: osis, needs: a}
";
    for layout in ContextLayout::ALL {
        let flow = Timed::new(LONG, layout).await;
        flow.pass(Duration::from_secs(1)).await;
        let job = flow.take().await.unwrap();
        let view = flow.pass(Duration::from_secs(59)).await;
        // A job is decided on when all its needs have ended.
        assert_eq!(ends(&view), "a=started b=waiting");
        let stop: Option<String> = flow.raw(&["HGET", &job, "mw_stop"]).await;
        assert_eq!(stop.as_deref(), Some("stopped"));
        let view = flow.pass(LOOK).await;
        assert_eq!(ends(&view), "a=stopped b=stopped");
        assert_eq!(view.error.as_deref(), Some("timeout"));
        // Its late end changes nothing.
        let late = ["HSET", &job, "status", "finished", "result", "{}"];
        flow.raw::<()>(&late).await;
        assert_eq!(ends(&flow.pass(LOOK).await), "a=stopped b=stopped");
    }
}

#[tokio::test]
async fn an_error_of_a_plain_runner_is_retried_and_keeps_its_text() {
    const RETRIES: &str = "
flow: retries
jobs:
  a: {script: '1', type: osis, retries: 2, backoff: 20s, continue: true}
  b: {script: '1', type: osis, needs: a, with: {why: '{{a.error}}'}}
";
    for layout in ContextLayout::ALL {
        let flow = Timed::new(RETRIES, layout).await;
        flow.pass(Duration::from_secs(1)).await;
        for pause in [20, 40] {
            let job = flow.take().await.unwrap();
            flow.raw::<()>(&["HSET", &job, "status", "error", "error", "boom"])
                .await;
            assert_eq!(ends(&flow.pass(LOOK).await), "a=ready b=waiting");
            flow.pass(Duration::from_secs(pause - 1)).await;
            assert_eq!(flow.take().await, None);
            flow.pass(Duration::from_secs(1)).await;
        }
        let job = flow.take().await.unwrap();
        let failed = ["HSET", &job, "status", "error", "result"];
        flow.raw::<()>(&[&failed[..], &["{\"error\":\"the last\"}"]].concat())
            .await;
        let view = flow.pass(LOOK).await;
        assert_eq!(ends(&view), "a=error b=ready");
        assert_eq!(view.job("a").unwrap().error.as_deref(), Some("the last"));
        let job = flow.take().await.unwrap();
        let input: String = flow.raw(&["HGET", &job, "mw_input"]).await;
        assert_eq!(input, "{\"why\":\"the last\"}");
    }
}

/// Whoever may write jobs ends no approval by it.
#[tokio::test]
async fn a_written_status_is_no_answer() {
    const ASKS: &str = "{flow: asks, jobs: {ask: {approve: 'Go on?'}, last: {script: '1', type: osis, needs: ask}}}";
    for layout in ContextLayout::ALL {
        let flow = Timed::new(ASKS, layout).await;
        let view = flow.pass(Duration::ZERO).await;
        let id = flow.flows.job_id(&view.jobs[0].id).unwrap();
        let answer = "{\"answer\":\"yes\",\"by\":\"7\"}";
        let forged = ["HSET", id.as_str(), "status", "finished", "mw_answer"];
        flow.raw::<()>(&[&forged[..], &["yes 7", "result", answer]].concat())
            .await;
        assert_eq!(ends(&flow.pass(LOOK).await), "ask=started last=waiting");
        let status: String = flow.raw(&["HGET", id.as_str(), "status"]).await;
        assert_eq!(status, "started");
    }
}
