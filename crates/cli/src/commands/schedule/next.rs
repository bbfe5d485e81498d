//! `meshwork schedule next`.

use meshwork::model::schedule::timing::{Recurrence, Timing};
use meshwork::model::schedule::zone::Zone;
use meshwork::model::time::iso;
use serde::Serialize;

use crate::app::App;
use crate::args::parsers;
use crate::error::CommandError;
use crate::exit::Exit;

/// Show the next slots of a schedule, or of an expression, which needs no server
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("of").required(true).args(["name", "cron"])))]
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
    /// Time zone of the expression, an IANA name, as Europe/Brussels
    #[arg(long, value_name = "ZONE", default_value_t, conflicts_with = "name")]
    tz: Zone,
    /// Start after this time in UTC (2026-01-31, 2026-01-31T12:00:00Z) [default: now]
    #[arg(long, value_name = "TIME", value_parser = parsers::time)]
    after: Option<u64>,
    /// Number of slots, 1 to 10000
    #[arg(short = 'n', long = "count", value_name = "N", default_value_t = 1, allow_hyphen_values = true,
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    count: u32,
}

#[derive(Debug, Serialize)]
struct Line {
    at: String,
    local: String,
}

impl Next {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let (timing, now) = match (self.name, self.cron) {
            (None, Some(rhythm)) => {
                let mut timing = Timing::new(rhythm);
                timing.zone = self.tz;
                (timing, meshwork::host_ms())
            }
            (name, _) => {
                let client = context.client().await?;
                let schedule = client.schedule(&name.unwrap_or_default())?;
                let there = schedule.show().await?.schedule;
                let timing = there.map_err(meshwork::Error::from)?.timing;
                (timing, client.broker().now().await?)
            }
        };
        let after = self.after.unwrap_or(now);
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
