//! Runners that do what a test tells them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use meshwork::Client;
use meshwork::runtime::{Run, Runtime};
use meshwork_model::name::ScriptType;
use meshwork_model::outcome::{Failure, FailureKind, Report};
use meshwork_model::sandbox::Usage;
use meshwork_test_servers::eventually;
use tokio::sync::watch;

const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn osis() -> ScriptType {
    ScriptType::OSIS.parse().unwrap()
}

/// A command as somebody types it.
pub(crate) async fn raw<T: redis::FromRedisValue>(client: &Client, words: &[&str]) -> T {
    let mut command = redis::cmd(words[0]);
    command.arg(&words[1..]);
    let conn = &mut client.broker().conn().clone();
    command.query_async(conn).await.unwrap()
}

type Act = Box<dyn Fn(Run) -> BoxFuture<'static, Report> + Send + Sync>;

/// A runner that does what it was made with, and counts.
pub(crate) struct Scripted {
    act: Act,
    runs: AtomicUsize,
}

impl Scripted {
    /// Answers with the script.
    pub(crate) fn echo() -> Arc<Self> {
        Self::new(|run| Report::done(run.job.script.clone()))
    }

    /// Fails if the script is `fail`.
    pub(crate) fn obedient() -> Arc<Self> {
        Self::new(|run| match &*run.job.script {
            b"fail" => Report::failed(Failure::new(FailureKind::Script, "it fails")),
            _ => Report::done("1"),
        })
    }

    /// Answers with what `act` makes of the run, in the task of the worker.
    pub(crate) fn new(act: impl Fn(Run) -> Report + Send + Sync + Clone + 'static) -> Arc<Self> {
        let act = move |run| {
            let act = act.clone();
            async move { act(run) }.boxed()
        };
        Arc::new(Self {
            act: Box::new(act),
            runs: AtomicUsize::new(0),
        })
    }

    /// Waits at the gate, then answers with the script.
    pub(crate) fn gated(gate: &Gate) -> Arc<Self> {
        Self::gated_after(gate, |_| {})
    }

    /// The same, with resources that each run has used.
    pub(crate) fn gated_using(gate: &Gate) -> Arc<Self> {
        let used = Usage {
            user_ms: 20,
            system_ms: 10,
            peak_memory: 1 << 20,
            written: 4096,
        };
        Self::gated_after(gate, move |run| {
            let _ = run.usage.set(used);
        })
    }

    /// The same, after it has done something.
    pub(crate) fn gated_after(
        gate: &Gate,
        before: impl Fn(&Run) + Send + Sync + 'static,
    ) -> Arc<Self> {
        let gate = gate.clone();
        let act = move |run: Run| {
            before(&run);
            let gate = gate.clone();
            async move { gate.pass(run).await }.boxed()
        };
        Arc::new(Self {
            act: Box::new(act),
            runs: AtomicUsize::new(0),
        })
    }

    /// The number of runs so far.
    pub(crate) fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }
}

impl Runtime for Scripted {
    fn run(&self, run: Run) -> BoxFuture<'_, Report> {
        self.runs.fetch_add(1, Ordering::SeqCst);
        (self.act)(run)
    }
}

/// Keeps runs waiting until it is opened; counts those that wait and those that were stopped.
#[derive(Clone)]
pub(crate) struct Gate {
    waiting: watch::Sender<usize>,
    stopped: watch::Sender<usize>,
    open: watch::Sender<bool>,
}

impl Gate {
    pub(crate) fn new() -> Self {
        Self {
            waiting: watch::Sender::new(0),
            stopped: watch::Sender::new(0),
            open: watch::Sender::new(false),
        }
    }

    pub(crate) fn open(&self) {
        self.open.send_replace(true);
    }

    /// Returns when so many runs have come to the gate.
    pub(crate) async fn wait_for(&self, runs: usize) {
        let mut waiting = self.waiting.subscribe();
        let arrived = waiting.wait_for(|waiting| *waiting >= runs);
        tokio::time::timeout(PATIENCE, arrived)
            .await
            .expect("runs at the gate")
            .unwrap();
    }

    /// Waits until a run was cancelled.
    pub(crate) async fn wait_stopped(&self) {
        let mut stopped = self.stopped.subscribe();
        let cancelled = stopped.wait_for(|stopped| *stopped > 0);
        tokio::time::timeout(PATIENCE, cancelled)
            .await
            .expect("a run is stopped")
            .unwrap();
    }

    async fn pass(&self, run: Run) -> Report {
        self.waiting.send_modify(|waiting| *waiting += 1);
        let mut open = self.open.subscribe();
        tokio::select! {
            _ = open.wait_for(|open| *open) => {}
            _ = run.stop.stopped() => {
                self.stopped.send_modify(|stopped| *stopped += 1);
                return Report::failed(Failure::stopped());
            }
        }
        Report::done(run.job.script.clone())
    }
}

/// Holds the calling thread until the lease of `id` has been extended `times` times. Looks from another
/// thread, since this one may be the only one that its runtime has.
pub(crate) fn block_until_renewed(url: &str, id: &str, times: usize) {
    let (url, id) = (url.to_owned(), id.to_owned());
    let look = move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let client = redis::Client::open(url).unwrap();
            let mut conn = client.get_multiplexed_async_connection().await.unwrap();
            let (mut last, mut extended) = (None, 0);
            eventually("the lease is extended", PATIENCE, async || {
                let mut score = redis::cmd("ZSCORE");
                score.arg("hero:q:lease").arg(&id);
                let deadline: Option<f64> = score.query_async(&mut conn).await.unwrap();
                if deadline != last {
                    extended += usize::from(last.is_some());
                    last = deadline;
                }
                (extended >= times).then_some(())
            })
            .await;
        });
    };
    std::thread::spawn(look).join().unwrap();
}
