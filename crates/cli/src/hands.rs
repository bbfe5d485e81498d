//! Who runs the jobs: workers that are there already, if they claim one soon, otherwise one in this process.

use std::time::Duration;

use meshwork::model::name::ScriptType;
use meshwork::model::route::Route;
use meshwork::runner;
use meshwork::{Client, Worker, WorkerHandle};
use tokio::time::Instant;

use crate::error::CommandError;
use crate::exit::Exit;

/// Between two looks whether the others are still there.
const LOOK: Duration = Duration::from_secs(1);
/// How long a job may wait for a worker that listens, before one is started here beside it. One with a free slot
/// claims within milliseconds; one that is busy, stopped or dead costs no more than this.
const UNCLAIMED: Duration = Duration::from_millis(400);
/// Between two looks whether a job was claimed.
pub(crate) const GLANCE: Duration = Duration::from_millis(200);
/// How long to wait for others to return, where nothing here can do their work: a worker that is replaced
/// by a new release is back within it.
const RETURN: Duration = Duration::from_secs(60);

/// How one's own worker works.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort {
    pub(crate) concurrency: usize,
    /// The worker's own default where none is given.
    pub(crate) lease: Option<Duration>,
}

/// Why nobody runs the jobs.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HandsError {
    #[error(
        "nothing runs scripts of type `{script_type}`: here run {known}, and no worker listens to \
         {queue}; correct the type, or start such a worker first"
    )]
    Nobody {
        script_type: String,
        known: String,
        queue: String,
    },
    #[error(
        "the workers that listened to {queue} are gone for {RETURN:?}, and scripts of type \
         `{script_type}` cannot run here: start such a worker, and say the same command again"
    )]
    Gone { script_type: String, queue: String },
}

impl From<HandsError> for CommandError {
    fn from(error: HandsError) -> Self {
        let exit = match error {
            HandsError::Nobody { .. } => Exit::USAGE,
            HandsError::Gone { .. } => Exit::SERVER,
        };
        Self::new(exit, error)
    }
}

/// What runs a command's jobs.
pub(crate) struct Hands {
    client: Client,
    route: Route,
    effort: Effort,
    own: Option<WorkerHandle>,
    looked: Option<Instant>,
    gone: Option<Instant>,
    /// Since when jobs wait, and nobody has claimed one.
    waiting: Option<Instant>,
    /// A worker has claimed one: it serves us, unless it goes away.
    served: bool,
}

impl Hands {
    /// Makes sure that somebody will run the jobs that go to `route`; starts nothing yet.
    pub(crate) async fn find(
        client: &Client,
        route: &Route,
        effort: Effort,
    ) -> Result<Self, CommandError> {
        let hands = Self {
            client: client.clone(),
            route: route.clone(),
            effort,
            own: None,
            looked: None,
            gone: None,
            waiting: None,
            served: false,
        };
        if !hands.can_run() && !client.has_worker(route).await? {
            return Err(nobody(client, route).into());
        }
        Ok(hands)
    }

    fn can_run(&self) -> bool {
        runner::runtimes().any(|known| known == self.route.script_type.as_str())
    }

    /// Whether it is still open who runs the jobs: [`Self::seen`] is to be told of them then.
    pub(crate) fn is_open(&self) -> bool {
        !self.served && self.own.is_none()
    }

    /// Hears what became of the jobs since they were submitted: whether one was claimed, and whether one waits in
    /// a queue.
    pub(crate) fn seen(&mut self, claimed: bool, waits: bool) {
        self.served |= claimed;
        self.waiting = match waits && !self.served {
            true => self.waiting.or_else(|| Some(Instant::now())),
            false => None,
        };
    }

    fn is_unclaimed(&self) -> bool {
        self.waiting
            .is_some_and(|since| since.elapsed() >= UNCLAIMED)
    }

    /// Sees to it that somebody runs the jobs. To be called again and again; it looks every [`LOOK`].
    pub(crate) async fn look(&mut self) -> Result<(), CommandError> {
        let unclaimed = self.can_run() && self.is_unclaimed();
        let looked = self.looked.is_some_and(|looked| looked.elapsed() < LOOK);
        if self.own.is_some() || (looked && !unclaimed) {
            return Ok(());
        }
        let listened = match self.listened().await {
            // Whether they are there cannot be seen now.
            Err(meshwork::Error::Broker(error)) if error.is_temporary() => return Ok(()),
            answer => answer?,
        };
        self.looked = Some(Instant::now());
        if listened && !unclaimed {
            self.gone = None;
        } else if self.can_run() {
            self.own = Some(self.start(listened).await?);
        } else if self.gone.get_or_insert_with(Instant::now).elapsed() > RETURN {
            let script_type = self.route.script_type.to_string();
            let queue = self.route.queue(self.client.broker().keys());
            return Err(HandsError::Gone { script_type, queue }.into());
        }
        Ok(())
    }

    /// Whether a worker listens that is not known to be dead.
    async fn listened(&self) -> Result<bool, meshwork::Error> {
        self.client.reclaim_dead().await?;
        self.client.has_worker(&self.route).await
    }

    async fn start(&self, listened: bool) -> Result<WorkerHandle, CommandError> {
        // What others queued goes back at once when one's own jobs have ended.
        let mut worker = Worker::new(&self.client)
            .script_type(&self.route.script_type)?
            .concurrency(self.effort.concurrency)
            .shutdown_timeout(Duration::ZERO);
        if let Some(lease) = self.effort.lease {
            worker = worker.lease(lease);
        }
        if let Some(group) = &self.route.group {
            worker = worker.group(group.clone());
        }
        let own = worker.start().await?;
        let why = match listened {
            true => "no worker claims a job",
            false => "no worker listens",
        };
        tracing::info!(worker = own.name(), why, "running here");
        Ok(own)
    }

    /// Stops one's own worker in order, if there is one: what it runs goes back at no cost.
    pub(crate) async fn dismiss(&mut self) {
        if let Some(own) = self.own.take() {
            let handed_back = own.stop().await;
            tracing::info!(handed_back, "stopped");
        }
    }
}

/// Refuses a type that neither the seeds nor anybody who listens knows: most likely a misprint, and the job
/// would wait for ever.
pub(crate) async fn check_known(client: &Client, route: &Route) -> Result<(), CommandError> {
    let name = route.script_type.as_str();
    let known = ScriptType::KNOWN.contains(&name) || runner::runtimes().any(|known| known == name);
    if known || client.has_worker(route).await? {
        return Ok(());
    }
    Err(nobody(client, route).into())
}

/// That nothing runs jobs of this type.
fn nobody(client: &Client, route: &Route) -> HandsError {
    HandsError::Nobody {
        script_type: route.script_type.to_string(),
        known: runner::runtimes().collect::<Vec<_>>().join(", "),
        queue: route.queue(client.broker().keys()),
    }
}
