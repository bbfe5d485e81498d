//! workers: registrations of live workers. Reads only.

use meshwork_macros::boxed;
use meshwork_model::name::{Group, ScriptType};
use redis::RedisResult;

use crate::broker::Broker;
use crate::error::Error;
use crate::verb::inspect::jobs::{SCAN_COUNT, failed, glob_literal, texts};
use crate::verb::{MAX_ITEMS, text};

/// Greatest number of Meshwork's workers that are read for one group. Larger groups are not read completely.
const MOST: usize = 10 * MAX_ITEMS;

/// A registration key without the common prefix (`osis:default:1`), and its value.
pub type RegisteredWorker = (String, String);

/// A page of registrations.
#[derive(Debug, Clone, Default)]
pub struct WorkerPage {
    /// Registrations of live workers, in no order.
    pub workers: Vec<RegisteredWorker>,
    /// Cursor of the next page; 0 after the last one.
    pub next: u64,
}

impl Broker {
    /// Returns a page of all registrations, also of foreign workers. Begin at 0 and continue with `next` until it is
    /// 0. A registration may occur twice.
    ///
    /// # Errors
    /// The server refuses a call.
    #[boxed]
    pub async fn workers(&self, from: u64) -> Result<WorkerPage, Error> {
        let mut scan = redis::cmd("SCAN");
        scan.arg(from)
            .arg("MATCH")
            .arg(format!("{}*", glob_literal(&self.keys.presence_prefix())));
        scan.arg("COUNT").arg(SCAN_COUNT).arg("TYPE").arg("string");
        let (next, keys): (u64, Vec<Vec<u8>>) = self.ask("workers", &scan).await?;
        let workers = self.values(texts(keys).collect()).await?;
        Ok(WorkerPage { workers, next })
    }

    /// Returns Meshwork's workers in one group. Foreign workers are not included. The cost does not depend on the
    /// number of jobs.
    ///
    /// # Errors
    /// The server refuses a call.
    #[boxed]
    pub async fn native_workers(
        &self,
        script_type: &ScriptType,
        group: &Group,
    ) -> Result<Vec<RegisteredWorker>, Error> {
        let now = self.now().await?;
        self.live_workers(now, &format!("{script_type}:{group}:"))
            .await
    }

    /// Returns Meshwork's live workers of a type, in all groups. The cost does not depend on the number of jobs.
    ///
    /// # Errors
    /// The server refuses a call.
    #[boxed]
    pub async fn workers_of_type(&self, script_type: &str) -> Result<Vec<RegisteredWorker>, Error> {
        let now = self.now().await?;
        self.live_workers(now, &format!("{script_type}:")).await
    }

    /// Returns whether a Meshwork worker of a type is alive, in any group.
    ///
    /// # Errors
    /// The server refuses a call.
    #[boxed]
    pub async fn has_worker(&self, script_type: &ScriptType) -> Result<bool, Error> {
        let now = self.now().await?;
        let workers = self.live_workers(now, &format!("{script_type}:")).await?;
        Ok(!workers.is_empty())
    }

    /// Returns up to `most` of Meshwork's registered workers, those first whose registration expires first. Dead
    /// workers, which do not renew it, come first.
    ///
    /// # Errors
    /// The server refuses a call.
    #[boxed]
    pub async fn stalest_workers(&self, most: usize) -> Result<Vec<RegisteredWorker>, Error> {
        let mut range = redis::cmd("ZRANGEBYSCORE");
        range.arg(self.keys.registrations()).arg("-inf").arg("+inf");
        range.arg("LIMIT").arg(0).arg(most);
        let keys: Vec<Vec<u8>> = self.ask("workers", &range).await?;
        let prefix = self.keys.presence_prefix();
        let keys = texts(keys).filter(|key| key.starts_with(&prefix));
        self.values(keys.collect()).await
    }

    /// Returns Meshwork's workers that are alive at `now` and whose name begins with `name`, up to [`MOST`].
    pub(crate) async fn live_workers(
        &self,
        now: u64,
        name: &str,
    ) -> Result<Vec<RegisteredWorker>, Error> {
        let prefix = format!("{}{name}", self.keys.presence_prefix());
        let mut range = redis::cmd("ZRANGEBYSCORE");
        range
            .arg(self.keys.registrations())
            .arg(format!("({now}"))
            .arg("+inf");
        range.arg("LIMIT").arg(0).arg(MOST);
        let keys: Vec<Vec<u8>> = self.ask("workers", &range).await?;
        let keys = texts(keys).filter(|key| key.starts_with(&prefix));
        self.values(keys.collect()).await
    }

    async fn values(&self, keys: Vec<String>) -> Result<Vec<RegisteredWorker>, Error> {
        let prefix = self.keys.presence_prefix();
        let mut workers = Vec::with_capacity(keys.len());
        for chunk in keys.chunks(MAX_ITEMS) {
            let mut pipe = redis::pipe();
            // A key of another type is not a registration.
            pipe.ignore_errors();
            for key in chunk {
                pipe.cmd("GET").arg(key);
            }
            let conn = &mut self.conn.clone();
            let values: Vec<RedisResult<Option<Vec<u8>>>> =
                pipe.query_async(conn).await.map_err(failed)?;
            let there = chunk.iter().zip(values).filter_map(|(key, value)| {
                let name = key.strip_prefix(&prefix)?;
                Some((name.to_owned(), text(value.ok()??)))
            });
            workers.extend(there);
        }
        Ok(workers)
    }
}
