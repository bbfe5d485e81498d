//! waiting: the ids that wait in the lists of a queue, for a purge, and the times of delayed jobs.

use meshwork_model::keys::hero::Hero;
use meshwork_model::name::JobId;
use meshwork_model::route::Priority;
use redis::RedisResult;

use super::inspect::{failed, texts};
use super::{MAX_ITEMS, at_most};
use crate::{Broker, Error};

/// Up to this length `delete` takes an id off its list itself; see `remove_from_lists.lua`.
const LONGEST_WALK: usize = 10_000;

impl Broker {
    /// The lists of a queue: with a priority in the name that one, otherwise those of all priorities.
    #[must_use]
    pub fn lists_of_queue(&self, queue: &str) -> Vec<String> {
        let base = Hero::without_priority(queue);
        if base != queue {
            return vec![queue.to_owned()];
        }
        let lists = [Priority::High, Priority::Low];
        let lists = lists.map(|priority| Hero::work_queue_priority(queue, priority));
        std::iter::once(queue.to_owned()).chain(lists).collect()
    }

    /// The number of ids in a list; 0 where the key is no list.
    ///
    /// # Errors
    /// If the server does not take the call.
    pub async fn list_length(&self, list: &str) -> Result<usize, Error> {
        let mut pipe = redis::pipe();
        pipe.ignore_errors().cmd("LLEN").arg(list);
        let mut lengths: Vec<RedisResult<usize>> = pipe
            .query_async(&mut self.conn.clone())
            .await
            .map_err(failed)?;
        Ok(lengths.pop().and_then(Result::ok).unwrap_or(0))
    }

    /// Whether anything was counted for a queue, of whichever priority: somebody has enqueued to it, or run jobs of it.
    ///
    /// # Errors
    /// If the server does not take the call.
    pub async fn has_figures(&self, queue: &str) -> Result<bool, Error> {
        let mut exists = redis::cmd("EXISTS");
        for list in self.lists_of_queue(queue) {
            exists.arg(self.keys.queue_stats_key(&list));
        }
        Ok(self.ask::<usize>("waiting", &exists).await? > 0)
    }

    /// At most `count` ids of a list, those that are claimed next first, without the first `skip`.
    ///
    /// # Errors
    /// If `count` is over [`MAX_ITEMS`], or the server does not take the call.
    pub async fn waiting_ids(
        &self,
        list: &str,
        skip: usize,
        count: usize,
    ) -> Result<Vec<JobId>, Error> {
        at_most("waiting", MAX_ITEMS, count)?;
        let (skip, count) = (skip as i64, count as i64);
        let mut range = redis::cmd("LRANGE");
        range.arg(list).arg(-skip - count).arg(-skip - 1);
        let ids: Vec<Vec<u8>> = self.ask("waiting", &range).await?;
        let mut ids: Vec<_> = texts(ids).map(JobId::foreign).collect();
        ids.reverse();
        Ok(ids)
    }

    /// The number of jobs of a queue that are set aside until it is the turn of their key.
    ///
    /// # Errors
    /// If the server does not take a call.
    pub async fn set_aside_count(&self, queue: &str) -> Result<usize, Error> {
        let lists = self.lists_of_queue(queue);
        let aside = self.aside(Some(Hero::without_priority(queue))).await?;
        let of_these = aside.iter().filter(|(list, _)| lists.contains(list));
        Ok(of_these.map(|(_, count)| count).sum())
    }

    /// At most [`MAX_ITEMS`] ids of jobs of a queue that are set aside until it is the turn of their key.
    ///
    /// # Errors
    /// If the server does not take a call.
    pub async fn set_aside_ids(&self, queue: &str) -> Result<Vec<JobId>, Error> {
        let lists = self.lists_of_queue(queue);
        let (mut ids, mut from) = (Vec::new(), 0);
        loop {
            let mut range = redis::cmd("ZRANGE");
            range.arg(self.keys.held());
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

    /// Takes ids off a list that no job stands behind any more: those that had none, and those of jobs that were just
    /// deleted, where the list is too long for [`Broker::delete`] to do so.
    ///
    /// # Errors
    /// If the server does not take a call; a claim drops what is left.
    pub async fn drop_ids(
        &self,
        list: &str,
        without_job: &[JobId],
        deleted: &[JobId],
    ) -> Result<(), Error> {
        let long = self.list_length(list).await? >= LONGEST_WALK;
        let deleted = deleted.iter().filter(|_| long);
        let mut pipe = redis::pipe();
        // From the end that is claimed first, where they stand.
        for id in without_job.iter().chain(deleted) {
            pipe.cmd("LREM").arg(list).arg(-1).arg(id.as_str()).ignore();
        }
        if pipe.is_empty() {
            return Ok(());
        }
        pipe.query_async(&mut self.conn.clone())
            .await
            .map_err(failed)
    }

    /// The times at which several jobs are to run, in milliseconds since 1970, in order; none where a job is not
    /// delayed.
    ///
    /// # Errors
    /// If there are more than [`MAX_ITEMS`], or the server does not take the call.
    pub async fn next_runs(&self, ids: &[JobId]) -> Result<Vec<Option<u64>>, Error> {
        at_most("next runs", MAX_ITEMS, ids.len())?;
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut pipe = redis::pipe();
        for id in ids {
            pipe.cmd("ZSCORE").arg(self.keys.delayed()).arg(id.as_str());
        }
        let scores: Vec<Option<f64>> = pipe
            .query_async(&mut self.conn.clone())
            .await
            .map_err(failed)?;
        Ok(scores
            .into_iter()
            .map(|ms| ms.map(|ms| ms as u64))
            .collect())
    }
}
