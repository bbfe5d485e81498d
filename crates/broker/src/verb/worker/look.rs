//! look, look_for_due: plain reads that show whether an idle worker has anything to do. They run no script, and change nothing.

use meshwork_macros::boxed;
use redis::Value;

use crate::broker::Broker;
use crate::conn::{Changed, Conn, SharedConn};
use crate::error::Error;
use crate::error::{is_elsewhere, passes};
use crate::verb::inspect::jobs::failed;

/// Time before which a delayed job counts as due, in milliseconds: the next look may be this much later.
const SOON_MS: u64 = 1_500;

/// The keys of one look.
#[derive(Debug, Clone, Copy)]
pub struct PollKeys<'a> {
    /// Queues of the worker; none while it wants no jobs.
    pub queues: &'a [String],
    /// Lists with requests to cancel jobs.
    pub control: &'a [String],
    /// Keys with requests to the worker.
    pub worker: &'a [String],
}

/// The result of a look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PollResult {
    /// True if an id is in one of the queues.
    pub ids: bool,
    /// True if there are requests to cancel jobs.
    pub requests: bool,
    /// True if there are requests to the worker.
    pub worker: bool,
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
    /// True if a worker has jobs, or may have prefetched ids.
    pub held: bool,
    /// Number of registrations of workers; 0 if none of them has anything.
    pub workers: usize,
    /// Milliseconds until the first task that is not due yet.
    pub next: Option<u64>,
}

/// A connection to one server that reports changes of the keys that were read over it.
#[derive(Debug, Clone)]
pub struct ChangeConn {
    conn: Conn,
    server: String,
}

impl ChangeConn {
    /// Opens one to the server of these keys. It calls `changed` with each key that was read and has changed since, and
    /// with `None` if any may have, also when it is broken. `None`: the server does not report changes, or not to this
    /// user.
    ///
    /// # Errors
    /// The connection cannot be opened.
    #[boxed]
    pub async fn open(broker: &Broker, changed: Changed) -> Result<Option<Self>, Error> {
        let opened = broker.conn.tracking(changed).await;
        let opened = opened.map_err(Error::connect)?;
        Ok(opened.map(|(conn, server)| Self { conn, server }))
    }

    /// Returns the address of the server.
    #[must_use]
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Returns the same verbs over this connection, for keys on this server.
    #[must_use]
    pub fn over(&self, broker: &Broker) -> Broker {
        let mut over = broker.clone();
        over.session.conn = self.conn.clone();
        over
    }
}

/// A connection for the contexts of one process.
#[derive(Debug, Clone)]
pub struct ContextConn(SharedConn);

impl ContextConn {
    /// Opens a connection for these databases to the store of `broker`.
    ///
    /// # Errors
    /// The connection cannot be opened, or the store has fewer databases.
    #[boxed]
    pub async fn open(broker: &Broker, databases: &[u32]) -> Result<Self, Error> {
        let opened = SharedConn::open(broker.conn(), databases).await;
        opened.map(Self).map_err(Error::connect)
    }

    /// Returns the same verbs over this connection. A user who may not send MULTI gets a connection for each database.
    ///
    /// # Errors
    /// The server does not answer, or refuses the database.
    #[boxed]
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
    /// Returns whether a worker has something to do now. An idle one costs one call.
    ///
    /// # Errors
    /// The server does not answer.
    #[boxed]
    pub async fn look(&self, look: PollKeys<'_>) -> Result<PollResult, Error> {
        let due = [self.keys.due()];
        let flow = self.keys.context().map(|context| context.flow_queue());
        let parts = [
            look.queues,
            look.control,
            look.worker,
            &due,
            flow.as_slice(),
        ];
        if self.has_none(&parts.concat()).await? {
            return Ok(PollResult::default());
        }
        let mut pipe = redis::pipe();
        // A key of another type does not prevent the rest.
        pipe.ignore_errors();
        for keys in parts.into_iter().filter(|keys| !keys.is_empty()) {
            pipe.cmd("EXISTS").arg(keys);
        }
        let mut values = self.looked(&pipe).await?.into_iter();
        let mut there = |keys: &[String]| !keys.is_empty() && number(values.next()) > 0;
        Ok(PollResult {
            ids: there(parts[0]),
            requests: there(parts[1]),
            worker: there(parts[2]),
            wakeup: there(parts[3]),
            flow: there(parts[4]),
        })
    }

    /// Reads the first entries of all sets with times, and the number of workers if one has jobs. An idle context costs one
    /// call.
    ///
    /// # Errors
    /// The server does not answer.
    #[boxed]
    pub async fn look_for_due(&self) -> Result<DueTasks, Error> {
        let keys = &self.keys;
        let flows = keys.context().map(|context| context.flows_due());
        // With the lead of each, in milliseconds.
        let sets = [
            (keys.lease(), 0),
            (keys.prefetch_registry(), 0),
            (keys.delayed(), SOON_MS),
            (keys.backlog_index(), SOON_MS),
            (keys.schedules(), SOON_MS),
            (keys.watch(), 0),
            (keys.starts(), 0),
            (keys.batches_open(), 0),
        ];
        let names = || sets.iter().map(|(set, _)| set).chain(&flows);
        let unresolved = keys.unresolved();
        let all: Vec<_> = names().chain([&unresolved]).cloned().collect();
        if self.has_none(&all).await? {
            return Ok(DueTasks::default());
        }
        let now = self.now().await?;
        let mut pipe = redis::pipe();
        pipe.ignore_errors();
        pipe.cmd("EXISTS").arg(&unresolved);
        for set in names() {
            pipe.cmd("ZRANGE").arg(set).arg(0).arg(0).arg("WITHSCORES");
        }
        let mut values = self.looked(&pipe).await?.into_iter();
        let mut due = DueTasks {
            maintenance: number(values.next()) > 0,
            ..DueTasks::default()
        };
        let mut is_due = |lead: u64| {
            let first = first(values.next());
            let until = (now + lead) as f64;
            if let Some(at) = first.filter(|at| *at > until) {
                let left = (at - until) as u64;
                due.next = Some(due.next.map_or(left, |next| next.min(left)));
            }
            (first.is_some(), first.is_some_and(|at| at <= until))
        };
        let found = sets.each_ref().map(|(_, lead)| is_due(*lead));
        due.flow = is_due(0).1;
        due.held = found[..2].iter().any(|(there, _)| *there);
        due.expired = found[..2].iter().any(|(_, is_due)| *is_due);
        due.maintenance |= found[2..].iter().any(|(_, is_due)| *is_due);
        if due.held {
            let registered = redis::cmd("ZCARD").arg(keys.registrations()).to_owned();
            // A key of another type has no registrations.
            let registered = self.ask::<usize>("look_for_due", &registered).await;
            due.workers = registered.or_else(|error| match error {
                Error::WrongType { .. } | Error::WrongKind { .. } => Ok(0),
                error => Err(error),
            })?;
        }
        Ok(due)
    }

    /// Returns true if none of these keys exists. False also if the user may not read all of them.
    async fn has_none(&self, keys: &[String]) -> Result<bool, Error> {
        let mut exists = redis::cmd("EXISTS");
        match self.ask::<usize>("look", exists.arg(keys)).await {
            Ok(found) => Ok(found == 0),
            Err(error) if error.is_denied() => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn looked(&self, pipe: &redis::Pipeline) -> Result<Vec<Value>, Error> {
        let answers: Vec<redis::RedisResult<Value>> = self.ask_all("inspect", pipe).await?;
        let mut values = Vec::with_capacity(answers.len());
        for answer in answers {
            match answer {
                // This is about the server, not about the type of a key: nothing was read.
                Err(error) if passes(&error) || is_elsewhere(&error) => return Err(failed(error)),
                answer => values.push(answer.unwrap_or(Value::Nil)),
            }
        }
        Ok(values)
    }

    /// Takes the wakeup that a new job is the first of all delayed ones. Returns false if another worker has taken it.
    ///
    /// # Errors
    /// The server refuses the call.
    #[boxed]
    pub async fn take_wakeup(&self) -> Result<bool, Error> {
        self.takes("take_wakeup", &self.keys.due()).await
    }

    /// Takes the wakeup that a flow is to go on. Returns false if another worker has taken it.
    ///
    /// # Errors
    /// The server refuses the call.
    #[boxed]
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
