//! `meshwork events`.

use std::borrow::Cow;
use std::time::Duration;

use meshwork::{EventFilter, JobEvent};
use meshwork_model::name::JobId;
use meshwork_model::schedule::wall_time::Direction;
use meshwork_model::time;
use meshwork_ops::params::MAX_LIMIT;
use serde::{Deserialize, Serialize};
use serde_json::{Map, json};
use tokio::time::sleep;

use crate::app::App;
use crate::args::moment::{self, Moment, ZoneArg};
use crate::args::parsers;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::{Out, OutError, note, one_line};

/// Time between two looks at the events of the API.
const LOOK: Duration = Duration::from_millis(500);
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

#[derive(Debug, Serialize, Deserialize)]
struct Line<'a> {
    id: Cow<'a, str>,
    at: String,
    event: Cow<'a, str>,
    job: Cow<'a, str>,
    by: Cow<'a, str>,
    note: Cow<'a, str>,
}

/// Page of events.
#[derive(Deserialize)]
struct EventPage {
    events: Vec<Line<'static>>,
    last: Option<String>,
}

impl Events {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        if context.remote.is_some() {
            return self.by_api(context).await;
        }
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

impl Events {
    /// Runs the command by the API, which has the events of one job.
    async fn by_api(self, context: &mut App) -> Result<Exit, CommandError> {
        let Some(job) = &self.job else {
            return Err(CommandError::usage(
                "`events` with --api shows those of one job: give --job; `GET /v1/events` streams all new ones",
            ));
        };
        let since = self.since.map(|moment| {
            let zone = self.zone.zone(&[self.since])?;
            moment.meant("since", meshwork::host_ms(), &zone, Direction::Last)
        });
        let limit = self.limit as usize;
        let mut params = Map::new();
        params.insert("id".to_owned(), job.as_str().into());
        params.insert("limit".to_owned(), (limit + 1).min(MAX_LIMIT).into());
        params.insert("since".to_owned(), json!(since.transpose()?.map(time::iso)));
        let page: EventPage = context.call("job.events", &params).await?;
        let cut = page.events.len().saturating_sub(limit);
        if cut > 0 && limit > 0 {
            note(format_args!("the newest {limit}; there are more (--limit)"));
        }
        print(&mut context.out, page.events.into_iter().skip(cut))?;
        let mut last = page.last;
        params.insert("limit".to_owned(), MAX_LIMIT.into());
        if !self.follow {
            return Ok(Exit::DONE);
        }
        loop {
            context.out.flush()?;
            sleep(LOOK).await;
            let from = last.as_deref().unwrap_or("0-0");
            params.insert("after".to_owned(), from.into());
            let page: EventPage = context.call("job.events", &params).await?;
            print(&mut context.out, page.events)?;
            last = page.last.or(last);
        }
    }
}

fn tell(out: &mut Out, events: &[JobEvent]) -> Result<(), OutError> {
    let line = |event: &JobEvent| Line {
        id: event.id.clone().into(),
        at: time::iso(event.at_ms),
        event: event.event.clone().into(),
        job: event.job.clone().into(),
        by: event.by.clone().into(),
        note: event.note.clone().into(),
    };
    print(out, events.iter().map(line))
}

fn print<'a>(out: &mut Out, events: impl IntoIterator<Item = Line<'a>>) -> Result<(), OutError> {
    for event in events {
        if out.is_json() {
            out.json(&event)?;
            continue;
        }
        let [what, job, by, note] =
            [&event.event, &event.job, &event.by, &event.note].map(|text| one_line(text, MAX_NOTE));
        let by = if by.is_empty() { "-" } else { &by };
        let line = format!("{}  {what:9}  {job}  {by}  {note}", event.at);
        out.line(line.trim_end())?;
    }
    Ok(())
}
