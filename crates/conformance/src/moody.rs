//! A connection around one that works, whose dedicated ones a test can break, or keep from answering some calls. It
//! remembers what was called on each of these.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use meshwork_broker::conn::Conn;
use tokio::sync::watch;

use crate::around::{Around, Fate, Fates, contains};
use meshwork_test_servers::eventually;

/// How often they break, and how many of the first times do not count: by then a wait that doubles is as long as it gets.
const ROUNDS: usize = 12;
const FORGIVEN: usize = 7;

/// What happens to a call that a mood is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mood {
    /// It is never answered, and has no effect.
    Silent,
    /// It breaks its connection, and has no effect.
    Broken,
}

#[derive(Debug, Default)]
struct State {
    /// What was called on each dedicated connection, as it goes over the wire.
    called: Vec<Vec<u8>>,
    /// The connections before this one are broken.
    broken: usize,
}

/// What clones of the connection share.
#[derive(Debug, Clone)]
pub struct Moods {
    state: Arc<Mutex<State>>,
    /// Calls with this word in them, and what happens to them.
    mood: Option<(&'static str, Mood)>,
    /// How many such calls were made.
    met: watch::Sender<usize>,
    /// Its number among the dedicated ones, if it is one.
    number: Option<usize>,
}

/// The connection; clones share what they remember.
pub type Moody = Around<Moods>;

impl Moody {
    /// A connection over `inner`; on dedicated ones, calls with this word in them are met by this mood.
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

    /// Returns when so many calls were met by the mood.
    pub async fn met(&self, calls: usize) {
        // The sender is in `self`.
        let mut met = self.fates.met.subscribe();
        let _ = met.wait_for(|met| *met >= calls).await;
    }

    /// On how many dedicated connections something was called with this word in it.
    #[must_use]
    pub fn carriers(&self, word: &str) -> usize {
        let state = self.fates.state();
        let carries = |called: &&Vec<u8>| contains(called, word);
        state.called.iter().filter(carries).count()
    }

    /// All dedicated connections that were made so far are broken.
    pub fn break_all(&self) {
        let mut state = self.fates.state();
        state.broken = state.called.len();
    }

    /// Breaks all dedicated connections again and again, and each time waits until `sign` shows that they are back. Gives
    /// the shortest that this took, once a keeper that never forgets its failures would wait its longest.
    ///
    /// # Panics
    /// When they do not come back within `bound`.
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

    /// Remembers a call, and says what happens to it.
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
