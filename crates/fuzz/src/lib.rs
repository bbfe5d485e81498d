//! The differential fuzzer: sends the same random commands to the engine and to a real server, and compares every
//! reply and, from time to time, all data.
//!
//! The commands come from the engine's own table, so that new ones are tried automatically; those with a form in
//! `grammar` get meaningful arguments more often. `same` lists the replies that are not compared to the last byte,
//! `generate` the commands that are not tried.

mod data;
mod generate;
mod grammar;
mod lua;
mod pair;
mod same;
mod shrink;
mod step;
mod wire;
mod words;

use std::{fmt, io, path::Path};

use meshwork_embedded::command_table;

use crate::{generate::Generator, pair::Pair, step::Step, wire::Wire};

/// Number of steps after which both sides are emptied: the most that have to be shrunk.
const STEPS_PER_ROUND: u64 = 2_000;

/// The extent of a run.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Number of commands.
    pub commands: u64,
    /// Seed of all choices.
    pub seed: u64,
}

/// A difference between the engine and the server.
#[derive(Debug)]
pub struct Difference {
    /// The seed of the run.
    pub seed: u64,
    /// Step of the run at which it was found.
    pub at: u64,
    /// The fewest steps that still show it, and the difference after them.
    steps: Vec<Step>,
    seen: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "seed {}, step {}; the least steps that show it:",
            self.seed, self.at
        )?;
        for step in &self.steps {
            writeln!(f, "{step}")?;
        }
        write!(f, "{}", self.seen)
    }
}

impl std::error::Error for Difference {}

/// The reason why a run ended early.
#[derive(Debug, thiserror::Error)]
pub enum FuzzError {
    /// The engine and the server differ.
    #[error("fuzz: {0}")]
    Different(#[from] Difference),
    /// The server has another version than the engine follows.
    #[error(
        "fuzz: the engine is compared with redis-server 7.0, and this one is {0}: name a 7.0 in \
         MESHWORK_TEST_REDIS_SERVER"
    )]
    Version(String),
    /// The server at the socket does not answer.
    #[error("fuzz: the server: {0}")]
    Server(#[from] io::Error),
}

/// Sends `plan.commands` commands to an engine in this process and to the server at `socket`, which is emptied
/// before. Ends at the first difference.
///
/// # Errors
/// The two differ, or the server disconnects.
pub fn run(plan: Plan, socket: &Path) -> Result<(), FuzzError> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(1).enable_time().build()?;
    let _entered = runtime.enter();
    let version = Wire::connect(socket)?.version()?;
    if !version.starts_with("7.0.") {
        return Err(FuzzError::Version(version));
    }
    let commands = command_table();
    let mut done = 0;
    let mut round = 0_u64;
    while done < plan.commands {
        let mut generator = Generator::new(plan.seed.wrapping_add(round), &commands);
        let mut pair = Pair::fresh(socket)?;
        let mut steps = Vec::new();
        for _ in 0..STEPS_PER_ROUND.min(plan.commands - done) {
            let step = generator.next();
            steps.push(step.clone());
            done += 1;
            if let Err(seen) = pair.step(&step) {
                drop(pair);
                let (steps, seen) = shrink::shrink(steps, seen, socket)?;
                return Err(Difference {
                    seed: plan.seed,
                    at: done,
                    steps,
                    seen,
                }
                .into());
            }
        }
        round += 1;
    }
    Ok(())
}
