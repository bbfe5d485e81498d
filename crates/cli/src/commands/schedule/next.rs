//! `meshwork schedule next`.

use meshwork_model::schedule::timing::{Recurrence, Timing};
use meshwork_model::schedule::wall_time::Direction;
use meshwork_model::schedule::zone::Zone;
use meshwork_model::time::iso;
use serde::Serialize;

use super::FlowScope;
use crate::app::App;
use crate::args::moment::{self, Moment};
use crate::args::parsers;
use crate::error::CommandError;
use crate::exit::Exit;

/// Show the next slots of a schedule, or of an expression, which needs no server
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("of").required(true).args(["name", "cron", "every"])))]
pub(crate) struct Next {
    /// Name of the schedule
    #[arg(value_parser = super::name)]
    name: Option<String>,
    /// Cron expression, or '@every 30s', instead of a schedule
    #[arg(
        long,
        value_name = "EXPR",
        conflicts_with = "name",
        allow_hyphen_values = true
    )]
    cron: Option<Recurrence>,
    /// Interval or days, as 'weekdays 9:00', instead of a schedule
    #[arg(long, value_name = "DURATION|DAYS", conflicts_with_all = ["name", "cron"], allow_hyphen_values = true,
          value_parser = Recurrence::every)]
    every: Option<Recurrence>,
    /// Time zone of the expression, an IANA name, as Europe/Brussels [default: UTC; with --every the local zone]
    #[arg(long, value_name = "ZONE", conflicts_with = "name")]
    tz: Option<Zone>,
    /// Start after this time (2026-01-31, '2026-01-31 12:00', 2026-01-31T12:00:00Z) [default: now]
    #[arg(long, value_name = "WHEN", value_parser = moment::point)]
    after: Option<Moment>,
    /// Number of slots, 1 to 10000
    #[arg(short = 'n', long = "count", value_name = "N", default_value_t = 1, allow_hyphen_values = true,
          value_parser = parsers::whole::<u32>(1..=10_000))]
    count: u32,
}

#[derive(Debug, Serialize)]
struct Line {
    at: String,
    local: String,
}

impl Next {
    pub(crate) async fn run(
        self,
        scope: &FlowScope,
        context: &mut App,
    ) -> Result<Exit, CommandError> {
        let is_cron = self.cron.is_some();
        let (timing, now) = match (self.name, self.cron.or(self.every)) {
            (None, Some(rhythm)) => {
                let mut timing = Timing::new(rhythm);
                timing.zone = match self.tz {
                    Some(zone) => zone,
                    None if is_cron => Zone::default(),
                    None => moment::local()?,
                };
                (timing, meshwork::host_ms())
            }
            (name, _) => {
                let name = name.unwrap_or_default();
                let client = scope.client(&name, None, context).await?;
                let schedule = client.schedule(&name)?;
                let there = schedule.show().await?.schedule;
                let timing = there.map_err(meshwork::Error::from)?.timing;
                (timing, client.broker().now().await?)
            }
        };
        let after = match self.after {
            Some(after) => after.ms(now, &timing.zone, Direction::Next)?,
            None => now,
        };
        for slot in timing.upcoming(after).take(self.count as usize) {
            let local = timing.zone.show(slot);
            if context.out.is_json() {
                let at = iso(slot);
                context.out.json(&Line { at, local })?;
            } else {
                context.out.line(local)?;
            }
        }
        Ok(Exit::DONE)
    }
}
