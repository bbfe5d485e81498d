//! `meshwork migrate bananas`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use meshwork::model::name::{RoutingKey, ScriptType};
use meshwork::protocol::bananas::over::{Left, Moved, Mover};
use serde::Serialize;

use crate::commands::bananas::Side;
use crate::context::Context;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::{Column, Progress, Table, note};
use crate::value;

/// Take waiting, scheduled and dead jobs of Bananas over as jobs of ours, or give them back
///
/// Clients, workers and schedulers of both may be at work: each job moves in one step, and is in one place at each
/// moment. Say it again when it was interrupted. Who waits for a job in Bananas is told of its end. What a worker has in
/// hand stays where it is, and what cannot be moved is told with its reason; the exit code is 1 then.
///
/// Jobs of a name go to the type of that name, if a worker of ours is there for it or --function names it, or become
/// jobs of a script. Their route is their group.
#[derive(Debug, clap::Args)]
pub(crate) struct OfBananas {
    #[command(flatten)]
    side: Side,
    /// The other way: give back what was taken over and has not ended
    #[arg(long, conflicts_with_all = ["handlers", "functions", "job_timeout", "overdue"])]
    back: bool,
    /// Jobs of this name become jobs of a script that ends in .py or .rhai; may be given several times
    #[arg(long = "handler", value_name = "NAME=FILE", value_parser = value::handler)]
    handlers: Vec<(String, PathBuf)>,
    /// Jobs of this name are for a function in Rust, though no worker with it is there now; may be given several times
    #[arg(long = "function", value_name = "NAME")]
    functions: Vec<ScriptType>,
    /// Only those of these routes: gpu,default
    #[arg(long = "route", value_name = "KEYS", value_delimiter = ',')]
    routes: Vec<RoutingKey>,
    /// At most so many
    #[arg(long, value_name = "N", allow_hyphen_values = true,
          value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    /// How long a run may take: 5m, 90s [default: 5m]
    #[arg(long, value_name = "TIME", env = "JOB_TIMEOUT", value_parser = value::span)]
    job_timeout: Option<Duration>,
    /// Also those whose time has come, or comes in ten seconds. Only while no scheduler of Bananas is there: it pushes
    /// what it has read, whatever has become of it
    #[arg(long)]
    overdue: bool,
    /// Change nothing, and tell what would be moved
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Serialize)]
struct Told<'a> {
    dry_run: bool,
    moved: usize,
    waiting: usize,
    scheduled: usize,
    dead: usize,
    twice: usize,
    left: usize,
    /// How many stayed for which reason.
    reasons: BTreeMap<&'a str, usize>,
    /// Those that stayed, a bounded number.
    jobs: Vec<Job<'a>>,
}

#[derive(Debug, Serialize)]
struct Job<'a> {
    id: &'a str,
    place: &'a str,
    reason: &'a str,
}

/// So many jobs that stayed are told in words; all that are known, in JSON.
const MOST_SHOWN: usize = 20;

impl OfBananas {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, CommandError> {
        let ours = context.client().await?;
        let theirs = self.side.beside(&ours);
        let mut mover = Mover::new(&theirs, &ours)
            .routes(self.routes.clone())
            .limit(self.limit.map_or(usize::MAX, |limit| limit as usize))
            .overdue(self.overdue)
            .dry_run(self.dry_run);
        for (name, path) in &self.handlers {
            mover = mover.script(name, path)?;
        }
        for name in &self.functions {
            mover = mover.function(name.as_str());
        }
        if let Some(timeout) = self.job_timeout {
            mover = mover.timeout(timeout);
        }
        let count = match self.back {
            true => mover.count_back().await?,
            false => mover.count_forth().await?,
        };
        let mut progress = Progress::new(count);
        let show = |moved: &Moved| progress.show(moved.looked.min(count));
        let moved = match self.back {
            true => mover.give_back(show).await,
            false => Box::pin(mover.take_over(show)).await,
        };
        drop(progress);
        self.tell(&moved?, context)
    }

    fn tell(&self, moved: &Moved, context: &mut Context) -> Result<Exit, CommandError> {
        let mut reasons = BTreeMap::new();
        for left in &moved.left {
            *reasons.entry(left.reason.as_str()).or_insert(0) += 1;
        }
        let stayed = moved.stayed();
        if context.out.is_json() {
            context.out.json(&Told {
                dry_run: self.dry_run,
                moved: moved.count(),
                waiting: moved.waiting,
                scheduled: moved.scheduled,
                dead: moved.dead,
                twice: moved.twice,
                left: stayed,
                reasons,
                jobs: moved.left.iter().map(job).collect(),
            })?;
        } else {
            let mut table = Table::new([Column::text("jobs"), Column::number("moved")]);
            for (name, count) in [
                ("waiting", moved.waiting),
                ("scheduled", moved.scheduled),
                ("dead letters", moved.dead),
            ] {
                table.row([name.to_owned(), count.to_string()]);
            }
            context.out.table(table)?;
            for left in moved.left.iter().take(MOST_SHOWN) {
                let Left { id, place, reason } = left;
                note(format_args!("job {id:?} stays in {place}: {reason}"));
            }
            if stayed > MOST_SHOWN {
                note(format_args!(
                    "{} more stay; --json tells them",
                    stayed - MOST_SHOWN
                ));
                for (reason, count) in reasons {
                    note(format_args!("  {count}: {reason}"));
                }
            }
            if self.dry_run {
                note("nothing was changed");
            }
        }
        Ok(match stayed {
            0 => Exit::DONE,
            _ => Exit::FAILED,
        })
    }
}

fn job(left: &Left) -> Job<'_> {
    Job {
        id: &left.id,
        place: &left.place,
        reason: &left.reason,
    }
}
