//! waiting: reads the ids in the lists of a queue, for a purge, and the times of delayed jobs.

use meshwork_macros::boxed;
use meshwork_model::keys::hero::JobKeys;
use meshwork_model::name::JobId;
use meshwork_model::route::Priority;
use redis::RedisResult;

use crate::broker::Broker;
use crate::error::Error;
use crate::verb::inspect::jobs::texts;
use crate::verb::{MAX_ITEMS, at_most};

/// Length of a list up to which `delete` removes an id itself; see `remove_from_lists.lua`.
const LONGEST_WALK: usize = 10_000;

impl Broker {
    /// Returns the lists of a queue: the one list if the name has a priority, otherwise those of all priorities.
    #[must_use]
    pub fn lists_of_queue(&self, queue: &str) -> Vec<String> {
        let base = JobKeys::without_priority(queue);
        if base != queue {
            return vec![queue.to_owned()];
        }
        let lists = [Priority::High, Priority::Low];
        let lists = lists.map(|priority| JobKeys::work_queue_priority(queue, priority));
        std::iter::once(queue.to_owned()).chain(lists).collect()
    }

    /// Returns the number of ids in a list; 0 if the key has another type.
    ///
    /// # Errors
    /// The server refuses the call.
    #[boxed]
    pub async fn list_length(&self, list: &str) -> Result<usize, Error> {
        let mut pipe = redis::pipe();
        pipe.ignore_errors().cmd("LLEN").arg(list);
        let mut lengths: Vec<RedisResult<usize>> = self.ask_all("inspect", &pipe).await?;
        Ok(lengths.pop().and_then(Result::ok).unwrap_or(0))
    }

    /// Returns whether a queue of any priority has metrics: clients have enqueued to it, or workers have run its
    /// jobs.
    ///
    /// # Errors
    /// The server refuses the call.
    #[boxed]
    pub async fn has_figures(&self, queue: &str) -> Result<bool, Error> {
        let mut exists = redis::cmd("EXISTS");
        for list in self.lists_of_queue(queue) {
            exists.arg(self.keys.queue_stats_key(&list));
        }
        Ok(self.ask::<usize>("waiting", &exists).await? > 0)
    }

    /// Returns up to `count` ids of a list, in the order of claims, without the first `skip`.
    ///
    /// # Errors
    /// `count` exceeds [`MAX_ITEMS`], or the server refuses the call.
    #[boxed]
    pub async fn waiting_ids(
        &self,
        list: &str,
        skip: usize,
        count: usize,
    ) -> Result<Vec<JobId>, Error> {
        at_most("waiting", MAX_ITEMS, count)?;
        if count == 0 {
            // The range would be that of the whole list.
            return Ok(Vec::new());
        }
        let (skip, count) = (skip as i64, count as i64);
        let mut range = redis::cmd("LRANGE");
        range.arg(list).arg(-skip - count).arg(-skip - 1);
        let ids: Vec<Vec<u8>> = self.ask("waiting", &range).await?;
        let mut ids: Vec<_> = texts(ids).map(JobId::foreign).collect();
        ids.reverse();
        Ok(ids)
    }

    /// Returns the number of a queue's jobs in backlogs of concurrency keys.
    ///
    /// # Errors
    /// The server refuses a call.
    #[boxed]
    pub async fn set_aside_count(&self, queue: &str) -> Result<usize, Error> {
        let lists = self.lists_of_queue(queue);
        let aside = self.aside(Some(JobKeys::without_priority(queue))).await?;
        let of_these = aside.iter().filter(|(list, _)| lists.contains(list));
        Ok(of_these.map(|(_, count)| count).sum())
    }

    /// Returns up to [`MAX_ITEMS`] ids of a queue's jobs in backlogs of concurrency keys.
    ///
    /// # Errors
    /// The server refuses a call.
    #[boxed]
    pub async fn set_aside_ids(&self, queue: &str) -> Result<Vec<JobId>, Error> {
        let lists = self.lists_of_queue(queue);
        let (mut ids, mut from) = (Vec::new(), 0);
        loop {
            let mut range = redis::cmd("ZRANGE");
            range.arg(self.keys.backlog_index());
            range.arg(from).arg(from + MAX_ITEMS - 1);
            let found: Vec<Vec<u8>> = self.ask("waiting", &range).await?;
            let (last, names) = (found.len() < MAX_ITEMS, texts(found));
            let of_these = |name: &String| {
                let list = name.split_once(' ').map(|(list, _)| list);
                list.is_some_and(|list| lists.iter().any(|of| of == list))
            };
            for name in names.filter(of_these) {
                let mut range = redis::cmd("ZRANGE");
                range.arg(self.keys.backlog(&name));
                range.arg(0).arg(MAX_ITEMS - ids.len() - 1);
                let found: Vec<Vec<u8>> = self.ask("waiting", &range).await?;
                ids.extend(texts(found).map(JobId::foreign));
                if ids.len() >= MAX_ITEMS {
                    return Ok(ids);
                }
            }
            if last {
                return Ok(ids);
            }
            from += MAX_ITEMS;
        }
    }

    /// Removes ids without jobs from a list: those that had none, and those of jobs that were just deleted, if the
    /// list is too long for [`Broker::delete`].
    ///
    /// # Errors
    /// The server refuses a call; claims drop the remaining ids.
    #[boxed]
    pub async fn drop_ids(
        &self,
        list: &str,
        without_job: &[JobId],
        deleted: &[JobId],
    ) -> Result<(), Error> {
        let long = self.list_length(list).await? >= LONGEST_WALK;
        let deleted = deleted.iter().filter(|_| long);
        let mut pipe = redis::pipe();
        // The search begins at the end that is claimed first, where these ids are.
        for id in without_job.iter().chain(deleted) {
            pipe.cmd("LREM").arg(list).arg(-1).arg(id.as_str()).ignore();
        }
        if pipe.is_empty() {
            return Ok(());
        }
        self.ask_all("inspect", &pipe).await
    }

    /// Returns the due times of several jobs, in milliseconds since 1970, in order; `None` for jobs that are not
    /// delayed.
    ///
    /// # Errors
    /// There are more than [`MAX_ITEMS`], or the server refuses the call.
    #[boxed]
    pub async fn next_runs(&self, ids: &[JobId]) -> Result<Vec<Option<u64>>, Error> {
        at_most("next runs", MAX_ITEMS, ids.len())?;
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut pipe = redis::pipe();
        for id in ids {
            pipe.cmd("ZSCORE").arg(self.keys.delayed()).arg(id.as_str());
        }
        let scores: Vec<Option<f64>> = self.ask_all("inspect", &pipe).await?;
        Ok(scores
            .into_iter()
            .map(|ms| ms.map(|ms| ms as u64))
            .collect())
    }
}
