//! `meshwork migrate bananas`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use meshwork::protocol::bananas::migrate::{MigrationReport, Migrator, SkippedJob};
use meshwork_model::name::{RoutingKey, ScriptType};
use serde::Serialize;

use crate::app::App;
use crate::args::parsers;
use crate::commands::bananas::Side;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::{Column, Progress, Table, note};

/// Import waiting, scheduled and dead jobs of Bananas as Meshwork's jobs, or export them back
///
/// Clients, workers and schedulers of both systems may run meanwhile: each job moves in one atomic step. If the command
/// is interrupted, run it again. Clients of Bananas that wait for a job get its result. Running jobs stay where they
/// are. Jobs that cannot be moved are printed with the reason; the exit code is 1 then.
///
/// A job gets its name as its type, if a worker of Meshwork runs that type or --function names it; or --handler gives
/// it a script. Its route becomes its group.
#[derive(Debug, clap::Args)]
pub(crate) struct OfBananas {
    #[command(flatten)]
    side: Side,
    /// Export imported jobs that have not ended
    #[arg(long, conflicts_with_all = ["handlers", "functions", "job_timeout", "overdue"])]
    back: bool,
    /// Script (.py, .rhai, .sh, or with a #! line) for jobs of this name, as NAME=FILE; may be given several times
    #[arg(long = "handler", value_name = "NAME=FILE", value_parser = parsers::handler)]
    handlers: Vec<(String, PathBuf)>,
    /// Import jobs of this name for a handler in Rust, although no worker with it runs now; may be given several times
    #[arg(long = "function", value_name = "NAME")]
    functions: Vec<ScriptType>,
    /// Only jobs of these routes: gpu,default
    #[arg(long = "route", value_name = "KEYS", value_delimiter = ',')]
    routes: Vec<RoutingKey>,
    /// Greatest number of jobs
    #[arg(long, value_name = "N", allow_hyphen_values = true,
          value_parser = parsers::whole::<u32>(1..=u64::MAX))]
    limit: Option<u32>,
    /// Timeout of the imported jobs: 5m, 90s [default: 5m]
    #[arg(long, value_name = "DURATION", env = "JOB_TIMEOUT", value_parser = parsers::span)]
    job_timeout: Option<Duration>,
    /// Include jobs that are due within 10 seconds. Only safe while no scheduler of Bananas runs: it enqueues jobs that
    /// it has read before, even if they were imported meanwhile
    #[arg(long)]
    overdue: bool,
    /// Change nothing, and print the jobs that would move
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Serialize)]
struct Report<'a> {
    dry_run: bool,
    moved: usize,
    waiting: usize,
    scheduled: usize,
    dead: usize,
    twice: usize,
    left: usize,
    /// Number of jobs that stayed, by reason.
    reasons: BTreeMap<&'a str, usize>,
    /// Jobs that stayed, up to a limit.
    jobs: Vec<Job<'a>>,
}

#[derive(Debug, Serialize)]
struct Job<'a> {
    id: &'a str,
    place: &'a str,
    reason: &'a str,
}

/// Greatest number of such jobs printed as text; JSON has all known ones.
const MOST_SHOWN: usize = 20;

impl OfBananas {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let ours = context.client().await?;
        let theirs = self.side.beside(&ours);
        let mut migrator = Migrator::new(&theirs, &ours)
            .routes(self.routes.clone())
            .limit(self.limit.map_or(usize::MAX, |limit| limit as usize))
            .overdue(self.overdue)
            .dry_run(self.dry_run);
        for (name, path) in &self.handlers {
            migrator = migrator.script(name, path)?;
        }
        for name in &self.functions {
            migrator = migrator.function(name.as_str());
        }
        if let Some(timeout) = self.job_timeout {
            migrator = migrator.timeout(timeout);
        }
        let count = match self.back {
            true => migrator.count_export().await?,
            false => migrator.count_import().await?,
        };
        let mut progress = Progress::new(count);
        let show = |moved: &MigrationReport| progress.show(moved.checked.min(count));
        let moved = match self.back {
            true => migrator.export(show).await,
            false => Box::pin(migrator.import(show)).await,
        };
        drop(progress);
        self.tell(&moved?, context)
    }

    fn tell(&self, moved: &MigrationReport, context: &mut App) -> Result<Exit, CommandError> {
        let mut reasons = BTreeMap::new();
        for skipped in &moved.skipped {
            *reasons.entry(skipped.reason.as_str()).or_insert(0) += 1;
        }
        let stayed = moved.skipped_count();
        if context.out.is_json() {
            context.out.json(&Report {
                dry_run: self.dry_run,
                moved: moved.count(),
                waiting: moved.waiting,
                scheduled: moved.scheduled,
                dead: moved.dead,
                twice: moved.twice,
                left: stayed,
                reasons,
                jobs: moved.skipped.iter().map(job).collect(),
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
            for skipped in moved.skipped.iter().take(MOST_SHOWN) {
                let SkippedJob { id, place, reason } = skipped;
                note(format_args!("job {id:?} stays in {place}: {reason}"));
            }
            if stayed > MOST_SHOWN {
                note(format_args!(
                    "{} more stay; --json lists them",
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

fn job(skipped: &SkippedJob) -> Job<'_> {
    Job {
        id: &skipped.id,
        place: &skipped.place,
        reason: &skipped.reason,
    }
}
