//! `meshwork schedule add`.

use std::path::PathBuf;

use meshwork::flow::{self, FlowTimes};
use meshwork::view::ScheduleView;
use meshwork::{Error, JobRequest, NewSchedule};
use meshwork_model::access::{Object, Operation};
use meshwork_model::name::ScheduleName;
use meshwork_model::schedule::policy::{CatchUp, Overlap};
use meshwork_model::schedule::timing::{Recurrence, Timing};
use meshwork_model::schedule::wall_time::Direction;
use meshwork_model::schedule::zone::Zone;
use meshwork_model::time::iso;
use meshwork_ops::warnings;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::FlowScope;
use super::view::next;
use crate::app::App;
use crate::args::moment::{self, Moment};
use crate::args::script::{Script, is_flow};
use crate::commands::batch::written;
use crate::commands::flow::place::fill;
use crate::ephemeral_worker::{WorkerCheck, required};
use crate::error::CommandError;
use crate::exit::Exit;
use crate::job_args::{JobArgs, TargetArgs, has_job_options};
use crate::out::warn;
use crate::timing_args::TimingArgs;

/// Help of the time zone.
const TZ: &str = "Time zone of the schedule and its times, an IANA name, as Europe/Brussels [default: UTC; with days after \
                  --every the local zone]";

/// Add a schedule and print its name and its first slot
///
/// A cron expression has 5 fields (minute, hour, day of the month, month, day of the week), or 6 with the second first;
/// aliases are @hourly, @daily, @weekly, @monthly and @yearly. When clocks change, a fixed time that is skipped runs at
/// the change, one that occurs twice runs once, and an expression with * first in minute or hour follows real time.
#[derive(Debug, clap::Args)]
#[command(mut_arg("depends_on", |arg| arg.hide(true)), mut_arg("on_failure", |arg| arg.hide(true)))]
#[command(mut_arg("prerequisite_timeout", |arg| arg.hide(true)))]
#[command(mut_arg("at", |arg| arg.hide(true)), mut_arg("delay", |arg| arg.hide(true)))]
#[command(mut_arg("debounce", |arg| arg.hide(true)))]
#[command(mut_arg("traceparent", |arg| arg.hide(true)), mut_arg("tracestate", |arg| arg.hide(true)))]
#[command(mut_arg("tz", |arg| arg.help_heading("Time").help(TZ)))]
#[command(group(clap::ArgGroup::new("rhythm").required(true).args(["cron", "every"])))]
pub(crate) struct Add {
    /// Name of the schedule, and prefix of its jobs' ids
    #[arg(value_parser = super::name)]
    name: String,
    /// File of the script; - is stdin. Or of a flow (.yaml, .yml, .toml), which workers of its context start
    script: PathBuf,
    /// Input of a flow; may be given several times
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = crate::commands::flow::check::given)]
    set: Vec<(String, String)>,
    /// Arguments of a program, after --
    #[arg(last = true, value_name = "ARG")]
    args: Vec<String>,
    /// Cron expression, as '30 2 * * MON-FRI'
    #[arg(
        long,
        value_name = "EXPR",
        allow_hyphen_values = true,
        help_heading = "Time"
    )]
    cron: Option<Recurrence>,
    /// Interval in whole seconds, as 30s, 15m, 1h30m; counted from --start, or from 1970. Or days, as monday, 'weekdays
    /// 9:00', 'mon,thu 17:30', 'day 2:30', month; or hour
    #[arg(long, value_name = "DURATION|DAYS", conflicts_with = "cron", allow_hyphen_values = true,
          value_parser = Recurrence::every, help_heading = "Time")]
    every: Option<Recurrence>,
    /// No slot before this time (2026-01-31, '2026-01-31 12:00', 2026-01-31T12:00:00Z)
    #[arg(long, value_name = "WHEN", value_parser = moment::point, help_heading = "Time")]
    start: Option<Moment>,
    /// No slot after this time
    #[arg(long, value_name = "WHEN", value_parser = moment::point, help_heading = "Time")]
    end: Option<Moment>,
    /// Slots missed without a worker: skip (those over a minute late), one (the latest), all (the last 100) or all:N (N
    /// up to 1000)
    #[arg(long, value_name = "HOW", default_value_t, help_heading = "Time")]
    catch_up: CatchUp,
    /// If the last job has not ended at a slot: skip the slot, replace the job (cancel it), or allow both
    #[arg(long, value_name = "HOW", default_value_t, help_heading = "Time")]
    overlap: Overlap,
    /// Replace a schedule of that name; no slot is lost, and none runs twice
    #[arg(long, help_heading = "Time")]
    replace: bool,
    #[command(flatten)]
    job_args: JobArgs,
    #[command(flatten)]
    timing: TimingArgs,
    #[command(flatten)]
    given: TargetArgs,
    #[command(flatten)]
    check_worker: WorkerCheck,
}

#[derive(Debug, Serialize)]
struct Line<'a> {
    name: &'a str,
    replaced: bool,
    next_at: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

/// A schedule that was added.
#[derive(Deserialize)]
struct Added {
    #[serde(flatten)]
    schedule: ScheduleView,
    #[serde(default)]
    warnings: Vec<String>,
}

impl Add {
    /// Returns the time zone of the schedule. Words are of the local zone, as people mean them; expressions are of UTC, as
    /// in a file that several hosts use.
    fn zone(&self, in_words: bool) -> Result<Zone, CommandError> {
        match (self.timing.tz(), &self.every) {
            (Some(_), Some(Recurrence::Every(_))) => Err(CommandError::usage(
                "an interval is independent of --tz: give --cron or days, as --every 'day 2:30'",
            )),
            (Some(zone), _) => Ok(zone.clone()),
            (None, _) if in_words => Ok(moment::local()?),
            (None, _) => Ok(Zone::default()),
        }
    }

    pub(super) async fn run(
        self,
        scope: &FlowScope,
        context: &mut App,
    ) -> Result<Exit, CommandError> {
        let of_flows = self.job_args.script_type.is_none() && is_flow(&self.script);
        if of_flows && context.remote.is_some() {
            return Err(CommandError::usage(
                "a schedule of a flow is added where the store is: leave --api out",
            ));
        }
        if of_flows {
            return self.add_flow(scope, context).await;
        }
        if !self.set.is_empty() {
            return Err(CommandError::usage(
                "--set gives inputs to flows (.yaml, .toml): give data to a script with --input",
            ));
        }
        let (rhythm, zone) = self.rhythm()?;
        let script =
            Script::with_args(&self.script, self.job_args.script_type.clone(), &self.args)?;
        let job = self.job_args.checked(&script).await?;
        let job = self.timing.add_to(job, &zone)?;
        let job = self.given.clone().add_to(job, &self.script)?;
        if context.remote.is_some() {
            return self.by_api((&rhythm, &zone), job, context).await;
        }
        let route = job.destination().clone();
        let mut request = NewSchedule::new(rhythm, job)
            .in_zone(zone.clone())
            .catch_up(self.catch_up)
            .overlap(self.overlap);
        let (start, end) = self.bounds(&zone)?;
        if let Some(start) = start {
            request = request.start(start);
        }
        if let Some(end) = end {
            request = request.end(end);
        }
        let client = context.client().await?;
        let warnings = self.check_worker.check(&client, &route).await?;
        let schedule = client.schedule(&self.name)?;
        let replaced = match self.replace {
            true => schedule.replace(request).await?,
            false => {
                schedule.add(request).await?;
                false
            }
        };
        let there = ScheduleView::from(&schedule.show().await?);
        let added = (replaced, warnings);
        tell(&there, added, self.is_in_words(), context)
    }

    /// Adds a schedule by the API.
    async fn by_api(
        &self,
        (rhythm, zone): (&Recurrence, &Zone),
        job: JobRequest,
        context: &mut App,
    ) -> Result<Exit, CommandError> {
        if self.check_worker.is_required() {
            return Err(required());
        }
        let name = json!({"name": self.name});
        let found: Result<IgnoredAny, _> = context.call("schedule.get", &name).await;
        let replaced = match found {
            Ok(_) if !self.replace => {
                let name = self.name.parse().map_err(CommandError::usage)?;
                return Err(Error::ScheduleExists { name }.into());
            }
            Ok(_) => true,
            Err(error) if error.exit == Exit::NO_JOB => false,
            Err(error) => return Err(error),
        };
        let mut job = written(job)?;
        job.remove("id");
        let (start, end) = self.bounds(zone)?;
        let text = rhythm.to_string();
        let every = text.strip_prefix("@every ");
        let params = json!({
            "name": self.name,
            "cron": every.is_none().then_some(&text),
            "every": every,
            "zone": zone.to_string(),
            "start_at": start.map(iso),
            "end_at": end.map(iso),
            "catch_up": self.catch_up.to_string(),
            "overlap": self.overlap.to_string(),
            "job": job,
        });
        let Added { schedule, warnings } = context.call("schedule.put", &params).await?;
        warn(&warnings);
        tell(&schedule, (replaced, warnings), self.is_in_words(), context)
    }

    /// Adds a schedule of a flow to a context.
    async fn add_flow(self, scope: &FlowScope, context: &mut App) -> Result<Exit, CommandError> {
        if has_job_options(&self.job_args, &self.given, &self.timing) || !self.args.is_empty() {
            return Err(CommandError::usage(
                "options of jobs are not for flows: write them into the file of the flow",
            ));
        }
        let (rhythm, zone) = self.rhythm()?;
        let mut plan = flow::load(&self.script)?;
        let inputs = (self.given.clone().into_input(), self.set.clone());
        fill(&mut plan, &self.script, inputs)?;
        let mut timing = Timing::new(rhythm);
        (timing.start, timing.end) = self.bounds(&zone)?;
        timing.zone = zone;
        let mut times = FlowTimes::new(timing);
        (times.catch_up, times.overlap) = (self.catch_up, self.overlap);
        let name: ScheduleName = self.name.parse().map_err(CommandError::usage)?;
        let args = scope.args();
        let (me, handle) = args.create(context).await?;
        let session = handle.flows(&me).await?;
        let replaced = session.add_schedule(&name, &plan, &times, self.replace);
        let replaced = replaced.await?;
        let client = handle.client(&me, Object::Queue, Operation::Read).await?;
        let warnings = warnings::of_plan(Some((&client, handle.id())), &plan).await?;
        warn(&warnings);
        match session.client().scheduled(&name).await? {
            Some(there) => {
                let (there, added) = (ScheduleView::from(&there), (replaced, warnings));
                tell(&there, added, self.is_in_words(), context)
            }
            // Another client has removed it meanwhile.
            None => Ok(Exit::DONE),
        }
    }

    fn is_in_words(&self) -> bool {
        matches!(self.every, Some(Recurrence::Cron(_)))
    }

    /// Returns the recurrence and its zone.
    fn rhythm(&self) -> Result<(Recurrence, Zone), CommandError> {
        let zone = self.zone(self.is_in_words())?;
        let rhythm = self.cron.clone().or_else(|| self.every.clone());
        Ok((rhythm.expect("one of them is required"), zone))
    }

    /// Returns the first and the last time of a slot.
    fn bounds(&self, zone: &Zone) -> Result<(Option<u64>, Option<u64>), CommandError> {
        let now = meshwork::host_ms();
        let ms = |what, moment: Option<Moment>| {
            let meant = moment.map(|moment| moment.meant(what, now, zone, Direction::Next));
            meant.transpose()
        };
        Ok((ms("starts at", self.start)?, ms("ends at", self.end)?))
    }
}

/// Prints the name of a new schedule, and its first slot.
fn tell(
    there: &ScheduleView,
    (replaced, warnings): (bool, Vec<String>),
    in_words: bool,
    context: &mut App,
) -> Result<Exit, CommandError> {
    let (name, next_at) = (there.name.as_str(), there.next_at.clone());
    if context.out.is_json() {
        context.out.json(&Line {
            name,
            replaced,
            next_at,
            warnings,
        })?;
        return Ok(Exit::DONE);
    }
    let word = if replaced { "replaced" } else { "added" };
    let next = next(there).filter(|_| in_words).cloned().or(next_at);
    let next = next.unwrap_or_else(|| "paused".to_owned());
    let rhythm = there.rhythm.as_ref().zip(there.zone.as_ref());
    let meant = rhythm.filter(|_| in_words);
    let meant = meant.map(|(rhythm, zone)| format!(" as '{rhythm}' in {zone}"));
    let meant = meant.unwrap_or_default();
    context
        .out
        .line(format_args!("{name} {word}{meant}, next {next}"))?;
    Ok(Exit::DONE)
}
