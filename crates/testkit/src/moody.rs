//! A connection around one that works, whose dedicated ones a test can break, or keep from answering some calls. It
//! remembers what was called on each of these.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use meshwork_broker::conn::{Conn, Ear, Transport};
use redis::aio::ConnectionLike;
use redis::{Cmd, Pipeline, RedisFuture, RedisResult, Value};
use tokio::sync::watch;

use crate::eventually;

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

/// The connection; clones share what they remember.
#[derive(Debug, Clone)]
pub struct Moody {
    inner: Conn,
    state: Arc<Mutex<State>>,
    /// Calls with this word in them, and what happens to them.
    mood: Option<(&'static str, Mood)>,
    /// How many such calls were made.
    met: watch::Sender<usize>,
    /// Its number among the dedicated ones, if it is one.
    number: Option<usize>,
}

impl Moody {
    /// A connection over `inner`; on dedicated ones, calls with this word in them are met by this mood.
    #[must_use]
    pub fn new(inner: Conn, mood: Option<(&'static str, Mood)>) -> Self {
        Self {
            inner,
            state: Arc::default(),
            mood,
            met: watch::Sender::new(0),
            number: None,
        }
    }

    /// Returns when so many calls were met by the mood.
    pub async fn met(&self, calls: usize) {
        // The sender is in `self`.
        let _ = self.met.subscribe().wait_for(|met| *met >= calls).await;
    }

    /// On how many dedicated connections something was called with this word in it.
    #[must_use]
    pub fn carriers(&self, word: &str) -> usize {
        let state = self.state();
        let carries = |called: &&Vec<u8>| contains(called, word);
        state.called.iter().filter(carries).count()
    }

    /// All dedicated connections that were made so far are broken.
    pub fn break_all(&self) {
        let mut state = self.state();
        state.broken = state.called.len();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics with the lock held")
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

    /// Remembers a call, and says what happens to it.
    fn calls(&self, packed: &[u8]) -> Option<Mood> {
        let number = self.number?;
        let mut state = self.state();
        state.called[number].extend_from_slice(packed);
        if number < state.broken {
            return Some(Mood::Broken);
        }
        let (word, mood) = self.mood?;
        let meets = contains(packed, word);
        if meets {
            self.met.send_modify(|met| *met += 1);
        }
        meets.then_some(mood)
    }

    async fn met_by<T>(
        &self,
        mood: Option<Mood>,
        call: impl Future<Output = RedisResult<T>>,
    ) -> RedisResult<T> {
        match mood {
            None => call.await,
            Some(Mood::Silent) => std::future::pending().await,
            Some(Mood::Broken) => {
                Err(io::Error::new(io::ErrorKind::ConnectionReset, "broken on purpose").into())
            }
        }
    }
}

fn contains(bytes: &[u8], word: &str) -> bool {
    let mut parts = bytes.windows(word.len());
    parts.any(|part| part == word.as_bytes())
}

impl Transport for Moody {
    fn call<'a>(&'a self, cmd: &'a Cmd) -> RedisFuture<'a, Value> {
        let mut inner = self.inner.clone();
        let mood = self.calls(&cmd.get_packed_command());
        let call = async move { inner.req_packed_command(cmd).await };
        Box::pin(self.met_by(mood, call))
    }

    fn call_many<'a>(
        &'a self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        let mut inner = self.inner.clone();
        let mood = self.calls(&pipeline.get_packed_pipeline());
        let call = async move { inner.req_packed_commands(pipeline, offset, count).await };
        Box::pin(self.met_by(mood, call))
    }

    fn ear(&self) -> BoxFuture<'_, RedisResult<Ear>> {
        Box::pin(self.inner.ear())
    }

    fn dedicated(&self) -> BoxFuture<'_, RedisResult<Conn>> {
        Box::pin(async move {
            let inner = self.inner.dedicated().await?;
            let mut state = self.state();
            state.called.push(Vec::new());
            let number = Some(state.called.len() - 1);
            drop(state);
            Ok(Conn::new(Self {
                inner,
                number,
                ..self.clone()
            }))
        })
    }

    fn db(&self) -> i64 {
        self.inner.get_db()
    }
}
