//! A connection that breaks when a test wants it to, around one that does not: before a command is
//! sent, or after it took effect and before its reply is read. It counts every command on the way.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use futures_util::future::BoxFuture;
use meshwork_broker::conn::{Conn, Ear, Transport};
use redis::aio::ConnectionLike;
use redis::{Cmd, Pipeline, RedisError, RedisFuture, RedisResult, Value};

/// When the connection breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// The command never reaches the server.
    Before,
    /// The command takes effect, and nobody learns so.
    After,
}

/// Which commands meet a broken connection.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// The first one, counted from 0.
    pub first: usize,
    /// How many in a row.
    pub times: usize,
    /// At which moment.
    pub moment: Moment,
}

#[derive(Debug, Default)]
struct State {
    plan: Option<Plan>,
    commands: usize,
    broken: usize,
    swallowed: Vec<Value>,
}

/// The connection; clones share their count.
#[derive(Debug, Clone)]
pub struct Faulty {
    inner: Conn,
    state: Arc<Mutex<State>>,
}

impl Faulty {
    /// A connection over `inner` that breaks as planned, or only counts.
    #[must_use]
    pub fn new(inner: Conn, plan: Option<Plan>) -> Self {
        let state = State {
            plan,
            ..State::default()
        };
        Self {
            inner,
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// How many commands were to be sent so far.
    #[must_use]
    pub fn commands(&self) -> usize {
        self.state().commands
    }

    /// How many of them met a broken connection.
    #[must_use]
    pub fn broken(&self) -> usize {
        self.state().broken
    }

    /// The replies that were lost, of commands that took effect.
    #[must_use]
    pub fn swallowed(&self) -> Vec<Value> {
        self.state().swallowed.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics with the lock held")
    }

    /// Counts a command and says what happens to it.
    fn next(&self) -> Option<Moment> {
        let mut state = self.state();
        let number = state.commands;
        state.commands += 1;
        let plan = state.plan?;
        let meets = (plan.first..plan.first + plan.times).contains(&number);
        state.broken += usize::from(meets);
        meets.then_some(plan.moment)
    }

    fn swallow(&self, reply: Value) {
        if matches!(reply, Value::ServerError(_)) {
            return;
        }
        self.state().swallowed.push(reply);
    }
}

fn broken() -> RedisError {
    io::Error::new(io::ErrorKind::ConnectionReset, "broken on purpose").into()
}

impl Transport for Faulty {
    fn call<'a>(&'a self, cmd: &'a Cmd) -> RedisFuture<'a, Value> {
        Box::pin(async move {
            let mut inner = self.inner.clone();
            match self.next() {
                None => inner.req_packed_command(cmd).await,
                Some(Moment::Before) => Err(broken()),
                Some(Moment::After) => {
                    if let Ok(reply) = inner.req_packed_command(cmd).await {
                        self.swallow(reply);
                    }
                    Err(broken())
                }
            }
        })
    }

    fn call_many<'a>(
        &'a self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        Box::pin(async move {
            let mut inner = self.inner.clone();
            match self.next() {
                None => inner.req_packed_commands(pipeline, offset, count).await,
                Some(Moment::Before) => Err(broken()),
                Some(Moment::After) => {
                    let replies = inner.req_packed_commands(pipeline, offset, count).await;
                    let replies = replies.unwrap_or_default();
                    for reply in replies {
                        self.swallow(reply);
                    }
                    Err(broken())
                }
            }
        })
    }

    fn ear(&self) -> BoxFuture<'_, RedisResult<Ear>> {
        Box::pin(self.inner.ear())
    }

    fn dedicated(&self) -> BoxFuture<'_, RedisResult<Conn>> {
        Box::pin(async move {
            let inner = self.inner.dedicated().await?;
            Ok(Conn::new(Self {
                inner,
                state: Arc::clone(&self.state),
            }))
        })
    }

    fn db(&self) -> i64 {
        self.inner.get_db()
    }
}
