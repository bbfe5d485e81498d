//! copy_counters: copies the counters of queues into their histories, once in each hour; and reads a history.

use meshwork_macros::boxed;
use std::collections::BTreeSet;
use std::time::Duration;

use meshwork_model::queue::history::{Counters, HistoryEntry, HistorySpan, spans, sum_of_lists};
use redis::RedisResult;

use crate::broker::Broker;
use crate::error::Error;
use crate::script::Verb;
use crate::verb::inspect::jobs::{failed, texts};
use crate::verb::queue::stats::{KnownQueues, QueueStats};
use crate::verb::{Fields, MAX_ITEMS};

/// Lists that one call copies: each takes some ten microseconds of the server's time.
const COPIED: usize = 200;

/// Result of a call of [`Broker::copy_counters`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CopiedCounters {
    /// Number of lists whose counters were copied.
    pub lists: usize,
    /// True if more are due.
    pub more: bool,
    /// Time until the next hour.
    pub next_hour: Duration,
    /// True if all lists with counters are known.
    pub all_known: bool,
}

impl Broker {
    /// Copies the counters of lists into their histories, unless that was done in this hour: those whose history is known,
    /// and of `lists` those with counters, at most [`MAX_ITEMS`]. With `all`, these calls have named all lists with
    /// counters; a list that becomes known later is new.
    ///
    /// # Errors
    /// There are more than [`MAX_ITEMS`], or the server refuses the call; repeat it then.
    #[boxed]
    pub async fn copy_counters(
        &self,
        lists: &[String],
        all: bool,
    ) -> Result<CopiedCounters, Error> {
        crate::verb::at_most("copy_counters", MAX_ITEMS, lists.len())?;
        let mut call = self.scripts.call(Verb::CopyCounters);
        call = call.arg(self.clock.argument()).arg(COPIED);
        call = call.arg(if all { "1" } else { "" });
        for list in lists {
            call = call.arg(list.as_str());
        }
        let mut answer = call.answer(&self.conn).await?;
        Ok(CopiedCounters {
            lists: answer.next("lists")?,
            more: answer.flag("more")?,
            next_hour: Duration::from_millis(answer.next("next_hour")?),
            all_known: answer.flag("all_known")?,
        })
    }

    /// Copies the counters of all queues, as [`Self::copy_counters`]. Until all lists with counters are known, each call
    /// searches a part of the keys for them; keep `known` between calls.
    ///
    /// # Errors
    /// The server refuses a call; repeat it then.
    #[boxed]
    pub async fn record_history(&self, known: &mut KnownQueues) -> Result<CopiedCounters, Error> {
        let listened: BTreeSet<String> = self.listened().await?.into_iter().collect();
        let copied = self
            .copy_each(listened.into_iter().collect(), false)
            .await?;
        if copied.all_known || !self.search_some(known).await? {
            return Ok(copied);
        }
        self.copy_each(known.names(), true).await
    }

    async fn copy_each(&self, lists: Vec<String>, all: bool) -> Result<CopiedCounters, Error> {
        let mut rest = &lists[..];
        loop {
            let (chunk, after) = rest.split_at(rest.len().min(MAX_ITEMS));
            let copied = self.copy_counters(chunk, all && after.is_empty()).await?;
            if after.is_empty() {
                return Ok(copied);
            }
            rest = after;
        }
    }

    /// Returns the counts of a queue in the last three days, in order, for all its priorities together.
    ///
    /// # Errors
    /// The server refuses a call.
    #[boxed]
    pub async fn queue_history(&self, queue: &str) -> Result<Vec<HistorySpan>, Error> {
        let now_ms = self.now().await?;
        let lists: BTreeSet<String> = self.lists_by_priority(queue).into_iter().collect();
        let mut pipe = redis::pipe();
        pipe.ignore_errors();
        for list in &lists {
            pipe.cmd("ZRANGE")
                .arg(self.keys.history_key(list))
                .arg(0)
                .arg(-1);
            pipe.cmd("HGETALL").arg(self.keys.queue_stats_key(list));
        }
        type Row = (RedisResult<Vec<Vec<u8>>>, RedisResult<Fields>);
        let conn = &mut self.conn.clone();
        let rows: Vec<Row> = pipe.query_async(conn).await.map_err(failed)?;
        let of_list = |(list, (entries, fields)): (&String, Row)| {
            let entries = texts(entries.unwrap_or_default());
            let entries: Vec<_> = entries.filter_map(|it| HistoryEntry::parse(&it)).collect();
            let stats = QueueStats::read(list, fields.unwrap_or_default());
            let now = Counters {
                stored: stats.created,
                finished: stats.finished,
                failed: stats.failed,
                retried: stats.retried,
                run_ms: stats.run_ms,
            };
            spans(&entries, (now_ms, now))
        };
        Ok(sum_of_lists(lists.iter().zip(rows).map(of_list)))
    }
}
