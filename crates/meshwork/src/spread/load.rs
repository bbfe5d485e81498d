//! Loads of parts: a job without a key goes to the shorter of two parts that are drawn at random. Their lengths are read at
//! most ten times a second, and jobs that this process adds are counted meanwhile. Parts that do not answer get none.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::{Opened, SpreadError, State};

/// Time for which a length that was read is used.
const FRESH: Duration = Duration::from_millis(100);
/// Time for a part to answer. Others are drawn after that.
const PATIENCE: Duration = Duration::from_secs(1);
/// Time for which a part that did not answer is not drawn.
const PAUSE: Duration = Duration::from_secs(10);
/// Greatest number of draws whose parts do not answer. With one failed node of three, each such draw has one chance in
/// nine.
const DRAWS: usize = 4;

/// Length of a part, and the time at which it was read; `None` if the part did not answer then.
type Load = Option<(Option<usize>, Instant)>;

/// Waiting jobs of each part.
#[derive(Debug, Default)]
pub(super) struct Loads(Mutex<Vec<Load>>);

impl Loads {
    fn with<T>(&self, parts: usize, act: impl FnOnce(&mut [Load]) -> T) -> T {
        // No code that can panic runs under the lock.
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() < parts {
            known.resize(parts, None);
        }
        act(&mut known)
    }

    /// Returns the active parts that may be drawn: all, if none of them has answered lately.
    fn drawn(&self, active: usize) -> Vec<usize> {
        let now = Instant::now();
        let is_paused =
            |load: &Load| matches!(load, Some((None, at)) if now.duration_since(*at) < PAUSE);
        let all = 0..active;
        let drawn: Vec<_> = self.with(active, |known| {
            all.clone().filter(|at| !is_paused(&known[*at])).collect()
        });
        if drawn.is_empty() {
            return all.collect();
        }
        drawn
    }
}

impl State {
    /// Chooses an active part for a job without a key, and counts the job there.
    pub(super) async fn choose(&self, opened: &Opened) -> Result<usize, SpreadError> {
        let active = opened.layout.active;
        if active < 2 {
            return Ok(0);
        }
        // Those of a failed node are known since the queue was opened.
        self.loads.with(active, |known| {
            let silent = known.iter_mut().zip(&opened.clients);
            for (load, _) in silent.filter(|(load, client)| load.is_none() && !client.initialized())
            {
                *load = Some((None, Instant::now()));
            }
        });
        let mut draws = 1;
        loop {
            let drawn = self.loads.drawn(active);
            let one = rand::random_range(0..drawn.len());
            let other = (one + rand::random_range(1..drawn.len().max(2))) % drawn.len();
            let (one, other) = (drawn[one], drawn[other]);
            let lengths = tokio::join!(self.length(opened, one), self.length(opened, other));
            let chosen = match lengths {
                (Ok(length), Ok(than)) if length <= than => one,
                (Ok(_), Err(_)) => one,
                (_, Ok(_)) => other,
                (Err(error), Err(_)) if draws == DRAWS => return Err(error),
                (Err(_), Err(_)) => {
                    draws += 1;
                    continue;
                }
            };
            self.loads.with(active, |known| {
                if let Some((Some(length), _)) = &mut known[chosen] {
                    *length += 1;
                }
            });
            return Ok(chosen);
        }
    }

    async fn length(&self, opened: &Opened, at: usize) -> Result<usize, SpreadError> {
        let now = Instant::now();
        let known = self.loads.with(at + 1, |known| known[at]);
        if let Some((Some(length), read)) = known
            && now.duration_since(read) < FRESH
        {
            return Ok(length);
        }
        let read = async {
            let broker = self.client(opened, at).await?.broker();
            let queue = self.name.route().queue(broker.keys());
            Ok(broker.waiting(&queue).await?)
        };
        let length = timeout(PATIENCE, read).await;
        let length =
            length.unwrap_or_else(|_| Err(meshwork_broker::Error::timed_out("waiting").into()));
        let failed = length.as_ref().err();
        if failed.is_none_or(SpreadError::is_outage) {
            let load = length.as_ref().ok().copied();
            self.loads
                .with(at + 1, |known| known[at] = Some((load, Instant::now())));
        }
        length
    }
}
