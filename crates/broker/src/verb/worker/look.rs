//! look, look_for_due: plain reads that show whether an idle worker has anything to do. They run no script, and change nothing.

use redis::Value;

use crate::conn::SharedConn;
use crate::verb::inspect::jobs::failed;
use crate::{Broker, Error};

/// Time before which a delayed job counts as due, in milliseconds: the next look may be this much later.
const SOON_MS: u64 = 1_500;

/// The keys of one look.
#[derive(Debug, Clone, Copy)]
pub struct PollKeys<'a> {
    /// Queues of the worker; none while it wants no jobs.
    pub queues: &'a [String],
    /// Lists with requests to cancel jobs.
    pub control: &'a [String],
}

/// The result of a look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PollResult {
    /// True if an id is in one of the queues.
    pub ids: bool,
    /// True if there are requests to cancel jobs.
    pub requests: bool,
    /// True if a new job is the first of all delayed ones.
    pub wakeup: bool,
    /// True if a flow is to go on.
    pub flow: bool,
}

/// Tasks that are due.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DueTasks {
    /// True if leases or registrations of prefetch lists have expired.
    pub expired: bool,
    /// True if maintenance has something to do: delayed jobs, schedules, dependents, watched jobs or batches.
    pub maintenance: bool,
    /// True if a flow is due.
    pub flow: bool,
    /// Number of registrations of workers.
    pub actors: usize,
}

/// A connection for the contexts of one process.
#[derive(Debug, Clone)]
pub struct ContextConn(SharedConn);

impl ContextConn {
    /// Opens a connection for these databases to the store of `broker`.
    ///
    /// # Errors
    /// The connection cannot be opened, or the store has fewer databases.
    pub async fn open(broker: &Broker, databases: &[u32]) -> Result<Self, Error> {
        let opened = SharedConn::open(broker.conn(), databases).await;
        opened.map(Self).map_err(Error::connect)
    }

    /// Returns the same verbs over this connection. A user who may not send MULTI gets a connection for each database.
    ///
    /// # Errors
    /// The server does not answer, or refuses the database.
    pub async fn over(&self, broker: &Broker) -> Result<Broker, Error> {
        let mut over = broker.clone();
        let conn = self.0.select(broker.database()).await;
        let conn = conn.map_err(Error::connect)?;
        // In a cluster, each context has a node.
        over.session.conn = conn.of_key(&broker.keys.lease());
        Ok(over)
    }
}

fn number(value: Option<Value>) -> usize {
    value
        .and_then(|value| redis::from_redis_value(value).ok())
        .unwrap_or_default()
}

/// Returns the score of the first member of a sorted set.
fn first(value: Option<Value>) -> Option<f64> {
    let first: Vec<(Value, f64)> = redis::from_redis_value(value?).ok()?;
    first.first().map(|(_, score)| *score)
}

impl Broker {
    /// Returns whether a worker has something to do now.
    ///
    /// # Errors
    /// The server does not answer.
    pub async fn look(&self, look: PollKeys<'_>) -> Result<PollResult, Error> {
        let flow = self.keys.context().map(|context| context.flow_queue());
        let mut pipe = redis::pipe();
        // A key of another type does not prevent the rest.
        pipe.ignore_errors();
        let none = self.keys.due();
        for keys in [look.queues, look.control] {
            let exists = pipe.cmd("EXISTS");
            match keys {
                [] => exists.arg(none.as_str()),
                keys => exists.arg(keys),
            };
        }
        pipe.cmd("EXISTS").arg(none.as_str());
        pipe.cmd("EXISTS").arg(flow.as_ref().unwrap_or(&none));
        let values: Vec<Value> = self.looked(&pipe).await?;
        let mut values = values.into_iter();
        let mut there = || number(values.next()) > 0;
        let (ids, requests, wakeup, of_flow) = (there(), there(), there(), there());
        Ok(PollResult {
            ids: ids && !look.queues.is_empty(),
            requests: requests && !look.control.is_empty(),
            wakeup,
            flow: of_flow && flow.is_some(),
        })
    }

    /// Reads the first entries of all sets with times, and the number of workers.
    ///
    /// # Errors
    /// The server does not answer.
    pub async fn look_for_due(&self) -> Result<DueTasks, Error> {
        let keys = &self.keys;
        let now = self.now().await?;
        let flows = keys.context().map(|context| context.flows_due());
        let sets = [
            (keys.lease(), now),
            (keys.prefetch_registry(), now),
            (keys.delayed(), now + SOON_MS),
            (keys.backlog_index(), now + SOON_MS),
            (keys.schedules(), now + SOON_MS),
            (keys.watch(), now),
            (keys.starts(), now),
            (keys.batches_open(), now),
        ];
        let mut pipe = redis::pipe();
        pipe.ignore_errors();
        pipe.cmd("EXISTS").arg(keys.unresolved());
        pipe.cmd("ZCARD").arg(keys.registrations());
        for set in sets.iter().map(|(set, _)| set).chain(&flows) {
            pipe.cmd("ZRANGE").arg(set).arg(0).arg(0).arg("WITHSCORES");
        }
        let values: Vec<Value> = self.looked(&pipe).await?;
        let mut values = values.into_iter();
        let (unresolved, actors) = (number(values.next()) > 0, number(values.next()));
        let due: Vec<bool> = sets
            .iter()
            .map(|(_, until)| first(values.next()).is_some_and(|at| at <= *until as f64))
            .collect();
        Ok(DueTasks {
            expired: due[..2].contains(&true),
            maintenance: unresolved || due[2..].contains(&true),
            flow: first(values.next()).is_some_and(|at| at <= now as f64),
            actors,
        })
    }

    async fn looked(&self, pipe: &redis::Pipeline) -> Result<Vec<Value>, Error> {
        let answers: Vec<redis::RedisResult<Value>> = pipe
            .query_async(&mut self.conn.clone())
            .await
            .map_err(failed)?;
        let value = |answer: redis::RedisResult<Value>| answer.unwrap_or(Value::Nil);
        Ok(answers.into_iter().map(value).collect())
    }

    /// Takes the wakeup that a new job is the first of all delayed ones. Returns false if another worker has taken it.
    ///
    /// # Errors
    /// The server refuses the call.
    pub async fn take_wakeup(&self) -> Result<bool, Error> {
        self.takes("take_wakeup", &self.keys.due()).await
    }

    /// Takes the wakeup that a flow is to go on. Returns false if another worker has taken it.
    ///
    /// # Errors
    /// The server refuses the call.
    pub async fn take_flow_wakeup(&self) -> Result<bool, Error> {
        match self.keys.context() {
            Some(context) => self.takes("take_flow_wakeup", &context.flow_queue()).await,
            None => Ok(false),
        }
    }

    async fn takes(&self, verb: &'static str, list: &str) -> Result<bool, Error> {
        match self.ask::<Value>(verb, redis::cmd("LPOP").arg(list)).await {
            Ok(popped) => Ok(popped != Value::Nil),
            // A key of another type has no wakeup. The look goes on with what is due.
            Err(Error::WrongType { .. } | Error::WrongKind { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }
}
