//! Bounded pool of blocking connections of one client.

use std::sync::Mutex;

use tokio::sync::{Semaphore, SemaphorePermit};

/// Greatest number of blocking connections of one client. Further callers poll.
const MAX_WAITING: usize = 16;

/// Pool of connections.
#[derive(Debug)]
pub(crate) struct WaitPool<T> {
    permits: Semaphore,
    idle: Mutex<Vec<T>>,
}

impl<T> Default for WaitPool<T> {
    fn default() -> Self {
        Self {
            permits: Semaphore::new(MAX_WAITING),
            idle: Mutex::default(),
        }
    }
}

/// A connection with its permit. Dropping it returns the connection to the pool, unless it was taken out.
pub(crate) struct PooledConnection<'a, T> {
    pool: &'a WaitPool<T>,
    /// `None` during a read. A connection whose read broke or was dropped is not reused.
    pub(crate) connection: Option<T>,
    _permit: SemaphorePermit<'a>,
}

impl<T> WaitPool<T> {
    /// Returns a free or new connection. Returns `None` if all are in use, or the connection fails.
    pub(crate) async fn enter<E>(
        &self,
        make: impl AsyncFnOnce() -> Result<T, E>,
    ) -> Option<PooledConnection<'_, T>> {
        let permit = self.permits.try_acquire().ok()?;
        let idle = self.idle.lock().ok().and_then(|mut idle| idle.pop());
        let connection = match idle {
            Some(connection) => connection,
            None => make().await.ok()?,
        };
        Some(PooledConnection {
            pool: self,
            connection: Some(connection),
            _permit: permit,
        })
    }
}

impl<T> Drop for PooledConnection<'_, T> {
    fn drop(&mut self) {
        if let (Some(connection), Ok(mut idle)) = (self.connection.take(), self.pool.idle.lock()) {
            idle.push(connection);
        }
    }
}
