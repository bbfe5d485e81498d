//! Connections of one client that wait: a bounded number of them, kept for the next wait.

use std::sync::Mutex;

use tokio::sync::{Semaphore, SemaphorePermit};

/// Connections of one client that wait at the same time; who comes after asks again and again.
const MAX_WAITING: usize = 16;

/// Connections to wait on.
#[derive(Debug)]
pub(crate) struct Lot<T> {
    spaces: Semaphore,
    idle: Mutex<Vec<T>>,
}

impl<T> Default for Lot<T> {
    fn default() -> Self {
        Self {
            spaces: Semaphore::new(MAX_WAITING),
            idle: Mutex::default(),
        }
    }
}

/// One connection out of the lot, and the right to use it. It goes back when this is dropped, unless it was taken out.
pub(crate) struct Space<'a, T> {
    lot: &'a Lot<T>,
    /// Taken out while it waits: one that breaks, or whose wait is given up, does not come back.
    pub(crate) connection: Option<T>,
    _permit: SemaphorePermit<'a>,
}

impl<T> Lot<T> {
    /// A connection, if one is free or may be made.
    pub(crate) async fn enter<E>(
        &self,
        make: impl AsyncFnOnce() -> Result<T, E>,
    ) -> Option<Space<'_, T>> {
        let permit = self.spaces.try_acquire().ok()?;
        let idle = self.idle.lock().ok().and_then(|mut idle| idle.pop());
        let connection = match idle {
            Some(connection) => connection,
            None => make().await.ok()?,
        };
        Some(Space {
            lot: self,
            connection: Some(connection),
            _permit: permit,
        })
    }
}

impl<T> Drop for Space<'_, T> {
    fn drop(&mut self) {
        if let (Some(connection), Ok(mut idle)) = (self.connection.take(), self.lot.idle.lock()) {
            idle.push(connection);
        }
    }
}
