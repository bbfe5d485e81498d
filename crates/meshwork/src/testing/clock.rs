//! A clock that tests advance.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use meshwork_broker::Broker;
use meshwork_broker::conn::{Conn, StoreClock};
use meshwork_model::keys::hero::JobKeys;

use crate::Client;

/// End of the year 9999, in milliseconds since 1970: later times have no form in records.
const END_MS: u64 = 253_402_300_799_999;

/// A clock that tests advance, with stores in memory that go by it: delays, retries, schedules, unique names and
/// throttles. It begins at the time of the host and goes on as that does. Clones are the same clock.
///
/// Handlers and waits of the test itself take real time. Advance the clock while no worker runs, as between two calls of
/// [`drain`](fn@super::drain): a worker would lose the leases of its jobs.
///
/// ```
/// # use std::time::Duration;
/// # use meshwork::{Client, Worker};
/// use meshwork::testing::{Clock, drain};
///
/// #[meshwork::job(output = u64)]
/// struct Remind { user: u64 }
///
/// async fn remind(job: Remind) -> Result<u64, String> {
///     Ok(job.user)
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), meshwork::Error> {
/// let clock = Clock::new();
/// let client = clock.client();
/// let worker = Worker::new(&client).job(remind);
/// let day = Duration::from_secs(24 * 3600);
/// client.enqueue(Remind { user: 7 }).delay(day).await?;
/// assert_eq!(drain(&client, worker.clone()).await?.delayed, 1);
/// clock.advance(day);
/// assert_eq!(drain(&client, worker).await?.finished, 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Clock(StoreClock);

impl Clock {
    /// Creates a clock.
    #[must_use]
    pub fn new() -> Self {
        Self(StoreClock::ahead())
    }

    /// Creates a client of a new store in memory that goes by this clock.
    #[must_use]
    pub fn client(&self) -> Client {
        let conn = Conn::in_memory_with_clock(&self.0);
        Client::new(Broker::new(conn, JobKeys::default()))
    }

    /// Advances the clock by this time and a millisecond: what ends exactly then has ended. It stops at the end of the
    /// year 9999.
    pub fn advance(&self, by: Duration) {
        let millis = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
        let most = END_MS.saturating_sub(self.0.now_ms());
        self.0.advance(millis.saturating_add(1).min(most));
    }

    /// Returns the time that the clock shows.
    #[must_use]
    pub fn now(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(self.0.now_ms())
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}
