//! The floor of calls: pairs that push and pop, with a connection for each side. Nothing is promised: if one side
//! dies, the entries that it popped are lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use redis::RedisResult;
use tokio::task::JoinSet;

use super::super::PAYLOAD;
use crate::bench::BenchError;
use crate::bench::figure::Pace;
use crate::bench::ground::Ground;
use crate::bench::latency::{WARM_UP, timed};
use crate::bench::link::Link;

/// A caller, and the lists of its pair.
#[derive(Clone)]
struct Caller {
    link: Link,
    requests: String,
    answers: String,
    payload: String,
}

impl Caller {
    async fn call(&mut self) -> RedisResult<()> {
        push(&mut self.link, &self.requests, &self.payload).await?;
        pop(&mut self.link, &self.answers).await.map(drop)
    }
}

async fn push(link: &mut Link, list: &str, message: &str) -> RedisResult<()> {
    let mut cmd = redis::cmd("LPUSH");
    cmd.arg(list).arg(message).query_async(link).await
}

async fn pop(link: &mut Link, list: &str) -> RedisResult<String> {
    let mut cmd = redis::cmd("BRPOP");
    let popped = cmd.arg(list).arg(0).query_async(link).await;
    popped.map(|(_, message): (String, String)| message)
}

/// Pairs that already know each other.
pub(in crate::bench) struct Echoes {
    callers: Vec<Caller>,
    /// The servers, which end when this is dropped.
    servers: JoinSet<RedisResult<()>>,
}

impl Echoes {
    pub(in crate::bench) async fn start(ground: &Ground, pairs: usize) -> Result<Self, BenchError> {
        let (mut callers, mut servers) = (Vec::new(), JoinSet::new());
        for pair in 0..pairs {
            let (requests, answers) = (
                format!("floor:requests:{pair}"),
                format!("floor:answers:{pair}"),
            );
            let mut server = ground.link().await?;
            let lists = (requests.clone(), answers.clone());
            servers.spawn(async move {
                loop {
                    let message = pop(&mut server, &lists.0).await?;
                    push(&mut server, &lists.1, &message).await?;
                }
            });
            let mut caller = Caller {
                link: ground.link().await?,
                requests,
                answers,
                payload: "x".repeat(PAYLOAD),
            };
            for _ in 0..WARM_UP {
                caller.call().await?;
            }
            callers.push(caller);
        }
        Ok(Self { callers, servers })
    }

    /// Makes this many calls, by all pairs at the same time.
    pub(in crate::bench) async fn calls(self, calls: usize) -> Result<Duration, BenchError> {
        let next = Arc::new(AtomicUsize::new(0));
        let began = Instant::now();
        let mut tasks = JoinSet::new();
        for mut caller in self.callers {
            let next = Arc::clone(&next);
            tasks.spawn(async move {
                while next.fetch_add(1, Ordering::Relaxed) < calls {
                    caller.call().await?;
                }
                Ok(())
            });
        }
        super::ended(tasks).await?;
        let took = began.elapsed();
        drop(self.servers);
        Ok(took)
    }

    /// Makes one call at a time.
    pub(in crate::bench) async fn latency(
        mut self,
        samples: usize,
        pace: Pace,
    ) -> Result<Vec<f64>, BenchError> {
        let Some(caller) = self.callers.pop() else {
            return Ok(Vec::new());
        };
        let one = move || {
            let mut caller = caller.clone();
            async move { Ok(caller.call().await?) }
        };
        timed(samples, pace, one).await
    }
}
