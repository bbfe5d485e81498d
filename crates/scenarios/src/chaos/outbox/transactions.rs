//! The transactions: each writes an order and its job, and is committed or rolled back.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use meshwork_outbox::sqlx::{self, Pool};
use meshwork_outbox::{Error, Outbox};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::sync::Notify;
use tokio::task::{JoinHandle, JoinSet};

use super::database::Scene;
use super::worker::Pay;
use super::{LOOK, Plan};
use crate::chaos::ChaosError;
use crate::chaos::hostile::failed;

/// Number of transactions at a time.
pub(super) const AT_ONCE: u32 = 4;

/// Number of transactions of each part that go on during the next kill.
const REST: usize = 20;

/// All transactions, and their progress.
pub(super) struct Transactions<D: Scene> {
    pool: Pool<D>,
    outbox: Outbox,
    /// True for each transaction that is committed.
    commits: Vec<bool>,
    next: AtomicUsize,
    done: AtomicUsize,
    /// Number of transactions that may begin.
    allowed: AtomicUsize,
    more: Notify,
}

impl<D: Scene> Transactions<D> {
    pub(super) fn new(plan: &Plan, pool: Pool<D>, outbox: Outbox) -> Self {
        let mut random = StdRng::seed_from_u64(plan.seed);
        let mut commits: Vec<_> = (0..plan.transactions).map(|n| n % 2 == 0).collect();
        for at in (1..commits.len()).rev() {
            commits.swap(at, random.random_range(0..=at));
        }
        Self {
            pool,
            outbox,
            commits,
            next: AtomicUsize::new(0),
            done: AtomicUsize::new(0),
            allowed: AtomicUsize::new(0),
            more: Notify::new(),
        }
    }

    /// Returns the numbers of the transactions that are committed.
    pub(super) fn committed(&self) -> impl Iterator<Item = usize> {
        let numbers = self.commits.iter().enumerate();
        numbers.filter_map(|(number, commits)| commits.then_some(number))
    }

    pub(super) fn done(&self) -> usize {
        self.done.load(Ordering::SeqCst)
    }

    /// Lets this part of all transactions begin.
    pub(super) fn allow(&self, part: u32, of: u32) {
        let allowed = self.commits.len() * part as usize / of as usize;
        self.allowed.store(allowed, Ordering::SeqCst);
        self.more.notify_waiters();
    }

    /// Returns true if most transactions of this part are done: the others go on during the next kill.
    pub(super) fn are_mostly_done(&self) -> bool {
        let allowed = self.allowed.load(Ordering::SeqCst);
        self.done() >= allowed - allowed.min(REST)
    }

    /// Starts all transactions.
    pub(super) fn start(self: Arc<Self>) -> JoinHandle<Result<(), ChaosError>> {
        tokio::spawn(async move {
            let mut tasks = JoinSet::new();
            for _ in 0..AT_ONCE {
                tasks.spawn(Arc::clone(&self).some());
            }
            while let Some(ended) = tasks.join_next().await {
                ended.map_err(|it| failed(&it))??;
            }
            Ok(())
        })
    }

    async fn some(self: Arc<Self>) -> Result<(), ChaosError> {
        loop {
            let number = self.next.fetch_add(1, Ordering::SeqCst);
            let Some(commits) = self.commits.get(number) else {
                return Ok(());
            };
            while number >= self.allowed.load(Ordering::SeqCst) {
                let more = self.more.notified();
                tokio::time::timeout(LOOK, more).await.ok();
            }
            self.play(number, *commits).await?;
            self.done.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Plays a transaction until it has the wanted end. The end of one whose connection breaks is looked for.
    async fn play(&self, number: usize, commits: bool) -> Result<(), ChaosError> {
        let mut again = tokio::time::interval(LOOK);
        loop {
            again.tick().await;
            match self.attempt(number, commits).await {
                Ok(()) => return Ok(()),
                // The server is down, and rolls back what was open.
                Err(error) if is_broken(&error) && !commits => return Ok(()),
                Err(error) if is_broken(&error) => {}
                Err(error) => return Err(failed(&error)),
            }
        }
    }

    async fn attempt(&self, number: usize, commits: bool) -> Result<(), Error> {
        let mut tx = D::begin(&self.pool).await?;
        let order = number as i64;
        if D::has_order(&mut tx, order).await? {
            return Ok(());
        }
        let job = self.outbox.enqueue(&mut tx, Pay { order }).await?;
        D::add_order(&mut tx, order, job.id.as_str()).await?;
        match commits {
            true => tx.commit().await?,
            false => tx.rollback().await?,
        }
        Ok(())
    }
}

/// Returns true for errors of a connection that was killed. A connection that sqlx had in its pool may break in the
/// middle of a message.
fn is_broken(error: &Error) -> bool {
    let protocol = matches!(error, Error::Database(sqlx::Error::Protocol(_)));
    error.is_temporary() || protocol
}
