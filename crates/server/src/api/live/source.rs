//! Streams of the store that can be followed: events, and the log of a job.

use std::collections::HashMap;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use meshwork_broker::{BlockingConn, Broker, Error, JobEvent, LogLine, MAX_ITEMS};
use meshwork_model::name::JobId;
use meshwork_model::secret::Secrets;
use meshwork_model::state::Status;
use meshwork_model::time;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::position::{Position, placed};

/// Longest single blocking read.
const SLICE: Duration = Duration::from_millis(500);

/// The part of a stream that a subscriber gets.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Topic {
    /// All items.
    All,
    /// Those of a job.
    Job(String),
    /// Those of the jobs of a queue, by its list.
    Queue(String),
    /// Those of the jobs of a flow.
    Flow(u32),
}

impl Topic {
    /// Returns true if records of jobs have to be read for it.
    pub(super) fn needs_records(&self) -> bool {
        matches!(self, Self::Queue(_) | Self::Flow(_))
    }
}

/// An item, written once for all subscribers.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) at: Position,
    pub(crate) topics: Vec<Topic>,
    pub(crate) json: Box<RawValue>,
}

/// A stream of the store.
pub(crate) trait Source: Send + Sync + 'static {
    /// Kind of its items, as the name of an event.
    fn kind(&self) -> &'static str;

    /// Opens a connection for blocking reads.
    fn connect(&self) -> BoxFuture<'_, Result<BlockingConn, Error>>;

    /// Positions of the oldest and the newest stored item.
    fn bounds(&self) -> BoxFuture<'_, Result<Option<(Position, Position)>, Error>>;

    /// Reads the oldest stored items after a position, with the topics of their records if `records`. There may be more
    /// after [`MAX_ITEMS`].
    fn page(&self, after: Position, records: bool) -> BoxFuture<'_, Result<Vec<Item>, Error>>;

    /// Waits for items after a position.
    fn wait<'a>(
        &'a self,
        conn: &'a BlockingConn,
        after: Position,
        records: bool,
    ) -> BoxFuture<'a, Result<Vec<Item>, Error>>;

    /// Returns true if no items will come any more.
    fn has_ended(&self) -> BoxFuture<'_, Result<bool, Error>>;
}

/// Events of the jobs of a namespace.
#[derive(Debug)]
pub(super) struct Events(pub(super) Broker);

/// An event as subscribers get it.
#[derive(Debug, Serialize)]
struct EventView<'a> {
    id: String,
    at: String,
    job: &'a str,
    event: &'a str,
    by: &'a str,
    note: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flow: Option<u32>,
}

fn json(view: &impl Serialize) -> Box<RawValue> {
    // The views have texts and numbers alone.
    to_raw_value(view).unwrap_or_default()
}

impl Events {
    async fn items(
        &self,
        events: Vec<JobEvent>,
        after: Position,
        records: bool,
    ) -> Result<Vec<Item>, Error> {
        let events = placed(events, |event| &event.id);
        let events: Vec<_> = events.into_iter().filter(|(at, _)| *at > after).collect();
        let records = match records {
            true => self.records(&events).await?,
            false => HashMap::new(),
        };
        let item = |(at, event): &(Position, JobEvent)| {
            let record = records.get(event.job.as_str());
            let queue = record.map(|(queue, _)| queue.as_str());
            let flow = record.and_then(|(_, flow)| *flow);
            let mut topics = vec![Topic::All, Topic::Job(event.job.clone())];
            topics.extend(queue.map(|queue| Topic::Queue(queue.to_owned())));
            topics.extend(flow.map(Topic::Flow));
            let view = EventView {
                id: at.to_string(),
                at: time::iso(event.at_ms),
                job: &event.job,
                event: &event.event,
                by: &event.by,
                note: &event.note,
                queue: queue.map(|queue| self.0.keys().queue_name(queue)),
                flow,
            };
            Item {
                at: *at,
                topics,
                json: json(&view),
            }
        };
        Ok(events.iter().map(item).collect())
    }

    /// Reads queue and flow of the jobs of events. A job that was deleted has none.
    async fn records(
        &self,
        events: &[(Position, JobEvent)],
    ) -> Result<HashMap<String, (String, Option<u32>)>, Error> {
        let mut ids: Vec<_> = events.iter().map(|(_, event)| event.job.clone()).collect();
        ids.sort_unstable();
        ids.dedup();
        let mut found = HashMap::with_capacity(ids.len());
        for ids in ids.chunks(MAX_ITEMS) {
            let ids: Vec<_> = ids.iter().cloned().map(JobId::foreign).collect();
            let jobs = self.0.summaries(&ids).await?;
            for (id, job) in ids.iter().zip(jobs) {
                if let Some(job) = job {
                    found.insert(id.to_string(), (self.0.queue_of(&job), job.flow));
                }
            }
        }
        Ok(found)
    }
}

fn bounds(ids: Option<(String, String)>) -> Option<(Position, Position)> {
    let (oldest, newest) = ids?;
    Some((oldest.parse().ok()?, newest.parse().ok()?))
}

impl Source for Events {
    fn kind(&self) -> &'static str {
        "event"
    }

    fn connect(&self) -> BoxFuture<'_, Result<BlockingConn, Error>> {
        self.0.blocking_conn().boxed()
    }

    fn bounds(&self) -> BoxFuture<'_, Result<Option<(Position, Position)>, Error>> {
        async { Ok(bounds(self.0.event_bounds().await?)) }.boxed()
    }

    fn page(&self, after: Position, records: bool) -> BoxFuture<'_, Result<Vec<Item>, Error>> {
        async move {
            let events = self.0.events_after(&after.entry_before()).await?;
            self.items(events, after, records).await
        }
        .boxed()
    }

    fn wait<'a>(
        &'a self,
        conn: &'a BlockingConn,
        after: Position,
        records: bool,
    ) -> BoxFuture<'a, Result<Vec<Item>, Error>> {
        async move {
            let before = after.entry_before();
            let events = self.0.next_events(conn, Some(&before), SLICE).await?;
            self.items(events, after, records).await
        }
        .boxed()
    }

    fn has_ended(&self) -> BoxFuture<'_, Result<bool, Error>> {
        std::future::ready(Ok(false)).boxed()
    }
}

/// The log of a job.
#[derive(Debug)]
pub(super) struct Log {
    pub(super) broker: Broker,
    pub(super) id: JobId,
    pub(super) secrets: Secrets,
}

/// A line as subscribers get it.
#[derive(Debug, Serialize)]
struct LineView<'a> {
    id: String,
    at: String,
    stream: &'a str,
    line: &'a str,
}

impl Log {
    fn items(&self, lines: Vec<LogLine>, after: Position) -> Vec<Item> {
        let lines = placed(lines, |line| &line.id);
        let lines = lines.iter().filter(|(at, _)| *at > after);
        let item = |(at, line): &(Position, LogLine)| {
            let text = self.secrets.mask_bytes(&line.line);
            let view = LineView {
                id: at.to_string(),
                at: time::iso(line.at_ms),
                stream: &line.stream,
                line: &String::from_utf8_lossy(&text),
            };
            Item {
                at: *at,
                topics: vec![Topic::All],
                json: json(&view),
            }
        };
        lines.map(item).collect()
    }
}

impl Source for Log {
    fn kind(&self) -> &'static str {
        "line"
    }

    fn connect(&self) -> BoxFuture<'_, Result<BlockingConn, Error>> {
        self.broker.blocking_conn().boxed()
    }

    fn bounds(&self) -> BoxFuture<'_, Result<Option<(Position, Position)>, Error>> {
        async { Ok(bounds(self.broker.log_bounds(&self.id).await?)) }.boxed()
    }

    fn page(&self, after: Position, _: bool) -> BoxFuture<'_, Result<Vec<Item>, Error>> {
        async move {
            let before = after.entry_before();
            let lines = self.broker.log_lines(&self.id, Some(&before)).await?;
            Ok(self.items(lines, after))
        }
        .boxed()
    }

    fn wait<'a>(
        &'a self,
        conn: &'a BlockingConn,
        after: Position,
        _: bool,
    ) -> BoxFuture<'a, Result<Vec<Item>, Error>> {
        async move {
            let before = after.entry_before();
            let lines = self
                .broker
                .next_log_lines(conn, &self.id, Some(&before), SLICE);
            Ok(self.items(lines.await?, after))
        }
        .boxed()
    }

    /// A job that was deleted has ended too.
    fn has_ended(&self) -> BoxFuture<'_, Result<bool, Error>> {
        async {
            let jobs = self.broker.summaries(std::slice::from_ref(&self.id));
            let job = jobs.await?.into_iter().next().flatten();
            Ok(job.is_none_or(|job| job.status().is_some_and(Status::is_final)))
        }
        .boxed()
    }
}
