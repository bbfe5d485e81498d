//! Reads streams: stored entries, and new ones. [`crate::verb::inspect::events`] and [`crate::verb::inspect::logs`] interpret them.

use std::time::Duration;

use redis::{FromRedisValue, Value};

use crate::broker::Broker;
use crate::error::Error;
use crate::verb::BlockingConn;

/// Position before the first entry of every stream.
pub(crate) const BEGINNING: &str = "0-0";

/// Greatest duration of one wait for entries, so that the caller can check for other work.
const MAX_WAIT: Duration = Duration::from_secs(30);

/// An entry: its id, and alternately names and values.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) id: String,
    pub(crate) parts: Vec<Vec<u8>>,
}

impl Entry {
    pub(crate) fn read((id, parts): (String, Vec<Vec<u8>>)) -> Self {
        Self { id, parts }
    }

    /// Returns the time of the entry, in milliseconds since 1970.
    pub(crate) fn at_ms(&self) -> u64 {
        let ms = self.id.split('-').next().unwrap_or_default();
        ms.parse().unwrap_or_default()
    }

    /// Returns the fields with their values.
    pub(crate) fn fields(self) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> {
        let mut parts = self.parts.into_iter();
        std::iter::from_fn(move || Some((parts.next()?, parts.next()?)))
    }
}

/// Selection of entries.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wanted<'a> {
    /// The oldest entries after this id.
    After(&'a str),
    /// The newest entries before this id, or of all, without those before a time in milliseconds.
    Newest {
        before: Option<&'a str>,
        since_ms: u64,
    },
}

impl Broker {
    /// Returns stored entries, in the order of the selection.
    pub(crate) async fn entries(
        &self,
        stream: &str,
        wanted: Wanted<'_>,
        most: usize,
    ) -> Result<Vec<Entry>, Error> {
        let cmd = match wanted {
            Wanted::After(id) => {
                let mut cmd = redis::cmd("XRANGE");
                cmd.arg(stream).arg(format!("({id}")).arg("+");
                cmd
            }
            Wanted::Newest { before, since_ms } => {
                let mut cmd = redis::cmd("XREVRANGE");
                let end = before.map_or_else(|| "+".to_owned(), |id| format!("({id}"));
                cmd.arg(stream).arg(end).arg(since_ms);
                cmd
            }
        };
        let entries: Vec<_> = self
            .ask("follow", cmd.clone().arg("COUNT").arg(most))
            .await?;
        Ok(entries.into_iter().map(Entry::read).collect())
    }

    /// Returns the ids of the oldest and the newest entry; `None` if there is none.
    pub(crate) async fn bounds(&self, stream: &str) -> Result<Option<(String, String)>, Error> {
        let newest = Wanted::Newest {
            before: None,
            since_ms: 0,
        };
        let newest = self.entries(stream, newest, 1).await?;
        let oldest = self.entries(stream, Wanted::After(BEGINNING), 1).await?;
        let id = |entries: Vec<Entry>| entries.into_iter().next().map(|entry| entry.id);
        Ok(id(oldest).zip(id(newest)))
    }

    /// Waits for entries after `after`. Returns none after the timeout.
    pub(crate) async fn next_entries(
        &self,
        blocking: &BlockingConn,
        stream: &str,
        after: &str,
        most: usize,
        wait: Duration,
    ) -> Result<Vec<Entry>, Error> {
        let wait = wait.min(MAX_WAIT);
        let mut cmd = redis::cmd("XREAD");
        cmd.arg("COUNT").arg(most).arg("BLOCK");
        // A timeout of 0 would mean no limit.
        cmd.arg(wait.as_millis().max(1) as u64);
        cmd.arg("STREAMS").arg(stream).arg(after);
        let answer = blocking.call("follow", &cmd, wait).await?;
        if answer == Value::Nil {
            return Ok(Vec::new());
        }
        type Streams = Vec<(String, Vec<(String, Vec<Vec<u8>>)>)>;
        let streams = Streams::from_redis_value(answer).map_err(|error| Error::Call {
            verb: "follow",
            source: error.into(),
        })?;
        let entries = streams.into_iter().flat_map(|(_, entries)| entries);
        Ok(entries.map(Entry::read).collect())
    }
}
