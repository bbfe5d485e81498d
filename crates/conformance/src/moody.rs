//! A connection around one that works, whose dedicated connections a test can break, or keep from answering some
//! calls. It records the calls of each of these.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use meshwork_broker::conn::Conn;
use tokio::sync::watch;

use crate::around::{Around, Fate, Fates, contains};
use meshwork_test_servers::eventually;

/// Number of breaks, and of the first ones that do not count: by then a doubling wait has reached its maximum.
const ROUNDS: usize = 12;
const FORGIVEN: usize = 7;

/// Fate of calls with a mood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mood {
    /// The call gets no answer, and has no effect.
    Silent,
    /// The connection breaks, and the call has no effect.
    Broken,
}

#[derive(Debug, Default)]
struct State {
    /// Calls of each dedicated connection, in their wire format.
    called: Vec<Vec<u8>>,
    /// Number of the first connection that is not broken.
    broken: usize,
}

/// State that clones of the connection share.
#[derive(Debug, Clone)]
pub struct Moods {
    state: Arc<Mutex<State>>,
    /// Word of the affected calls, and their mood.
    mood: Option<(&'static str, Mood)>,
    /// Number of affected calls.
    met: watch::Sender<usize>,
    /// Number of the dedicated connection; `None` for the shared one.
    number: Option<usize>,
}

/// The connection; clones share their record.
pub type Moody = Around<Moods>;

impl Moody {
    /// Returns a connection over `inner`. On dedicated connections, calls with this word have this mood.
    #[must_use]
    pub fn new(inner: Conn, mood: Option<(&'static str, Mood)>) -> Self {
        let moods = Moods {
            state: Arc::default(),
            mood,
            met: watch::Sender::new(0),
            number: None,
        };
        Self::of(inner, moods)
    }

    /// Returns when this many calls were affected.
    pub async fn met(&self, calls: usize) {
        // The sender lives as long as `self`.
        let mut met = self.fates.met.subscribe();
        let _ = met.wait_for(|met| *met >= calls).await;
    }

    /// Returns the number of dedicated connections with a call that contains this word.
    #[must_use]
    pub fn carriers(&self, word: &str) -> usize {
        let state = self.fates.state();
        let carries = |called: &&Vec<u8>| contains(called, word);
        state.called.iter().filter(carries).count()
    }

    /// Breaks all dedicated connections so far.
    pub fn break_all(&self) {
        let mut state = self.fates.state();
        state.broken = state.called.len();
    }

    /// Breaks all dedicated connections again and again, and each time waits until `sign` shows their return. Returns
    /// the shortest time to return after the failures at which an ever-doubling wait would be at its maximum.
    ///
    /// # Panics
    /// The connections do not return within `bound`.
    pub async fn quickest_return<T: PartialEq>(
        &self,
        bound: Duration,
        mut sign: impl AsyncFnMut() -> T,
    ) -> Duration {
        let mut quickest = bound;
        for round in 0..ROUNDS {
            self.break_all();
            let (before, began) = (sign().await, Instant::now());
            eventually("they are back", bound, async || {
                (sign().await != before).then_some(())
            })
            .await;
            if round >= FORGIVEN {
                quickest = quickest.min(began.elapsed());
            }
        }
        quickest
    }
}

impl Moods {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics with the lock held")
    }
}

impl Fates for Moods {
    fn dedicated(&self) -> Self {
        let mut state = self.state();
        state.called.push(Vec::new());
        Self {
            number: Some(state.called.len() - 1),
            ..self.clone()
        }
    }

    /// Records a call, and returns its fate.
    fn next(&self, packed: impl FnOnce() -> Vec<u8>) -> Option<Fate> {
        let (number, packed) = (self.number?, packed());
        let mut state = self.state();
        state.called[number].extend_from_slice(&packed);
        if number < state.broken {
            return Some(Fate::Before);
        }
        let (word, mood) = self.mood?;
        if !contains(&packed, word) {
            return None;
        }
        self.met.send_modify(|met| *met += 1);
        Some(match mood {
            Mood::Silent => Fate::Silent,
            Mood::Broken => Fate::Before,
        })
    }
}
