//! Submitters: tasks that submit one flow after the other with `flow run` or `flow submit`, cancel some, and wait for
//! their ends. Each of these processes may be killed, and is started again.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use meshwork_model::keys::context::FlowId;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::random::Dag;
use crate::chaos::ChaosError;
use crate::chaos::callers::{Callers, Files};
use crate::chaos::fleet::troop::Quarters;
use crate::chaos::hostile::failed;

/// Tasks, and so the most flows that are open, beside copies of killed submitters.
const SUBMITTERS: u64 = 6;
/// Longest time of a call, within which a flow has to end.
const CALL: Duration = Duration::from_secs(300);
/// Tries of a call: each is killed, or finds no server.
const TRIES: usize = 40;
/// Pause before a call that was killed is repeated.
const AGAIN: Duration = Duration::from_millis(100);
/// Longest time until a flow is cancelled.
const CANCEL: Duration = Duration::from_millis(700);

/// Submitted flows.
#[derive(Debug, Default)]
pub(super) struct Submitted {
    /// The flows by name. A killed submitter leaves copies.
    pub(super) dags: HashMap<String, Dag>,
    /// Flows that somebody cancelled.
    pub(super) cancelled: BTreeSet<FlowId>,
    /// Accepted flows.
    pub(super) accepted: Vec<FlowId>,
}

struct Shared {
    callers: Callers,
    tally: PathBuf,
    dags: usize,
    seed: u64,
    next: AtomicUsize,
    done: watch::Sender<usize>,
}

/// Running submitters.
pub(super) struct Submitting {
    shared: Arc<Shared>,
    tasks: JoinSet<Result<Submitted, ChaosError>>,
}

impl Submitting {
    pub(super) fn start(quarters: &Quarters<'_>, tally: PathBuf, dags: usize, seed: u64) -> Self {
        let shared = Arc::new(Shared {
            callers: Callers::new(quarters),
            tally,
            dags,
            seed,
            next: AtomicUsize::new(0),
            done: watch::Sender::new(0),
        });
        let mut tasks = JoinSet::new();
        for number in 0..SUBMITTERS {
            let (shared, seed) = (Arc::clone(&shared), seed.wrapping_add(number));
            tasks.spawn(async move { submit(&shared, StdRng::seed_from_u64(seed)).await });
        }
        Self { shared, tasks }
    }

    /// Waits until so many flows have ended. Fails if a submitter does.
    pub(super) async fn ended(&mut self, flows: usize) -> Result<Vec<Submitted>, ChaosError> {
        let mut done = self.shared.done.subscribe();
        let mut finished = Vec::new();
        loop {
            tokio::select! {
                reached = done.wait_for(|done| *done >= flows) => {
                    reached.map_err(|error| failed(&error))?;
                    return Ok(finished);
                }
                Some(task) = self.tasks.join_next() => {
                    finished.push(task.map_err(|error| failed(&error))??);
                }
            }
        }
    }

    /// Kills a process of the submitters with `kill -9`, if there is one.
    pub(super) fn kill(&self, random: &mut StdRng) -> Option<u32> {
        self.shared.callers.kill(random)
    }

    /// Waits until all flows are submitted and have ended.
    pub(super) async fn end(mut self, mut all: Vec<Submitted>) -> Result<Submitted, ChaosError> {
        all.extend(self.ended(self.shared.dags).await?);
        while let Some(task) = self.tasks.join_next().await {
            all.push(task.map_err(|error| failed(&error))??);
        }
        let mut total = Submitted::default();
        for one in all {
            total.dags.extend(one.dags);
            total.cancelled.extend(one.cancelled);
            total.accepted.extend(one.accepted);
        }
        Ok(total)
    }
}

async fn submit(shared: &Shared, mut random: StdRng) -> Result<Submitted, ChaosError> {
    let mut all = Submitted::default();
    loop {
        let number = shared.next.fetch_add(1, Ordering::SeqCst);
        if number >= shared.dags {
            return Ok(all);
        }
        let file = shared.callers.dir.join(format!("flow-{number}.yaml"));
        let dag = Dag::draw(number, shared.seed, &shared.tally, &file)?;
        all.dags.insert(dag.plan.name.clone(), dag);
        let path = file.display().to_string();
        let call = Call { shared, number };
        if random.random_bool(0.3) {
            let view = call.until_heard(&["flow", "run", &path, "--json"]).await?;
            all.accepted.push(id(&view)?);
        } else {
            let line = call
                .until_heard(&["flow", "submit", &path, "--json"])
                .await?;
            let id = id(&line)?;
            all.accepted.push(id);
            let number = id.to_string();
            if random.random_bool(0.1) {
                let moment = Instant::now() + CANCEL.mul_f64(random.random());
                tokio::time::interval_at(moment, CANCEL).tick().await;
                all.cancelled.insert(id);
                // A call that was killed may have cancelled it.
                call.once(&["flow", "cancel", &number, "--json"]).await?;
            }
            call.until_heard(&["flow", "status", &number, "--wait", "--json"])
                .await?;
        }
        shared.done.send_modify(|done| *done += 1);
    }
}

fn id(line: &Value) -> Result<FlowId, ChaosError> {
    let id = line["id"].as_u64().and_then(|id| u32::try_from(id).ok());
    id.map(FlowId)
        .ok_or_else(|| ChaosError::Line(line.to_string()))
}

/// The calls about one flow.
struct Call<'s> {
    shared: &'s Shared,
    number: usize,
}

impl Call<'_> {
    /// Runs the command once. Returns its line of JSON, unless it was killed before.
    async fn once(&self, words: &[&str]) -> Result<Option<Value>, ChaosError> {
        let dir = &self.shared.callers.dir;
        // The logs of workers have names of this form, and `flow run` is one.
        let stderr = dir.join(format!("worker-of-{}.err", self.number));
        let stdout = dir.join(format!("said-{}", self.number));
        fs::write(&stdout, "").map_err(ChaosError::io("what was said"))?;
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let files = Files {
            stdout: &stdout,
            stderr: &stderr,
        };
        self.shared.callers.call(&words, "", files, CALL).await?;
        let said = fs::read_to_string(&stdout).map_err(ChaosError::io("what was said"))?;
        let line = said.strip_suffix('\n');
        Ok(line.and_then(|line| serde_json::from_str(line).ok()))
    }

    /// Runs the command again until it was not killed.
    async fn until_heard(&self, words: &[&str]) -> Result<Value, ChaosError> {
        let mut tries = tokio::time::interval(AGAIN);
        tries.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        for _ in 0..TRIES {
            tries.tick().await;
            if let Some(line) = self.once(words).await? {
                return Ok(line);
            }
        }
        let said = self
            .shared
            .callers
            .dir
            .join(format!("worker-of-{}.err", self.number));
        Err(ChaosError::Stuck {
            program: words.join(" "),
            what: "ended well",
            seconds: CALL.as_secs(),
            said: fs::read_to_string(said).unwrap_or_default(),
        })
    }
}
