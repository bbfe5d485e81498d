//! inspect: reads jobs, results and queues. Changes nothing.

use meshwork_macros::boxed;
use meshwork_model::bananas::Outcome;
use meshwork_model::name::RoutingKey;
use meshwork_model::route::Priority;

use super::{Bananas, Found};
use crate::error::Error;
use crate::verb::{MAX_ITEMS, text};

/// A list and the number of its ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Depth {
    /// The list.
    pub list: String,
    /// Route of the list; `default` for one without a route.
    pub route: RoutingKey,
    /// The priority.
    pub priority: Priority,
    /// Number of ids.
    pub waiting: u64,
}

/// Numbers of waiting, running and failed jobs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Depths {
    /// Lists, those without a route first.
    pub lists: Vec<Depth>,
    /// Number of delayed jobs.
    pub scheduled: u64,
    /// Number of jobs that any worker runs.
    pub processing: u64,
    /// Number of jobs that Meshwork's workers run.
    pub ours: u64,
    /// Number of dead letters.
    pub dead: u64,
}

pub(super) fn failed(verb: &'static str) -> impl FnOnce(redis::RedisError) -> Error {
    move |source| Error::Call { verb, source }
}

impl Bananas {
    /// Returns the record of a job.
    ///
    /// # Errors
    /// The server refuses the call.
    #[boxed]
    pub async fn inspect(&self, id: &str) -> Result<Found, Error> {
        self.look(id.as_bytes()).await
    }

    /// Returns the record of an id that may not be text.
    pub(super) async fn look(&self, id: &[u8]) -> Result<Found, Error> {
        let mut get = redis::cmd("GET");
        get.arg([self.keys.job_prefix().as_bytes(), id].concat());
        let answer = get.query_async(&mut self.conn.clone()).await;
        match answer {
            Ok(None) => Ok(Found::Missing),
            Ok(Some(bytes)) => Ok(Found::read("there", bytes)),
            Err(error) if error.code() == Some("WRONGTYPE") => Ok(Found::Odd),
            Err(source) => Err(failed("inspect")(source)),
        }
    }

    /// Returns the outcome of a job that has ended, while its result exists.
    ///
    /// # Errors
    /// The server refuses the call.
    #[boxed]
    pub async fn result(&self, id: &str) -> Result<Option<Outcome>, Error> {
        let mut get = redis::cmd("HGETALL");
        get.arg(self.keys.result(id));
        let fields: Result<Vec<(Vec<u8>, Vec<u8>)>, _> =
            get.query_async(&mut self.conn.clone()).await;
        let fields = fields.map_err(failed("result"))?.into_iter();
        Ok(Outcome::read(
            fields.map(|(name, value)| (text(name), text(value))),
        ))
    }

    /// Returns the ids of dead letters from `from` on, the latest first.
    ///
    /// # Errors
    /// The server refuses the call.
    #[boxed]
    pub async fn dead(&self, from: usize) -> Result<Vec<Vec<u8>>, Error> {
        let mut range = redis::cmd("LRANGE");
        range
            .arg(self.keys.dead())
            .arg(from)
            .arg(from + MAX_ITEMS - 1);
        let ids = range.query_async(&mut self.conn.clone()).await;
        ids.map_err(failed("dead"))
    }

    /// Returns the numbers of jobs. Finds the routes by a scan of all keys.
    ///
    /// # Errors
    /// The server refuses the calls.
    #[boxed]
    pub async fn depths(&self) -> Result<Depths, Error> {
        let mut lists: Vec<String> = Priority::ALL.map(|p| self.keys.plain(p)).into();
        let mut routed = self.routed_lists().await?;
        // Sorted by route, then by priority.
        routed.sort_by_key(|list| self.keys.parse_list(list));
        lists.extend(routed);
        let mut pipe = redis::pipe();
        for list in &lists {
            pipe.cmd("LLEN").arg(list);
        }
        pipe.cmd("ZCARD").arg(self.keys.scheduled());
        pipe.cmd("LLEN").arg(self.keys.processing());
        pipe.cmd("HLEN").arg(self.keys.held());
        pipe.cmd("LLEN").arg(self.keys.dead());
        let counts = pipe.query_async(&mut self.conn.clone()).await;
        let counts: Vec<u64> = counts.map_err(failed("depths"))?;
        let (waiting, others) = counts.split_at(lists.len());
        let depth = |(list, waiting): (String, &u64)| {
            let (route, priority) = self.keys.parse_list(&list)?;
            Some(Depth {
                list,
                route,
                priority,
                waiting: *waiting,
            })
        };
        let other = |at: usize| others.get(at).copied().unwrap_or_default();
        Ok(Depths {
            lists: lists.into_iter().zip(waiting).filter_map(depth).collect(),
            scheduled: other(0),
            processing: other(1),
            ours: other(2),
            dead: other(3),
        })
    }

    async fn routed_lists(&self) -> Result<Vec<String>, Error> {
        let (mut found, mut from) = (Vec::new(), 0_u64);
        loop {
            let mut scan = redis::cmd("SCAN");
            scan.arg(from)
                .arg("MATCH")
                .arg(format!("{}*", self.keys.route_prefix()))
                .arg("COUNT")
                .arg(MAX_ITEMS)
                .arg("TYPE")
                .arg("list");
            let page = scan.query_async(&mut self.conn.clone()).await;
            let (next, keys): (u64, Vec<Vec<u8>>) = page.map_err(failed("depths"))?;
            let lists = keys.into_iter().map(text);
            found.extend(lists.filter(|list| self.keys.parse_list(list).is_some()));
            from = next;
            if from == 0 {
                break;
            }
        }
        // A scan may return a key twice.
        found.sort();
        found.dedup();
        Ok(found)
    }
}
