//! The calls whose cost depends on the position of an id in a list, at their worst.

use std::time::{Duration, Instant};

use meshwork_broker::{Broker, Claim, PrefetchLists};
use meshwork_model::job::NewJob;
use meshwork_model::route::Route;

use super::ground::{Ground, odd};
use super::report::Walk;
use super::{Plan, ScaleError, median};

/// Greatest length of a queue in which a waiting job is searched when it is cancelled.
const WALKED: usize = 10_000;
/// Number of jobs in one check.
const WATCHED: usize = 200;

/// Position of an id in the old list.
#[derive(Debug, Clone, Copy)]
enum Place {
    Head,
    Middle,
    Tail,
    Nowhere,
}

pub(super) async fn run(plan: &Plan) -> Result<Vec<Walk>, ScaleError> {
    let mut walks = Vec::new();
    for length in [WALKED, WALKED + 1, plan.long] {
        walks.push(cancel(plan, length).await?);
    }
    let migration = Migrating::start(plan).await?;
    for (what, place) in [
        ("claim, the id at the new end of the old list", Place::Head),
        ("claim, in the middle", Place::Middle),
        ("claim, at the old end", Place::Tail),
        ("claim, taken by an old worker", Place::Nowhere),
    ] {
        walks.push(migration.claim(plan, what, place).await?);
    }
    walks.push(migration.cancel(plan).await?);
    for (what, jobs, place) in [
        ("watch, 1 job that is away", 1, Place::Nowhere),
        ("watch, 200 jobs that are away", WATCHED, Place::Nowhere),
        ("watch, 200 jobs at the old end", WATCHED, Place::Tail),
    ] {
        walks.push(migration.watch(plan, what, jobs, place).await?);
    }
    Ok(walks)
}

fn walk(what: &'static str, length: usize, times: Vec<Duration>) -> Walk {
    let longest = times.iter().max().copied().unwrap_or_default();
    let took = median(times);
    Walk {
        what,
        length,
        took,
        longest,
    }
}

async fn command(broker: &Broker, words: &[&str]) -> Result<(), ScaleError> {
    let mut cmd = redis::Cmd::new();
    for word in words {
        cmd.arg(*word);
    }
    Ok(cmd.query_async(&mut broker.conn().clone()).await?)
}

/// Fills a list with ids without jobs.
async fn fill(broker: &Broker, list: &str, length: usize) -> Result<(), ScaleError> {
    let ids: Vec<_> = (0..length.min(1_000)).map(|n| format!("g{n}")).collect();
    let mut left = length;
    while left > 0 {
        let part = left.min(ids.len());
        let mut push = redis::cmd("LPUSH");
        push.arg(list).arg(&ids[..part]);
        push.query_async::<()>(&mut broker.conn().clone()).await?;
        left -= part;
    }
    Ok(())
}

/// Cancels waiting jobs in a queue of that length.
async fn cancel(plan: &Plan, length: usize) -> Result<Walk, ScaleError> {
    let mut ground = Ground::start().await?;
    ground.fill(1).await?;
    let queue = ground.queue();
    fill(&ground.broker, &queue, length - 1).await?;
    let mut times = Vec::new();
    for n in 0..plan.walks {
        let job = job(&format!("c{n}"))?;
        let id = job.id.clone();
        ground.broker.enqueue(&[job]).await?;
        command(&ground.broker, &["RPOP", &queue]).await?;
        let job = ground.broker.inspect(&id).await?;
        let job = job.ok_or_else(|| odd("cancel", "no job"))?;
        let begun = Instant::now();
        ground.broker.cancel(&job, "stopped", false).await?;
        times.push(begun.elapsed());
        fill(&ground.broker, &queue, usize::from(length <= WALKED)).await?;
    }
    Ok(walk("cancel of a job that waits", length, times))
}

fn job(id: &str) -> Result<NewJob, ScaleError> {
    Ok(NewJob::new(id.parse()?, Route::to("osis".parse()?), "1"))
}

/// A server on which a type migrates from a long old list.
struct Migrating {
    ground: Ground,
    old: String,
}

impl Migrating {
    async fn start(plan: &Plan) -> Result<Self, ScaleError> {
        let ground = Ground::start().await?;
        let keys = ground.broker.keys();
        let old = keys.legacy_type_queue(&"osis".parse()?);
        let (config, setting) = (keys.config(), format!("dual {old} 0"));
        fill(&ground.broker, &old, plan.long).await?;
        command(
            &ground.broker,
            &["HSET", &config, "migration:osis", &setting],
        )
        .await?;
        Ok(Self { ground, old })
    }

    /// Stores a new job, and moves its id to its place.
    async fn put(&self, id: &str, place: Place) -> Result<(), ScaleError> {
        let broker = &self.ground.broker;
        broker.enqueue(&[job(id)?]).await?;
        if !matches!(place, Place::Head) {
            command(broker, &["LPOP", &self.old]).await?;
        }
        match place {
            Place::Head | Place::Nowhere => Ok(()),
            Place::Tail => command(broker, &["RPUSH", &self.old, id]).await,
            Place::Middle => {
                let length: usize = redis::cmd("LLEN")
                    .arg(&self.old)
                    .query_async(&mut broker.conn().clone())
                    .await?;
                let middle = (length / 2).to_string();
                command(broker, &["LSET", &self.old, &middle, id]).await
            }
        }
    }

    async fn claim(
        &self,
        plan: &Plan,
        what: &'static str,
        place: Place,
    ) -> Result<Walk, ScaleError> {
        let mut times = Vec::new();
        for n in 0..plan.walks {
            self.put(&format!("{place:?}{n}"), place).await?;
            let claim = Claim {
                queues: &[self.ground.queue()],
                old: &[],
                reverse: false,
                prefetch: PrefetchLists::All,
                want: 1,
                ahead: 0,
                lease: Duration::from_secs(3600),
                worker: "w1",
                token: "t1",
            };
            let begun = Instant::now();
            let taken = self.ground.broker.claim(claim).await?;
            times.push(begun.elapsed());
            let run = usize::from(!matches!(place, Place::Nowhere));
            if (taken.jobs.len(), taken.dropped) != (run, 1 - run) {
                return Err(odd(what, format!("{taken:?}")));
            }
        }
        self.forget().await?;
        Ok(walk(what, plan.long, times))
    }

    /// Cancels jobs that an old worker has popped and not begun.
    async fn cancel(&self, plan: &Plan) -> Result<Walk, ScaleError> {
        let mut times = Vec::new();
        for n in 0..plan.walks {
            let id = format!("cancel{n}");
            self.put(&id, Place::Nowhere).await?;
            let job = self.ground.broker.inspect(&id.parse()?).await?;
            let job = job.ok_or_else(|| odd("cancel", "no job"))?;
            let begun = Instant::now();
            self.ground.broker.cancel(&job, "stopped", false).await?;
            times.push(begun.elapsed());
        }
        self.forget().await?;
        Ok(walk("cancel, taken by an old worker", plan.long, times))
    }

    async fn watch(
        &self,
        plan: &Plan,
        what: &'static str,
        jobs: usize,
        place: Place,
    ) -> Result<Walk, ScaleError> {
        let mut times = Vec::new();
        for n in 0..plan.walks {
            for m in 0..jobs {
                self.put(&format!("watch{jobs}{place:?}{n}-{m}"), place)
                    .await?;
            }
            let begun = Instant::now();
            let looked = self.ground.broker.check_orphans().await?.looked;
            times.push(begun.elapsed());
            if looked == 0 {
                return Err(odd(what, "no job was due"));
            }
            self.forget().await?;
        }
        Ok(walk(what, plan.long, times))
    }

    /// Deletes the remaining state, so that the next measurement does not meet it.
    async fn forget(&self) -> Result<(), ScaleError> {
        let keys = self.ground.broker.keys();
        command(
            &self.ground.broker,
            &["DEL", &keys.watch(), &self.ground.queue()],
        )
        .await
    }
}
