//! The comparison of transactions, jobs and effects, and the report as text and as JSON.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use meshwork::Client;
use meshwork_model::state::Status;
use meshwork_outbox::Outbox;
use meshwork_outbox::sqlx::Pool;

use super::Plan;
use super::cast::VICTIMS;
use super::database::{Kind, Scene};
use super::transactions::Transactions;
use crate::chaos::hostile::failed;
use crate::chaos::{ChaosError, findings};

/// The report of a play.
#[derive(Clone, Debug)]
pub struct Report {
    /// Kind of the database.
    pub database: Kind,
    /// Seed of the choices.
    pub seed: u64,
    /// Transactions that began.
    pub transactions: usize,
    /// Transactions that were to be committed.
    pub committed: usize,
    /// Killed relays, workers, redis-servers, PostgreSQL servers, and connections of PostgreSQL. Nobody kills a file.
    pub kills: [u32; VICTIMS],
    /// Jobs in the store.
    pub jobs: usize,
    /// Runs of all jobs, also of those that were killed.
    pub runs: usize,
    /// Effects of all jobs.
    pub effects: usize,
    /// Transactions, jobs and effects that differ from the promise.
    pub wrong: Vec<String>,
    /// Rows that are left in the outbox, with their errors.
    pub left: Vec<String>,
    /// Duration in seconds.
    pub seconds: u64,
}

/// Returns the number of rows of a table.
pub(super) async fn count<D: Scene>(
    pool: &Pool<D>,
    table: &'static str,
) -> Result<usize, ChaosError> {
    let count = D::count(pool, table).await.map_err(|it| failed(&it))?;
    Ok(usize::try_from(count).unwrap_or_default())
}

/// Returns the jobs of the store, with their statuses.
async fn jobs(client: &Client) -> Result<BTreeMap<String, Option<Status>>, ChaosError> {
    let (mut jobs, mut from) = (BTreeMap::new(), 0);
    loop {
        let page = client.list(from).await.map_err(|it| failed(&it))?;
        jobs.extend(
            page.jobs
                .into_iter()
                .map(|job| (job.id.clone(), job.status())),
        );
        from = page.next;
        if from == 0 {
            return Ok(jobs);
        }
    }
}

/// Returns the number of jobs that have not finished.
pub(super) async fn open_jobs(client: &Client) -> Result<usize, ChaosError> {
    let jobs = jobs(client).await?;
    let open = |status: &&Option<Status>| **status != Some(Status::Finished);
    Ok(jobs.values().filter(open).count())
}

impl Report {
    pub(super) fn new(plan: &Plan, kills: [u32; VICTIMS]) -> Self {
        Self {
            database: plan.database,
            seed: plan.seed,
            transactions: plan.transactions,
            committed: 0,
            kills,
            jobs: 0,
            runs: 0,
            effects: 0,
            wrong: Vec::new(),
            left: Vec::new(),
            seconds: 0,
        }
    }

    pub(super) async fn judge<D: Scene>(
        &mut self,
        transactions: &Transactions<D>,
        pool: &Pool<D>,
        outbox: &Outbox,
        client: &Client,
    ) -> Result<(), ChaosError> {
        let wanted: BTreeSet<usize> = transactions.committed().collect();
        let orders = D::orders(pool).await.map_err(|it| failed(&it))?;
        let of_job = orders.into_iter();
        let of_job: BTreeMap<_, _> = of_job.map(|(number, job)| (job, number as usize)).collect();
        let committed: BTreeSet<usize> = of_job.values().copied().collect();
        for number in wanted.symmetric_difference(&committed) {
            self.wrong
                .push(format!("transaction {number} has not the wanted end"));
        }
        let stored = jobs(client).await?;
        for (job, status) in &stored {
            match of_job.get(job) {
                None => self
                    .wrong
                    .push(format!("job {job} has no committed transaction")),
                Some(_) if *status != Some(Status::Finished) => {
                    self.wrong.push(format!("job {job} has status {status:?}"));
                }
                Some(_) => {}
            }
        }
        for (job, number) in of_job.iter().filter(|(job, _)| !stored.contains_key(*job)) {
            self.wrong
                .push(format!("transaction {number} has no job {job}"));
        }
        let effects = D::effects(pool).await.map_err(|it| failed(&it))?;
        let times = effects.into_iter();
        let times: BTreeMap<_, _> = times
            .map(|(number, times)| (number as usize, times))
            .collect();
        for number in committed
            .iter()
            .filter(|number| !times.contains_key(*number))
        {
            self.wrong
                .push(format!("transaction {number} has no effect"));
        }
        for (number, times) in &times {
            if *times != 1 || !committed.contains(number) {
                self.wrong
                    .push(format!("transaction {number} has {times} effects"));
            }
        }
        let left = outbox.errors(pool, None).await.map_err(|it| failed(&it))?;
        let left = left.iter().map(|row| format!("{}: {}", row.id, row.error));
        self.left.extend(left);
        let backlog = outbox.backlog(pool).await.map_err(|it| failed(&it))?;
        if backlog.waiting > 0 {
            self.left.push(format!("{} rows wait", backlog.waiting));
        }
        self.committed = wanted.len();
        self.jobs = stored.len();
        self.runs = count(pool, "runs").await?;
        self.effects = count(pool, "effects").await?;
        Ok(())
    }

    fn findings(&self) -> [(&'static str, &[String]); 2] {
        [("wrong", &self.wrong), ("left", &self.left)]
    }

    /// Returns true if everything is as promised.
    #[must_use]
    pub fn holds(&self) -> bool {
        let counted = [self.jobs, self.effects];
        counted == [self.committed; 2] && self.findings().iter().all(|(_, lines)| lines.is_empty())
    }

    /// Returns the report as a JSON object on one line.
    #[must_use]
    pub fn json(&self) -> String {
        let [relays, workers, redis, postgres, connections] = self.kills;
        serde_json::json!({
            "scenario": self.database.name(),
            "seed": self.seed,
            "transactions": self.transactions,
            "committed": self.committed,
            "killed": {
                "relays": relays, "workers": workers, "redis": redis, "postgres": postgres,
                "connections": connections,
            },
            "jobs": self.jobs,
            "runs": self.runs,
            "effects": self.effects,
            "wrong": self.wrong,
            "left": self.left,
            "seconds": self.seconds,
            "holds": self.holds(),
        })
        .to_string()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            transactions,
            committed,
            kills: [relays, workers, redis, postgres, connections],
            jobs,
            runs,
            effects,
            seconds,
            ..
        } = self;
        write!(
            f,
            "{}: {transactions} transactions, {committed} committed, {jobs} jobs, {runs} runs, {effects} effects in \
             {seconds} s; killed {relays} relays, {workers} workers, {redis} redis-servers",
            self.database.name()
        )?;
        if self.database == Kind::Postgres {
            write!(
                f,
                ", {postgres} PostgreSQL servers, {connections} of their connections"
            )?;
        }
        for (name, lines) in self.findings() {
            write!(f, "; {name} {}", lines.len())?;
        }
        findings::write(f, &self.findings())
    }
}
