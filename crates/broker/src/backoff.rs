//! Exponential backoff between tries of a call, with jitter, so that callers that failed together do not return
//! together.

use meshwork_macros::boxed;
use std::time::Duration;

use tokio::time::Instant;

use crate::error::Error;

/// First wait.
const FIRST: Duration = Duration::from_millis(50);
/// Greatest wait, and so the longest time until a recovered server is noticed.
const LONGEST: Duration = Duration::from_secs(1);

/// The waits between tries of one call.
#[derive(Debug)]
pub struct Backoff {
    next: Duration,
}

impl Backoff {
    /// Returns the state before the first failure.
    #[must_use]
    pub const fn new() -> Self {
        Self { next: FIRST }
    }

    /// Waits, and doubles the next wait. Jitter shortens each wait by up to a half.
    #[boxed]
    pub async fn wait(&mut self) {
        let share = 0.5 + rand::random::<f64>() / 2.0;
        tokio::time::sleep(self.next.mul_f64(share)).await;
        self.next = LONGEST.min(self.next * 2);
    }
}

/// Longest time for which a call is repeated while its slot of a Cluster moves: a move that was left half-way is reported.
const MOVES_FOR: Duration = Duration::from_secs(4);
/// The same while the server is a replica: after a failover, discovery names the new primary within this time.
const REPLICA_FOR: Duration = Duration::from_secs(2);

/// Limits of the tries of one call.
#[derive(Debug)]
pub struct Tries {
    until: Instant,
    /// First and last error of a slot that moves.
    moves: Option<(Instant, Instant)>,
    /// First and last error of a replica.
    replica: Option<(Instant, Instant)>,
}

impl Tries {
    /// Begins the tries of a call, the last one not after `until`.
    #[must_use]
    pub const fn until(until: Instant) -> Self {
        Self {
            until,
            moves: None,
            replica: None,
        }
    }

    /// Begins the tries of a call, for this time.
    #[must_use]
    pub fn within(limit: Duration) -> Self {
        Self::until(Instant::now() + limit)
    }

    /// Returns whether a call is repeated after an error: the same call may succeed later, and there is time left.
    #[must_use]
    pub fn repeat(&mut self, error: &Error) -> bool {
        self.repeat_at(Instant::now(), error)
    }

    fn repeat_at(&mut self, now: Instant, error: &Error) -> bool {
        let is_in_time = match error {
            error if error.is_moving() => is_short(&mut self.moves, now, MOVES_FOR),
            error if error.is_of_replica() => is_short(&mut self.replica, now, REPLICA_FOR),
            _ => true,
        };
        error.is_temporary() && is_in_time && now < self.until
    }
}

/// Notes an error of a kind. Returns whether such errors have come for less than `longest`; after twice that time without
/// one, they count anew: the connection repeats a refused call by itself for some seconds.
fn is_short(seen: &mut Option<(Instant, Instant)>, now: Instant, longest: Duration) -> bool {
    let first = match *seen {
        Some((first, last)) if now <= last + longest * 2 => first,
        _ => now,
    };
    *seen = Some((first, now));
    now < first + longest
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(code: &str) -> Error {
        let source = redis::make_extension_error(code.to_owned(), None);
        Error::of_keys("enqueue", &[], source)
    }

    #[test]
    fn a_move_has_its_time_from_its_first_error_on() {
        let [away, moving, replica] = ["LOADING", "TRYAGAIN", "READONLY"].map(error);
        assert!(away.is_temporary() && moving.is_moving());
        let began = Instant::now();
        let after = |seconds| began + Duration::from_secs(seconds);
        let mut tries = Tries::until(after(60));
        for (seconds, error, is_repeated) in [
            (30, &away, true),
            (30, &moving, true),
            (33, &moving, true),
            (34, &away, true),
            (34, &moving, false),
            (40, &replica, true),
            (41, &replica, true),
            (42, &replica, false),
            (50, &replica, true),
            (59, &away, true),
            (60, &away, false),
        ] {
            let repeated = tries.repeat_at(after(seconds), error);
            assert_eq!(repeated, is_repeated, "{error} after {seconds} s");
        }
        // Each try lasts for longer than such errors may come.
        let mut tries = Tries::until(after(60));
        assert!(tries.repeat_at(after(2), &replica));
        assert!(!tries.repeat_at(after(5), &replica));
        let mut tries = Tries::until(after(1));
        assert!(tries.repeat_at(began, &moving));
        assert!(!tries.repeat_at(after(1), &moving));
    }
}
