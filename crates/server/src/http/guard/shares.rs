//! Pools that many clients share: requests, sockets, bytes. Nobody may hold more than is left for the others, so one client
//! gets half of a pool at most, two greedy ones two thirds, and a new one always finds room.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The client whose share is counted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Holder {
    /// A caller that the server behind the guard knows, by a name.
    Caller(String),
    /// Everybody else behind an address.
    Address(IpAddr),
}

/// A pool of places or bytes.
#[derive(Debug)]
pub struct Shares {
    total: usize,
    table: Mutex<Table>,
    /// An amount has come back.
    freed: Notify,
}

#[derive(Debug, Default)]
struct Table {
    taken: usize,
    /// Holders with a part of the pool.
    held: HashMap<Holder, usize>,
}

/// A part of a pool; dropping it gives it back.
#[derive(Debug)]
pub struct Share {
    pool: Arc<Shares>,
    holder: Holder,
    amount: usize,
}

impl Shares {
    /// Returns a pool of this size.
    #[must_use]
    pub fn new(total: usize) -> Arc<Self> {
        Arc::new(Self {
            total,
            table: Mutex::default(),
            freed: Notify::new(),
        })
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the share of a holder without an amount, which may grow.
    #[must_use]
    pub fn nothing(self: &Arc<Self>, holder: &Holder) -> Share {
        Share {
            pool: Arc::clone(self),
            holder: holder.clone(),
            amount: 0,
        }
    }

    /// Takes an amount; `None` if the pool is full, or the holder would have more than is left.
    #[must_use]
    pub fn take(self: &Arc<Self>, holder: &Holder, amount: usize) -> Option<Share> {
        let mut share = self.nothing(holder);
        share.grow(amount).then_some(share)
    }

    /// Waits for an amount, at most that of a holder who is alone.
    pub async fn wait(self: &Arc<Self>, holder: &Holder, amount: usize) -> Share {
        let amount = amount.min(self.total / 2);
        loop {
            let freed = self.freed.notified();
            tokio::pin!(freed);
            freed.as_mut().enable();
            if let Some(share) = self.take(holder, amount) {
                return share;
            }
            freed.await;
        }
    }
}

impl Share {
    /// Returns true if it is this amount, or that of a holder who is alone.
    #[must_use]
    pub fn covers(&self, amount: usize) -> bool {
        self.amount >= amount.min(self.pool.total / 2)
    }

    /// Takes more. Returns false, and takes nothing, where [`Shares::take`] returns `None`.
    #[must_use]
    pub fn grow(&mut self, amount: usize) -> bool {
        if amount == 0 {
            return true;
        }
        let mut table = self.pool.table();
        let held = table.held.get(&self.holder).copied().unwrap_or(0);
        if held + amount > self.pool.total - table.taken {
            return false;
        }
        table.taken += amount;
        match table.held.get_mut(&self.holder) {
            Some(held) => *held += amount,
            None => drop(table.held.insert(self.holder.clone(), amount)),
        }
        self.amount += amount;
        true
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        // A refused share would wake the one that was refused, again and again.
        if self.amount == 0 {
            return;
        }
        let mut table = self.pool.table();
        table.taken -= self.amount;
        if let Some(held) = table.held.get_mut(&self.holder) {
            *held -= self.amount;
            if *held == 0 {
                table.held.remove(&self.holder);
            }
        }
        drop(table);
        self.pool.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn holder(number: u8) -> Holder {
        Holder::Address([10, 0, 0, number].into())
    }

    fn most(pool: &Arc<Shares>, number: u8) -> Vec<Share> {
        std::iter::from_fn(|| pool.take(&holder(number), 1)).collect()
    }

    #[test]
    fn greedy_holders_leave_room_for_others() {
        let pool = Shares::new(1000);
        let first = most(&pool, 1);
        assert_eq!(first.len(), 500);
        // Each further one has half of what is left, and a neighbour has room beside all of them.
        let others: Vec<_> = (2..9).map(|number| most(&pool, number)).collect();
        assert_eq!(others[0].len(), 250);
        assert!(pool.take(&holder(9), 1).is_some());
        assert!(pool.take(&holder(1), 1).is_none());
        drop((first, others));
        assert_eq!(most(&pool, 9).len(), 500);
        assert!(pool.table().held.is_empty());
    }

    #[tokio::test]
    async fn who_waits_gets_what_comes_back() {
        let pool = Shares::new(10);
        let first = pool.wait(&holder(1), 100).await;
        assert_eq!(first.amount, 5);
        let waits = tokio::spawn({
            let pool = Arc::clone(&pool);
            async move { pool.wait(&holder(1), 3).await.amount }
        });
        tokio::task::yield_now().await;
        assert!(!waits.is_finished());
        drop(first);
        assert_eq!(waits.await.unwrap(), 3);
    }

    #[test]
    fn a_pool_of_one_serves_one() {
        let pool = Shares::new(1);
        let only = pool.take(&holder(1), 1);
        assert!(only.is_some() && pool.take(&holder(2), 1).is_none());
        drop(only);
        assert!(pool.take(&holder(2), 1).is_some());
        assert!(pool.take(&holder(1), 2).is_none());
    }

    proptest! {
        #[test]
        fn no_pool_is_overdrawn_and_all_comes_back(
            steps in prop::collection::vec((0..6_u8, 0..40_usize, any::<bool>()), 0..200)
        ) {
            let pool = Shares::new(100);
            let mut shares: Vec<Share> = Vec::new();
            for (number, amount, drops) in steps {
                if drops && !shares.is_empty() {
                    shares.swap_remove(amount % shares.len());
                } else {
                    shares.extend(pool.take(&holder(number), amount));
                }
                let sum: usize = shares.iter().map(|share| share.amount).sum();
                prop_assert_eq!(pool.table().taken, sum);
                prop_assert!(sum <= 100);
            }
            drop(shares);
            prop_assert_eq!(pool.table().taken, 0);
            prop_assert!(pool.table().held.is_empty());
        }
    }
}
