//! `meshwork events`.

use meshwork::{EventFilter, JobEvent};
use meshwork_model::name::JobId;
use meshwork_model::schedule::wall_time::Direction;
use meshwork_model::time;
use serde::Serialize;

use crate::app::App;
use crate::args::moment::{self, Moment, ZoneArg};
use crate::args::parsers;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::{Out, OutError, note, one_line};

/// Longest note on a line for people, in columns.
const MAX_NOTE: usize = 200;

/// Show the events of jobs: time, job, change and actor; the oldest first
///
/// The store keeps about 30,000 entries, the newest. Equal changes of up to 32 jobs share an entry.
#[derive(Debug, clap::Args)]
pub(crate) struct Events {
    /// Print new events as they happen, until Ctrl-C
    #[arg(short, long)]
    follow: bool,
    /// Only events of this job
    #[arg(long, value_name = "ID", value_parser = parsers::job_id)]
    job: Option<JobId>,
    /// Only events since then: an age (90s, 15m, 2h, 7d) or a time (yesterday, 'monday 9:00', 2026-01-31T12:00:00Z)
    #[arg(long, value_name = "WHEN", value_parser = moment::past, allow_hyphen_values = true)]
    since: Option<Moment>,
    #[command(flatten)]
    zone: ZoneArg,
    /// Greatest number of past events; 0 for none
    #[arg(long, value_name = "N", default_value_t = 100, allow_hyphen_values = true,
          value_parser = parsers::whole::<u32>(0..=100_000))]
    limit: u32,
}

#[derive(Debug, Serialize)]
struct Line<'a> {
    id: &'a str,
    at: String,
    event: &'a str,
    job: &'a str,
    by: &'a str,
    note: &'a str,
}

impl Events {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let client = context.client().await?;
        let since_ms = match self.since {
            Some(moment) => {
                let now = client.broker().now().await?;
                moment.meant(
                    "since",
                    now,
                    &self.zone.zone(&[self.since])?,
                    Direction::Last,
                )?
            }
            None => 0,
        };
        let filter = EventFilter {
            job: self.job,
            since_ms,
        };
        let limit = self.limit as usize;
        let page = client.events(&filter, limit + 1).await?;
        let cut = page.events.len() > limit;
        if cut && limit > 0 {
            note(format_args!("the newest {limit}; there are more (--limit)"));
        }
        tell(&mut context.out, &page.events[usize::from(cut)..])?;
        if !self.follow {
            return Ok(Exit::DONE);
        }
        let mut follower = client.follow_events(filter, page.last);
        loop {
            context.out.flush()?;
            tell(&mut context.out, &follower.next().await?)?;
        }
    }
}

fn tell(out: &mut Out, events: &[JobEvent]) -> Result<(), OutError> {
    for event in events {
        let at = time::iso(event.at_ms);
        if out.is_json() {
            out.json(&Line {
                id: &event.id,
                at,
                event: &event.event,
                job: &event.job,
                by: &event.by,
                note: &event.note,
            })?;
            continue;
        }
        let [what, job, by, note] =
            [&event.event, &event.job, &event.by, &event.note].map(|text| one_line(text, MAX_NOTE));
        let by = if by.is_empty() { "-" } else { &by };
        let line = format!("{at}  {what:9}  {job}  {by}  {note}");
        out.line(line.trim_end())?;
    }
    Ok(())
}
