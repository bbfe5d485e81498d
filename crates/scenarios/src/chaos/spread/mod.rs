//! A queue over four parts, then over eight: jobs of many keys are enqueued while workers and redis-servers are killed, and
//! the number of parts changes in the middle.
//!
//! In the end each job has run, in the order of its key, and a repeated run follows the run that a kill has ended. Jobs without a
//! key are divided evenly.

mod report;
mod servers;
mod worker;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use meshwork::Client;
use meshwork::context::{Identity, Node, new_key, write_key};
use meshwork::spread::{Spread, SpreadError, SpreadName};
use meshwork_model::keys::context::ContextKeys;
use meshwork_model::queue::QueueSetting;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::process::Command;

use super::ChaosError;
use super::hostile::failed;
use super::process::Process;
pub use report::Report;
pub use servers::Kind;
use servers::Servers;
pub use worker::be_worker;

/// Namespace, with the hash tag that a Cluster needs.
const NAMESPACE: &str = "{mw}";
/// Number of keys.
const KEYS: usize = 100;
/// Parts at first, and after the change.
const PARTS: [usize; 2] = [4, 8];
/// Number of workers.
const WORKERS: usize = 2;
/// Jobs in one call.
const TOGETHER: usize = 500;
/// Jobs without a key, as a share of those with one.
const PLAIN: usize = 4;
/// Longest pause before a kill.
const SOON: Duration = Duration::from_millis(500);
/// Longest time without progress.
const END: Duration = Duration::from_secs(120);
/// Interval of polling.
const LOOK: Duration = Duration::from_millis(50);

/// Size and choices of a play.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Program and arguments of a worker of this scenario, which runs [`be_worker`].
    pub worker: (PathBuf, Vec<String>),
    /// Servers of the store.
    pub servers: Kind,
    /// Number of jobs with a key.
    pub jobs: usize,
    /// Number of kills.
    pub kills: u32,
    /// Seed for the choice of moments and victims. The timing differs from run to run.
    pub seed: u64,
    /// Function that gets each line of progress.
    pub progress: fn(&str),
}

fn name() -> Result<SpreadName, ChaosError> {
    "step".parse().map_err(|error| failed(&error))
}

/// All processes, and the queue.
struct Cast<'a> {
    plan: &'a Plan,
    dir: PathBuf,
    servers: Servers,
    workers: Vec<Process>,
}

impl Cast<'_> {
    fn worker(&self, number: usize) -> Result<Process, ChaosError> {
        let (program, arguments) = &self.plan.worker;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(&self.dir)
            .env_remove("MESHWORK_DATA")
            .env("REDIS_URL", self.servers.url())
            .env("MESHWORK_ACTOR_KEY", key_file(&self.dir));
        Process::start(command, &self.dir, &format!("worker-{number}"))
    }

    /// Kills a worker or, every fourth time, a server with `kill -9`, and starts it again.
    async fn kill(&mut self, due: u32, random: &mut StdRng) -> Result<usize, ChaosError> {
        if due % 4 == 3 {
            self.servers.kill_one(random);
            return Ok(1);
        }
        let one = random.random_range(0..WORKERS);
        self.workers[one].kill().await?;
        self.workers[one] = self.worker(one)?;
        Ok(0)
    }
}

fn key_file(dir: &Path) -> PathBuf {
    dir.join("actor.key")
}

/// Plays until each job has ended.
///
/// # Errors
/// There is no redis-server, a process ends by itself, or nothing goes on for two minutes.
pub async fn play(plan: &Plan) -> Result<Report, ChaosError> {
    let began = Instant::now();
    let dir = tempfile::Builder::new().prefix("mw-p-").tempdir();
    let dir = dir.map_err(ChaosError::io("a temporary directory"))?;
    let servers = Servers::start(plan.servers).await?;
    let mut random = StdRng::seed_from_u64(plan.seed);
    let client = worker::client(&servers.url()).await;
    let client = client.map_err(|it| failed(&it))?;
    let (node, me) = actor(&client, dir.path()).await?;
    prepare(&node, &me).await?;
    let dir = dir.path().to_owned();
    let workers = Vec::new();
    let mut cast = Cast {
        plan,
        dir,
        servers,
        workers,
    };
    for number in 0..WORKERS {
        cast.workers.push(cast.worker(number)?);
    }
    for process in &mut cast.workers {
        process.says("ready").await?;
    }
    let submitted = submit(&node, &me, plan.jobs);
    let ((), kills) = tokio::try_join!(submitted, kill(plan, &mut cast, &mut random))?;
    let mut report = Report::new(plan, kills);
    let (mut seen, mut until) = (0, Instant::now() + END);
    let mut looks = tokio::time::interval(LOOK);
    while Instant::now() < until {
        looks.tick().await;
        cast.workers.iter_mut().try_for_each(Process::is_there)?;
        let Ok(runs) = worker::runs(&client, KEYS).await else {
            continue;
        };
        let total: usize = runs.values().map(|of_key| report::distinct(of_key)).sum();
        if total == plan.jobs {
            break;
        }
        if total > seen {
            (seen, until) = (total, Instant::now() + END);
        }
    }
    report.judge(&worker::runs(&client, KEYS).await?);
    report.counts = even(&node, &me, plan.jobs / PLAIN).await?;
    report.moving = until_settled(&node).await?;
    for process in &mut cast.workers {
        process.stop().await?;
    }
    report.seconds = began.elapsed().as_secs();
    Ok(report)
}

/// Kills one after the other. Returns the numbers of workers and servers.
async fn kill(
    plan: &Plan,
    cast: &mut Cast<'_>,
    random: &mut StdRng,
) -> Result<[u32; 2], ChaosError> {
    let mut kills = [0; 2];
    for due in 0..plan.kills {
        let pause = SOON.mul_f64(random.random());
        tokio::time::timeout(pause, ends(&mut cast.workers))
            .await
            .map_or(Ok(()), Err)?;
        kills[cast.kill(due, random).await?] += 1;
        if (due + 1).is_multiple_of(10) {
            (plan.progress)(&format!("{}: {} kills", plan.servers.name(), due + 1));
        }
    }
    Ok(kills)
}

async fn ends(workers: &mut [Process]) -> ChaosError {
    let mut looks = tokio::time::interval(LOOK);
    loop {
        looks.tick().await;
        if let Err(error) = workers.iter_mut().try_for_each(Process::is_there) {
            return error;
        }
    }
}

/// Makes the actor, whose key the workers use.
async fn actor(client: &Client, dir: &Path) -> Result<(Node, Identity), ChaosError> {
    let (node, key) = (Node::of(client.broker()), new_key());
    write_key(&key_file(dir), &key, None).map_err(|it| failed(&it))?;
    node.trust(key.public(), None)
        .await
        .map_err(|it| failed(&it))?;
    let me = node.identify(key).await.map_err(|it| failed(&it))?;
    Ok((node, me))
}

/// Makes the parts, in which jobs of a key run one after the other.
async fn prepare(node: &Node, me: &Identity) -> Result<(), ChaosError> {
    let name = name()?;
    let spread = node.spread_queue(me, &name, PARTS[0]).await;
    let layout = spread.map_err(|it| failed(&it))?;
    let spread = Spread::open(node, me, name.clone())
        .await
        .map_err(|it| failed(&it))?;
    for id in layout.parts {
        let client = spread.part(id).await.map_err(|it| failed(&it))?;
        let queue = client.broker().keys().parse_work_queue(&name.to_string());
        let queue = queue.map_err(|it| failed(&it))?;
        let one = [QueueSetting::KeyConcurrency(Some(1))];
        client
            .update_queue(&queue, &one)
            .await
            .map_err(|it| failed(&it))?;
    }
    Ok(())
}

/// Enqueues the jobs, those of a key in their order, and changes the number of parts in the middle. A call that fails is
/// repeated: names make the jobs unique.
async fn submit(node: &Node, me: &Identity, jobs: usize) -> Result<(), ChaosError> {
    let open = Spread::open(node, me, name()?).await;
    let spread = open.map_err(|it| failed(&it))?;
    let numbers: Vec<_> = (0..jobs).collect();
    for (at, together) in numbers.chunks(TOGETHER).enumerate() {
        if at == jobs / TOGETHER / 2 {
            repeated(async || node.spread_queue(me, spread.name(), PARTS[1]).await).await?;
        }
        repeated(async || {
            let requests = together.iter().map(|n| worker::request(n % KEYS, n / KEYS));
            let requests: Result<Vec<_>, _> = requests.collect();
            let answers = spread.enqueue_all(requests?).await?;
            answers.into_iter().collect::<Result<Vec<_>, _>>()
        })
        .await?;
    }
    Ok(())
}

/// Repeats a call while the server is down.
async fn repeated<T>(call: impl AsyncFn() -> Result<T, SpreadError>) -> Result<T, ChaosError> {
    let (until, mut again) = (Instant::now() + END, tokio::time::interval(LOOK));
    loop {
        again.tick().await;
        match call().await {
            Ok(done) => return Ok(done),
            Err(_) if Instant::now() < until => {}
            Err(error) => return Err(failed(&error)),
        }
    }
}

/// Enqueues jobs without a key. Returns the number in each part.
async fn even(node: &Node, me: &Identity, jobs: usize) -> Result<Vec<usize>, ChaosError> {
    let open = Spread::open(node, me, name()?).await;
    let spread = open.map_err(|it| failed(&it))?;
    let requests = (0..jobs)
        .map(|_| worker::plain())
        .collect::<Result<Vec<_>, _>>();
    let answers = spread
        .enqueue_all(requests.map_err(|it| failed(&it))?)
        .await;
    let mut counts: BTreeMap<_, usize> = BTreeMap::new();
    for id in answers.map_err(|it| failed(&it))? {
        let id = id.map_err(|it| failed(&it))?;
        *counts
            .entry(ContextKeys::named_in(id.as_str()))
            .or_default() += 1;
    }
    Ok(counts.into_values().collect())
}

/// Waits until no key moves any more. Returns the number of those that do.
async fn until_settled(node: &Node) -> Result<usize, ChaosError> {
    let (name, until) = (name()?, Instant::now() + END);
    let mut looks = tokio::time::interval(LOOK);
    loop {
        looks.tick().await;
        match node.settle_spread(&name).await {
            Ok(0) => return Ok(0),
            Ok(_) | Err(_) if Instant::now() < until => {}
            Ok(keys) => return Ok(keys),
            Err(error) => return Err(failed(&error)),
        }
    }
}
