//! Loads of parts: a job without a key goes to the shorter of two parts that are drawn at random. Their lengths are read at
//! most ten times a second, and jobs that this process adds are counted meanwhile.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use meshwork_model::spread::SpreadName;
use tokio::time::Instant;

use super::{Opened, SpreadError};

/// Time for which a length that was read is used.
const FRESH: Duration = Duration::from_millis(100);

/// Waiting jobs of each part: their number, and when it was read.
#[derive(Debug, Default)]
pub(super) struct Loads(Mutex<Vec<Option<(usize, Instant)>>>);

impl Loads {
    fn with<T>(&self, parts: usize, act: impl FnOnce(&mut [Option<(usize, Instant)>]) -> T) -> T {
        // No code that can panic runs under the lock.
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() < parts {
            known.resize(parts, None);
        }
        act(&mut known)
    }

    /// Chooses an active part for a job without a key, and counts the job there.
    pub(super) async fn choose(
        &self,
        opened: &Opened,
        name: &SpreadName,
    ) -> Result<usize, SpreadError> {
        let active = opened.layout.active;
        if active < 2 {
            return Ok(0);
        }
        let one = rand::random_range(0..active);
        let other = (one + rand::random_range(1..active)) % active;
        let lengths = tokio::try_join!(
            self.length(opened, one, name),
            self.length(opened, other, name)
        )?;
        let chosen = if lengths.0 <= lengths.1 { one } else { other };
        self.with(active, |known| {
            if let Some((length, _)) = &mut known[chosen] {
                *length += 1;
            }
        });
        Ok(chosen)
    }

    async fn length(
        &self,
        opened: &Opened,
        at: usize,
        name: &SpreadName,
    ) -> Result<usize, SpreadError> {
        let now = Instant::now();
        let known = self.with(at + 1, |known| known[at]);
        if let Some((length, read)) = known
            && now.duration_since(read) < FRESH
        {
            return Ok(length);
        }
        let broker = opened.clients[at].broker();
        let queue = name.route().queue(broker.keys());
        let length = broker.waiting(&queue).await?;
        self.with(at + 1, |known| known[at] = Some((length, now)));
        Ok(length)
    }
}
