//! The scripts of the floor, and their calls.

use std::sync::Arc;
use std::time::Instant;

use redis::{RedisResult, Script, Value};

use crate::bench::link::Link;

const QUEUE: &str = "floor:queue";
const LEASES: &str = "floor:leases";
/// List at which an idle worker blocks.
pub(super) const BELL: &str = "floor:bell";
/// Lease that a Meshwork worker requests by default, in milliseconds.
const LEASE_MS: u64 = 10_000;

/// A claimed job: its id and its fields.
pub(super) type Taken = (String, Vec<(String, Vec<u8>)>);

/// The scripts over one connection; cheap to clone.
#[derive(Clone)]
pub(super) struct Floor {
    link: Link,
    scripts: Arc<Scripts>,
    clock: Clock,
}

struct Scripts {
    enqueue: Script,
    claim: Script,
    finish: Script,
    exchange: Script,
}

/// The server's time, which is read once.
#[derive(Clone, Copy)]
struct Clock {
    base: u64,
    since: Instant,
}

impl Clock {
    fn now(self) -> u64 {
        self.base + u64::try_from(self.since.elapsed().as_millis()).unwrap_or(0)
    }
}

impl Floor {
    /// Loads the scripts into the server.
    pub(super) async fn open(mut link: Link) -> RedisResult<Self> {
        let take = include_str!("lua/take.lua");
        let end = include_str!("lua/end.lua");
        let with = |parts: &[&str]| Script::new(&parts.concat());
        let scripts = Scripts {
            enqueue: with(&[include_str!("lua/enqueue.lua")]),
            claim: with(&[take, include_str!("lua/claim.lua")]),
            finish: with(&[end, include_str!("lua/complete.lua")]),
            exchange: with(&[take, end, include_str!("lua/complete_and_claim.lua")]),
        };
        let (seconds, _): (u64, u64) = redis::cmd("TIME").query_async(&mut link).await?;
        let clock = Clock {
            base: seconds * 1000,
            since: Instant::now(),
        };
        let Scripts {
            enqueue,
            claim,
            finish,
            exchange,
        } = &scripts;
        for script in [enqueue, claim, finish, exchange] {
            script.load_async(&mut link).await?;
        }
        Ok(Self {
            link,
            scripts: Arc::new(scripts),
            clock,
        })
    }

    /// Stores jobs with this payload.
    pub(super) async fn enqueue(
        &mut self,
        ids: impl Iterator<Item = String>,
        payload: &str,
        answers: Option<&str>,
    ) -> RedisResult<()> {
        let mut call = self.scripts.enqueue.prepare_invoke();
        call.key(QUEUE).key(BELL).arg(self.clock.now());
        call.arg(answers.unwrap_or(""));
        call.arg(u8::from(answers.is_some()));
        for id in ids {
            call.arg(id).arg(payload);
        }
        call.invoke_async(&mut self.link).await
    }

    pub(super) async fn claim(&mut self, want: usize, who: &str) -> RedisResult<Vec<Taken>> {
        let now = self.clock.now();
        let mut call = self.scripts.claim.prepare_invoke();
        call.key(QUEUE).key(LEASES).arg(now).arg(now + LEASE_MS);
        call.arg(want).arg(who);
        let answer: Value = call.invoke_async(&mut self.link).await?;
        Ok(redis::from_redis_value(answer)?)
    }

    /// Ends one job and sends its result.
    pub(super) async fn finish(
        &mut self,
        id: &str,
        result: &str,
        answers: &[u8],
    ) -> RedisResult<usize> {
        let mut call = self.scripts.finish.prepare_invoke();
        call.key(LEASES).arg(self.clock.now());
        call.arg(id).arg(result).arg(answers);
        call.invoke_async(&mut self.link).await
    }

    /// Ends the jobs that ran, and claims the next ones.
    pub(super) async fn exchange(
        &mut self,
        ended: &[String],
        result: &str,
        want: usize,
        who: &str,
    ) -> RedisResult<Vec<Taken>> {
        let now = self.clock.now();
        let mut call = self.scripts.exchange.prepare_invoke();
        call.key(QUEUE).key(LEASES).arg(now).arg(now + LEASE_MS);
        call.arg(want).arg(who);
        for id in ended {
            call.arg(id).arg(result);
        }
        let answer: Value = call.invoke_async(&mut self.link).await?;
        Ok(redis::from_redis_value(answer)?)
    }

    /// Blocks until a job comes.
    pub(super) async fn heard(link: &mut Link) -> RedisResult<()> {
        redis::cmd("BLPOP").arg(BELL).arg(0).query_async(link).await
    }
}
