//! Foreign supervisors push each job to the canonical queue and to the old list, one after the other, without a mark.
//! At the same time plain workers and Meshwork take jobs from their lists. No process is killed. A job may run twice
//! only where a process was suspended. Either Meshwork claimed the job before its push to the old list, or a plain
//! worker had popped it and not yet written `started`.

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::path::Path;
use std::time::Duration;

use meshwork_model::job::field;
use redis::Commands;

use super::client::{Batch, fields};
use super::keeper::{Programs, Role, keep, ours};
use super::orders::{Account, Orders};
use super::{LegacyError, OldList, Plan, TYPE};
use meshwork_test_servers::eventually;
use meshwork_test_servers::servers::RealServer;

/// Number of plain workers.
const WORKERS: u64 = 4;
/// Number of supervisors.
const CLIENTS: u64 = 2;
/// Age of the migration, in milliseconds: longer than the play, so that no job is pushed again.
const AGE: u64 = 3_600_000;
/// Timeout after the last push.
const END: Duration = Duration::from_secs(120);
/// At most one of this many jobs may run twice. A claim waits 200 ms for a push or a status that is due, and the
/// machine hardly ever suspends a process for longer.
const ONE_DOUBLED_OF: usize = 100;
/// Greatest difference of two clocks of one machine that are read one after the other, in milliseconds.
const CLOCKS: u64 = 1;

/// Result of a play.
#[derive(Clone, Debug, Default)]
pub struct Unmarked {
    /// Number of pushed jobs.
    pub pushed: usize,
    /// Starts by plain workers, and by Meshwork.
    pub starts: [usize; 2],
    /// Jobs that did not finish.
    pub lost: Vec<String>,
    /// Number of repeated jobs that Meshwork claimed before their push to the old list.
    pub before_the_push: usize,
    /// Number of repeated jobs that Meshwork claimed between a plain worker's BLPOP and its HSET.
    pub before_the_word: usize,
    /// Jobs that ran twice for no such reason.
    pub unexplained: Vec<String>,
}

impl Unmarked {
    /// Returns true if all promises hold.
    #[must_use]
    pub fn holds(&self) -> bool {
        let doubled = self.before_the_push + self.before_the_word;
        let few = doubled * ONE_DOUBLED_OF <= self.pushed;
        self.lost.is_empty() && self.unexplained.is_empty() && few
    }
}

impl fmt::Display for Unmarked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [plain, ours] = self.starts;
        write!(
            f,
            "unmarked: pushed {} to both sides, lost {}; ",
            self.pushed,
            self.lost.len()
        )?;
        write!(
            f,
            "starts by plain workers {plain}, by ours {ours}; run twice: claimed before "
        )?;
        write!(
            f,
            "the second push {}, between BLPOP and HSET ",
            self.before_the_push
        )?;
        write!(
            f,
            "{}, else {}",
            self.before_the_word,
            self.unexplained.len()
        )?;
        for one in self.lost.iter().chain(&self.unexplained).take(20) {
            write!(f, "\n  {one}")?;
        }
        Ok(())
    }
}

/// Plays the scenario.
///
/// # Errors
/// A program is missing or does something that it never should.
pub async fn push_both(plan: &Plan) -> Result<Unmarked, LegacyError> {
    let server = RealServer::redis().start_for("unmarked");
    let server = server.ok_or(LegacyError::Missing("redis-server"))?;
    let dir = tempfile::Builder::new().prefix("mw-unmarked-").tempdir();
    let dir = dir.map_err(LegacyError::io("a temporary directory"))?;
    let list = OldList::Suffix.key("");
    let mut redis = redis::Client::open(server.url())?.get_connection()?;
    let () = redis.hset(
        "hero:q:config",
        format!("migration:{TYPE}"),
        format!("dual {list} {AGE}"),
    )?;
    let orders = |name: String, seed: u64| Orders {
        url: server.url(),
        list: list.clone(),
        worker_id: "python_runner_1".to_owned(),
        dir: dir.path().to_owned(),
        name,
        seed: plan.seed.wrapping_mul(1_000_003).wrapping_add(seed),
        deadly: 0.0,
    };
    let programs = Programs {
        meshwork: plan.meshwork.clone(),
        legacy: plan.legacy.clone(),
    };
    let worker = ours(&programs, &orders("ours".to_owned(), 0))?;
    let old = |number| {
        keep(
            &plan.legacy,
            orders(format!("old-{number}"), number),
            Role::Worker,
        )
    };
    let old: Vec<_> = (0..WORKERS).map(old).collect();
    let share = |client: u64| plan.jobs / CLIENTS + u64::from(client < plan.jobs % CLIENTS);
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let (orders, jobs) = (orders(format!("client-{client}"), client), share(client));
            tokio::task::spawn_blocking(move || supervise(&orders, client, jobs))
        })
        .collect();
    for client in clients {
        let ended = client
            .await
            .map_err(|error| LegacyError::Ended(error.to_string()))?;
        ended?;
    }
    let records = ended(&mut redis, dir.path()).await?;
    let closing_time = Orders::closing_time(dir.path());
    fs::write(closing_time, "").map_err(LegacyError::io("the end of work"))?;
    for worker in old {
        let ended = tokio::task::spawn_blocking(move || worker.join()).await;
        ended
            .map_err(|error| LegacyError::Ended(error.to_string()))?
            .map_err(|_| LegacyError::Ended("its keeper panicked".to_owned()))??;
    }
    drop(worker);
    judge(dir.path(), &records)
}

fn supervise(orders: &Orders, client: u64, jobs: u64) -> Result<(), LegacyError> {
    let mut redis = redis::Client::open(&*orders.url)?.get_connection()?;
    let batch = Batch {
        client,
        from: 0,
        to: jobs,
        script_type: Some("Python".to_owned()),
        timeout: 60,
        script: "1".to_owned(),
        wait_for_each: u64::MAX,
        wait: 0,
    };
    for number in 0..jobs {
        let id = Batch::id(client, number);
        let () = redis.hset_multiple(format!("hero:job:{id}"), &fields(&id, "", &batch))?;
        Account::Submitted.add(&orders.dir, &format!("{id} {}", orders.name))?;
        let () = redis.lpush(format!("hero:q:work:type:{TYPE}"), &id)?;
        let () = redis.lpush(&orders.list, &id)?;
        Account::Pushed.stamp(&orders.dir, &id)?;
    }
    Ok(())
}

/// Returns the status of each job and the time of Meshwork's claim, when all jobs have finished and both lists are
/// empty, or at the timeout.
async fn ended(
    redis: &mut redis::Connection,
    dir: &Path,
) -> Result<HashMap<String, (String, Option<u64>)>, LegacyError> {
    let submitted = Account::Submitted.read(dir)?;
    let ids = submitted.iter().filter_map(|line| line.split(' ').next());
    let ids: Vec<String> = ids.map(str::to_owned).collect();
    let begun = std::time::Instant::now();
    let look = async || {
        let mut pipe = redis::pipe();
        for id in &ids {
            let get = pipe.cmd("HMGET").arg(format!("hero:job:{id}"));
            get.arg(field::STATUS).arg(field::STARTED);
        }
        let words: Result<Vec<(String, Option<u64>)>, _> = pipe.query(redis);
        let words = match words {
            Ok(words) => words,
            Err(error) => return Some(Err(error.into())),
        };
        let over = words.iter().all(|(status, _)| status == "finished") || begun.elapsed() > END;
        over.then(|| Ok(ids.iter().cloned().zip(words).collect()))
    };
    eventually("all records were read", END * 2, look).await
}

fn judge(
    dir: &Path,
    records: &HashMap<String, (String, Option<u64>)>,
) -> Result<Unmarked, LegacyError> {
    let stamps = |account: Account| -> Result<HashMap<String, u64>, LegacyError> {
        let lines = account.read(dir)?;
        let stamp = |line: &String| {
            let (id, at) = line.split_once(' ')?;
            Some((id.to_owned(), at.parse().ok()?))
        };
        Ok(lines.iter().filter_map(stamp).collect())
    };
    let (begun, pushed) = (stamps(Account::Begun)?, stamps(Account::Pushed)?);
    let mut runs = HashMap::<String, usize>::new();
    let mut all = Unmarked {
        pushed: pushed.len(),
        ..Unmarked::default()
    };
    for line in Account::Starts.read(dir)? {
        let (id, name) = line.split_once(' ').unwrap_or((&line, ""));
        *runs.entry(id.to_owned()).or_default() += 1;
        all.starts[usize::from(name == "ours")] += 1;
    }
    for (id, (status, claimed)) in records {
        let ran = runs.get(id).copied().unwrap_or_default();
        if status != "finished" || ran == 0 {
            all.lost.push(format!("{id} ({status}, {ran} runs)"));
        }
        if ran < 2 {
            continue;
        }
        let before = |stamps: &HashMap<String, u64>| {
            claimed
                .zip(stamps.get(id))
                .is_some_and(|(claimed, at)| claimed <= at + CLOCKS)
        };
        if ran == 2 && before(&pushed) {
            all.before_the_push += 1;
        } else if ran == 2 && before(&begun) {
            all.before_the_word += 1;
        } else {
            all.unexplained.push(format!("{id} ({ran} runs)"));
        }
    }
    Ok(all)
}
