//! Flows: random flows of deterministic scripts are submitted and run by processes of the real command, on a
//! redis-server and on the embedded engine. Workers, submitters and the server are killed meanwhile.
//!
//! In the end each flow has ended as in memory: the same ends and results of all jobs. No job has started before its
//! needs had ended, by the logs of the workers and by a file to which programs append.

mod judge;
mod random;
mod report;
mod slots;
mod submit;

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use meshwork::context::{Node, read_key};
use meshwork::flow::{FlowClient, FlowView};
use meshwork_broker::flow::Flows;
use meshwork_model::access::{Object, Operation};
use meshwork_model::keys::context::FlowId;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::ChaosError;
use super::callers::{Callers, Files};
use super::fleet::troop::{LEASE, Member, Quarters, peace};
use super::hostile::starts::{LOG, Written};
use super::hostile::store::Store;
use super::hostile::{Engine, failed};
use judge::Noted;
pub use report::{EngineReport, Report};
pub use slots::{SlotReport, play_slots};
use submit::{Submitted, Submitting};

/// Workers on each engine.
const WORKERS: usize = 3;
/// Longest pause before a kill.
const SOON: Duration = Duration::from_millis(400);
/// Downtime of a killed server.
const AWAY: Duration = Duration::from_millis(300);
/// Longest time in which no further flow ends, after the last kill.
const END: Duration = Duration::from_secs(60);
/// Interval of polling.
const LOOK: Duration = Duration::from_millis(200);
/// Longest time of the command that makes the context.
const FIRST: Duration = Duration::from_secs(60);

/// Size and choices of a play.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The `meshwork` binary.
    pub binary: PathBuf,
    /// Engines, one after the other.
    pub engines: Vec<Engine>,
    /// Flows on each engine.
    pub dags: usize,
    /// Kills on each engine.
    pub kills: u32,
    /// Seed for the choice of flows, moments and victims. The timing differs from run to run.
    pub seed: u64,
    /// Function that gets each line of progress.
    pub progress: fn(&str),
}

/// Plays on each engine of the plan.
///
/// # Errors
/// This machine lacks a program, a worker ends by itself, a program gets stuck, or files cannot be written.
pub async fn play(plan: &Plan) -> Result<Report, ChaosError> {
    let mut engines = Vec::new();
    for engine in &plan.engines {
        engines.push(on(plan, *engine).await?);
    }
    let seed = plan.seed;
    Ok(Report { seed, engines })
}

async fn on(plan: &Plan, engine: Engine) -> Result<EngineReport, ChaosError> {
    let began = Instant::now();
    let dir = tempfile::Builder::new().prefix("mw-f-").tempdir();
    let dir = dir.map_err(ChaosError::io("a temporary directory"))?;
    let mut store = Store::start(engine, dir.path(), None)?;
    let tally = dir.path().join("tally");
    let quarters = quarters(plan, dir.path(), &store);
    make_context(&quarters).await?;
    let mut troop = Vec::new();
    for number in 0..WORKERS {
        troop.push(Member::start(&quarters, number)?);
    }
    for member in &mut troop {
        member.listens().await?;
    }
    let mut submitting = Submitting::start(&quarters, tally.clone(), plan.dags, plan.seed);
    let mut kills = Kills {
        random: StdRng::seed_from_u64(plan.seed),
        counts: [0; 3],
    };
    let mut finished = Vec::new();
    for number in 0..plan.kills as usize {
        let reached = plan.dags * number / (plan.kills as usize);
        finished.extend(submitting.ended(reached).await?);
        kills
            .kill(&mut store, &mut troop, &quarters, &submitting)
            .await?;
        if number % 20 == 19 {
            (plan.progress)(&format!("{}: {} kills", engine.name(), number + 1));
        }
    }
    let submitted = submitting.end(finished).await?;
    (plan.progress)(&format!("{}: all flows have ended", engine.name()));
    let seen = Seen::read(&store, dir.path(), &mut troop).await?;
    for member in troop {
        member.stop().await?;
    }
    let mut report = EngineReport::new(engine, plan.dags, kills.counts);
    seen.judge(&submitted, noted(dir.path(), &tally)?, &mut report);
    report.seconds = began.elapsed().as_secs();
    if !report.holds() {
        // Keeps the logs of the workers for a search for the reason.
        report.files = Some(dir.keep());
    }
    Ok(report)
}

/// Returns the settings that all commands share.
fn quarters<'a>(plan: &'a Plan, dir: &'a Path, store: &Store) -> Quarters<'a> {
    Quarters {
        binary: &plan.binary,
        dir,
        types: "osis,exec",
        more: &["--context", "all"],
        lease: LEASE,
        environment: vec![
            store.variable(),
            ("XDG_CONFIG_HOME", dir.join("config").into()),
            ("RUST_LOG", LOG.into()),
            ("MESHWORK_LOG_FORMAT", "json".into()),
        ],
        faketime: None,
    }
}

/// Makes an actor and a context.
async fn make_context(quarters: &Quarters<'_>) -> Result<(), ChaosError> {
    let callers = Callers::new(quarters);
    let (stdout, stderr) = (quarters.dir.join("first"), quarters.dir.join("first.err"));
    let files = Files {
        stdout: &stdout,
        stderr: &stderr,
    };
    let words = ["context", "create"].map(str::to_owned);
    let status = callers.call(&words, "", files, FIRST).await?;
    if status.success() {
        return Ok(());
    }
    Err(ChaosError::Ended {
        program: words.join(" "),
        status: status.to_string(),
        said: fs::read_to_string(stderr).unwrap_or_default(),
    })
}

/// The kills of a play.
struct Kills {
    random: StdRng,
    /// Killed workers, submitters and servers.
    counts: [u32; 3],
}

impl Kills {
    /// Kills a process at a random moment, and starts it again. A submitter is started again by its task.
    async fn kill(
        &mut self,
        store: &mut Store,
        troop: &mut [Member],
        quarters: &Quarters<'_>,
        submitting: &Submitting,
    ) -> Result<(), ChaosError> {
        peace(troop, SOON.mul_f64(self.random.random())).await?;
        let kind = match self.random.random_range(0..100) {
            50..90 if submitting.kill(&mut self.random).is_some() => 1,
            90.. if matches!(store, Store::Server { .. }) => {
                store.kill();
                peace(troop, AWAY).await?;
                store.start_again();
                2
            }
            _ => {
                let victim = self.random.random_range(0..troop.len());
                troop[victim].replace(quarters).await?;
                0
            }
        };
        self.counts[kind] += 1;
        Ok(())
    }
}

/// Reads the flows of the context.
struct Reader {
    flows: Flows,
    client: FlowClient,
}

impl Reader {
    async fn open(store: &Store, dir: &Path) -> Result<Self, ChaosError> {
        let broker = store.broker().await?;
        let node = Node::of(&broker);
        let key = read_key(&dir.join("config/meshwork/actor.key")).map_err(|it| failed(&it))?;
        let me = node.identify(key).await.map_err(|it| failed(&it))?;
        let contexts = node.contexts().await.map_err(|it| failed(&it))?;
        let context = contexts
            .first()
            .ok_or_else(|| ChaosError::Line("there is no context".to_owned()))?;
        let client = context.client(&me, Object::Flow, Operation::Read).await;
        let client = client.map_err(|it| failed(&it))?;
        let none = || ChaosError::Line("a context has no flows".to_owned());
        Ok(Self {
            flows: Flows::of(client.broker()).ok_or_else(none)?,
            client: FlowClient::new(client.broker()).map_err(|it| failed(&it))?,
        })
    }
}

/// All flows of the store, after their ends.
struct Seen {
    flows: Flows,
    views: Vec<FlowView>,
    /// Flows that have not ended.
    open: Vec<String>,
}

impl Seen {
    /// Waits for the ends of all flows, also of those of killed submitters, and reads them.
    async fn read(store: &Store, dir: &Path, troop: &mut [Member]) -> Result<Self, ChaosError> {
        let Reader {
            flows,
            client: reader,
        } = Reader::open(store, dir).await?;
        let last = flows.draw().await.map_err(|it| failed(&it))?;
        let last = last.map_or(0, |id| id.0);
        let (mut until, mut least) = (Instant::now() + END, usize::MAX);
        let open = loop {
            let open = open(&flows, last).await?;
            if open.len() < least {
                (until, least) = (Instant::now() + END, open.len());
            }
            if open.is_empty() || Instant::now() > until {
                break open;
            }
            peace(troop, LOOK).await?;
        };
        let mut views = Vec::new();
        for id in (1..last).map(FlowId) {
            let record = flows.record(id).await.map_err(|it| failed(&it))?;
            if record.contains_key("status") {
                views.push(reader.status(id).await.map_err(|it| failed(&it))?);
            }
        }
        Ok(Self { flows, views, open })
    }

    /// Compares all flows with their outcomes in memory.
    fn judge(self, submitted: &Submitted, noted: Noted, report: &mut EngineReport) {
        report.open = self.open;
        report.flows = self.views.len();
        let there = |id: &FlowId| self.views.iter().any(|view| view.id == *id);
        let lost = submitted.accepted.iter().filter(|id| !there(id));
        report
            .wrong
            .extend(lost.map(|id| format!("flow {id} was accepted, and is not there")));
        for view in &self.views {
            let Some(dag) = submitted.dags.get(&view.name) else {
                report
                    .wrong
                    .push(format!("nobody has submitted {}", view.name));
                continue;
            };
            let items: usize = view.jobs.iter().map(|job| job.items.len()).sum();
            report.jobs += view.jobs.len() + items;
            report.failed += usize::from(view.status == "error");
            let cancelled = submitted.cancelled.contains(&view.id);
            let named = |line: String| format!("flow {} ({}): {line}", view.id, view.name);
            let wrong = judge::outcome(dag, view, cancelled);
            report.wrong.extend(wrong.into_iter().map(named));
            let log_name = |key: &str| Some(self.flows.job_id(key.parse().ok()?).to_string());
            let early = noted.order(dag, view, log_name);
            report.early.extend(early.into_iter().map(named));
        }
        report.starts = noted.starts.values().map(Vec::len).sum();
        report.started = noted.starts.len();
    }
}

/// Returns the flows that have not ended. Those of killed submitters that were never sealed do not begin.
async fn open(flows: &Flows, last: u32) -> Result<Vec<String>, ChaosError> {
    let mut open = Vec::new();
    for id in (1..last).map(FlowId) {
        let record = flows.record(id).await.map_err(|it| failed(&it))?;
        let status = record.get("status").map(String::as_str);
        if status.is_some_and(|status| !matches!(status, "finished" | "error")) {
            open.push(format!("flow {id}: {record:?}"));
        }
    }
    Ok(open)
}

/// Reads all that is noted outside of the store.
fn noted(dir: &Path, tally: &Path) -> Result<Noted, ChaosError> {
    let mut starts: HashMap<String, Vec<Duration>> = HashMap::new();
    for start in Written::read(dir, &dir.join("none"))?.starts {
        starts.entry(start.job).or_default().push(start.at);
    }
    let text = match fs::read_to_string(tally) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        text => text.map_err(ChaosError::io("the tally"))?,
    };
    Ok(Noted::read(&text, starts))
}
