//! `meshwork bananas schedule`.

use meshwork_broker::bananas::StoredCron;
use meshwork_model::bananas::{Cron, NewJob, seconds};
use meshwork_model::name::{JobId, RoutingKey, ScheduleName};
use meshwork_model::route::Priority;
use meshwork_model::schedule::cron::Cron as Expression;
use meshwork_model::schedule::timing::{Recurrence, Timing};
use meshwork_model::schedule::zone::Zone;
use serde::Serialize;

use super::{Side, of_bananas};
use crate::app::App;
use crate::args::parsers;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::{Column, Row, note};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum ScheduleCommand {
    Add(Box<Add>),
    List(List),
    Remove(Remove),
}

impl ScheduleCommand {
    pub(super) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        match self {
            Self::Add(add) => add.run(context).await,
            Self::List(list) => list.run(context).await,
            Self::Remove(remove) => remove.run(context).await,
        }
    }
}

/// Add a schedule, which enqueues a job at each of its times (slots)
///
/// A program of Bananas with a schedule of the same name shares its state: each slot runs once. Of all missed slots,
/// the latest one runs.
#[derive(Debug, clap::Args)]
pub(crate) struct Add {
    #[command(flatten)]
    side: Side,
    /// Name of the schedule
    schedule: ScheduleName,
    /// Cron expression, as '30 2 * * MON-FRI'
    #[arg(long, value_name = "EXPR", allow_hyphen_values = true)]
    cron: Expression,
    /// Time zone of the expression, an IANA name, as Europe/Brussels
    #[arg(long, value_name = "ZONE", default_value_t)]
    tz: Zone,
    /// Name of the handler for its jobs
    name: String,
    /// Payload for the handler, JSON
    #[arg(default_value = "{}")]
    payload: String,
    /// high, normal or low
    #[arg(long, default_value = "normal")]
    priority: Priority,
    /// Run its jobs only on workers with this routing key: 1 to 64 of A-Z a-z 0-9 _ -
    #[arg(long, value_name = "KEY")]
    route: Option<RoutingKey>,
    /// Description of its jobs
    #[arg(long, value_name = "TEXT", default_value = "")]
    description: String,
    /// Greatest number of attempts of each job
    #[arg(
        long = "max-attempts",
        visible_alias = "max-retries",
        value_name = "N",
        default_value_t = 3,
        value_parser = parsers::whole::<u32>(0..=u64::MAX)
    )]
    max_retries: u32,
    /// Replace a schedule of that name
    #[arg(long)]
    replace: bool,
}

#[derive(Debug, Serialize)]
struct Added<'a> {
    name: &'a str,
    replaced: bool,
}

impl Add {
    async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let id = JobId::foreign(String::new());
        let mut job = NewJob::new(id, self.name, self.payload);
        job.priority = self.priority;
        job.route = self.route;
        job.description = self.description;
        job.max_retries = self.max_retries;
        let timing = Timing {
            zone: self.tz,
            ..Timing::new(Recurrence::Cron(self.cron))
        };
        let name = self.schedule;
        let cron = Cron { name, timing, job };
        let client = self.side.client(context).await?;
        let replaced = client.put_schedule(&cron, self.replace).await;
        let replaced = replaced.map_err(of_bananas)?;
        let name = cron.name.as_str();
        if context.out.is_json() {
            context.out.json(&Added { name, replaced })?;
        } else {
            let word = if replaced { "replaced" } else { "added" };
            context.out.line(format_args!("{name} {word}"))?;
        }
        Ok(Exit::DONE)
    }
}

/// List the schedules by name
#[derive(Debug, clap::Args)]
pub(crate) struct List {
    #[command(flatten)]
    side: Side,
}

#[derive(Debug, Serialize)]
struct Line {
    schedule: String,
    cron: Option<String>,
    zone: Option<String>,
    name: Option<String>,
    route: Option<String>,
    next_run: Option<String>,
    last_run: Option<String>,
    run_count: u64,
    trouble: Option<String>,
}

impl List {
    async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let client = self.side.client(context).await?;
        let schedules = client.schedules().await?;
        context.out.rows(schedules.iter().map(Line::from))?;
        Ok(Exit::DONE)
    }
}

impl From<&StoredCron> for Line {
    fn from(kept: &StoredCron) -> Self {
        let cron = kept.cron.as_ref().ok();
        let route = cron.and_then(|cron| cron.job.route.as_ref());
        Self {
            schedule: kept.name.to_string(),
            cron: cron.map(|cron| cron.timing.rhythm.to_string()),
            zone: cron.map(|cron| cron.timing.zone.to_string()),
            name: cron.map(|cron| cron.job.name.clone()),
            route: route.map(ToString::to_string),
            next_run: kept.next.map(seconds),
            last_run: Some(kept.last_run.clone()).filter(|time| !time.is_empty()),
            run_count: kept.runs,
            trouble: kept.cron.as_ref().err().map(ToString::to_string),
        }
    }
}

impl Row for Line {
    fn columns() -> Vec<Column> {
        let names = [
            "schedule", "cron", "zone", "job", "next", "last", "runs", "",
        ];
        Column::named(names, &[])
    }

    fn cells(&self) -> Vec<String> {
        let known = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        vec![
            self.schedule.clone(),
            known(&self.cron),
            known(&self.zone),
            known(&self.name),
            known(&self.next_run),
            known(&self.last_run),
            self.run_count.to_string(),
            self.trouble.clone().unwrap_or_default(),
        ]
    }
}

/// Delete schedules; jobs that they have enqueued remain
#[derive(Debug, clap::Args)]
pub(crate) struct Remove {
    #[command(flatten)]
    side: Side,
    /// Names of the schedules
    #[arg(required = true, value_name = "SCHEDULE")]
    schedules: Vec<ScheduleName>,
}

#[derive(Debug, Serialize)]
struct Removed<'a> {
    name: &'a str,
    result: &'static str,
}

impl Remove {
    async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let client = self.side.client(context).await?;
        let mut exit = Exit::DONE;
        for name in &self.schedules {
            let result = match client.delete_schedule(name).await {
                Ok(()) => "removed",
                Err(error @ meshwork::Error::NoSchedule { .. }) => {
                    note(format_args!("error: {error}"));
                    exit = exit.or(Exit::NO_JOB);
                    "missing"
                }
                Err(error) => return Err(error.into()),
            };
            if context.out.is_json() {
                let name = name.as_str();
                context.out.json(&Removed { name, result })?;
            } else if result == "removed" {
                context.out.line(format_args!("{name} removed"))?;
            }
        }
        Ok(exit)
    }
}
