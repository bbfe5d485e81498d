//! The processes of a scenario, and the kills.

use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use super::ground::{CONCURRENCY, Ground, LEASE};
use super::inputs;
use super::moments::Moments;
use super::program::Program;
use super::{ChaosError, Scenario};

/// Timeout of a worker until it says that it listens.
const START: Duration = Duration::from_secs(60);

/// Timeout of a batch after the last kill: a hundred times what it needs.
const END: Duration = Duration::from_secs(600);

/// One batch: `run`, and the workers of the scenario.
pub(super) struct Cast<'a> {
    ground: &'a Ground,
    run: Program,
    workers: Vec<Program>,
    /// Greatest number of jobs in flight at the kills.
    pub(super) in_flight: u64,
}

impl<'a> Cast<'a> {
    /// Starts the workers, and `run` when they listen.
    pub(super) async fn start(ground: &'a Ground, batch: usize) -> Result<Self, ChaosError> {
        let workers = match ground.scenario {
            Scenario::Alone => 0,
            Scenario::Server => 1,
            Scenario::Attached => 2,
        };
        let mut started = Vec::new();
        for number in 0..workers {
            let name = format!("worker-{batch}-{number}");
            let mut worker = Program::start(ground, name, worker_arguments())?;
            worker.wait_for_output("listening", START).await?;
            started.push(worker);
        }
        let run = Program::start(ground, format!("run-{batch}"), run_arguments(ground, batch))?;
        Ok(Self {
            ground,
            run,
            workers: started,
            in_flight: 0,
        })
    }

    /// Kills until the batch is done or there have been enough kills. Returns the file with the results that `run`
    /// printed.
    pub(super) async fn play(&mut self, moments: &mut Moments) -> Result<PathBuf, ChaosError> {
        while let Some(moment) = moments.next() {
            if let Some(status) = self.run.ended_within(moment).await? {
                return self.results(status);
            }
            self.kill(moments).await?;
        }
        match self.run.ended_within(END).await? {
            Some(status) => self.results(status),
            None => Err(self.run.stuck("come to its end", END)),
        }
    }

    fn results(&self, status: ExitStatus) -> Result<PathBuf, ChaosError> {
        if !status.success() {
            return Err(self.run.ended(status));
        }
        Ok(self.run.stdout.clone())
    }

    async fn kill(&mut self, moments: &mut Moments) -> Result<(), ChaosError> {
        let owner = self.owner();
        let victim = match self.ground.scenario {
            Scenario::Alone | Scenario::Server => moments.victim(1),
            // Entered twice, since a kill of the owner matters most.
            Scenario::Attached => match moments.victim(self.workers.len() + 2) {
                chosen if chosen <= self.workers.len() => chosen,
                _ => owner.unwrap_or(0),
            },
        };
        // No other process reaches the data before one has become the new owner. So all jobs in flight may run again;
        // `run` also runs jobs when it sees no worker.
        let alone =
            self.ground.scenario != Scenario::Attached || owner.is_some_and(|it| it != victim);
        let hit = if alone { 1 } else { self.workers.len() + 1 };
        self.in_flight += u64::try_from(hit * CONCURRENCY).unwrap_or(u64::MAX);
        let program = match self.workers.get_mut(victim) {
            Some(worker) => worker,
            None => &mut self.run,
        };
        program.kill_and_start_again(self.ground).await
    }

    /// Returns the owner of the embedded engine: the workers by their number, then `run`.
    fn owner(&self) -> Option<usize> {
        let owner = self.ground.owner()?;
        self.workers
            .iter()
            .chain([&self.run])
            .position(|program| program.pid() == Some(owner))
    }
}

fn worker_arguments() -> Vec<String> {
    [
        &["worker", "--json", "--type", "python"].map(str::to_owned)[..],
        &effort(),
    ]
    .concat()
}

fn run_arguments(ground: &Ground, batch: usize) -> Vec<String> {
    let tally = format!("TALLY={}", ground.tally(batch).display());
    let run = ["run", "chaos.py", "--json", "--env", &tally].map(str::to_owned);
    let each = std::iter::once("--each".to_owned()).chain(inputs());
    run.into_iter().chain(effort()).chain(each).collect()
}

/// Arguments that every process gets.
fn effort() -> [String; 4] {
    let (lease, concurrency) = (LEASE.as_secs().to_string(), CONCURRENCY.to_string());
    [
        "--lease".to_owned(),
        lease,
        "--concurrency".to_owned(),
        concurrency,
    ]
}
