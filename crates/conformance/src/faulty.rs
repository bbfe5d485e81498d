//! A connection that breaks at a chosen moment, around one that works: before a command is sent, or after its effect
//! and before its reply. It counts all commands.

use std::sync::{Arc, Mutex, MutexGuard};

use meshwork_broker::conn::Conn;
use redis::Value;

use crate::around::{Around, Fate, Fates, contains};

/// Moment at which the connection breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// The command never reaches the server.
    Before,
    /// The command takes effect, and its reply is lost.
    After,
}

/// Commands at which the connection breaks.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Number of the first one, counted from 0.
    pub first: usize,
    /// Number of consecutive ones.
    pub times: usize,
    /// Moment at each of them.
    pub moment: Moment,
}

/// State that clones of the connection share.
#[derive(Debug, Clone, Default)]
pub struct Faults(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    plan: Option<Plan>,
    /// Word at which the connection still has to break.
    word: Option<(&'static str, Moment)>,
    commands: usize,
    broken: usize,
    swallowed: Vec<Value>,
}

/// The connection; clones share their count.
pub type Faulty = Around<Faults>;

impl Faulty {
    /// Returns a connection over `inner` that breaks as planned, or only counts.
    #[must_use]
    pub fn new(inner: Conn, plan: Option<Plan>) -> Self {
        let state = State {
            plan,
            ..State::default()
        };
        Self::of(inner, Faults(Arc::new(Mutex::new(state))))
    }

    /// Returns a connection over `inner` that breaks once: before the first command with this word, or after the
    /// first command with this word in its reply.
    #[must_use]
    pub fn at_word(inner: Conn, word: &'static str, moment: Moment) -> Self {
        let faulty = Self::new(inner, None);
        faulty.fates.state().word = Some((word, moment));
        faulty
    }

    /// Returns the number of commands so far.
    #[must_use]
    pub fn commands(&self) -> usize {
        self.fates.state().commands
    }

    /// Returns the number of commands at which the connection broke.
    #[must_use]
    pub fn broken(&self) -> usize {
        self.fates.state().broken
    }

    /// Returns the lost replies of commands that took effect.
    #[must_use]
    pub fn swallowed(&self) -> Vec<Value> {
        self.fates.state().swallowed.clone()
    }
}

impl Faults {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("nobody panics with the lock held")
    }
}

impl State {
    /// Returns true if the connection breaks at its word now.
    fn breaks(&mut self, at: Moment, has: impl FnOnce(&str) -> bool) -> bool {
        let meets = self
            .word
            .is_some_and(|(word, when)| when == at && has(word));
        if meets {
            self.word = None;
            self.broken += 1;
        }
        meets
    }
}

impl Fates for Faults {
    fn dedicated(&self) -> Self {
        self.clone()
    }

    /// Counts a command, and returns its fate.
    fn next(&self, packed: impl FnOnce() -> Vec<u8>) -> Option<Fate> {
        let mut state = self.state();
        let number = state.commands;
        state.commands += 1;
        if state.breaks(Moment::Before, |word| contains(&packed(), word)) {
            return Some(Fate::Before);
        }
        let plan = state.plan?;
        let meets = (plan.first..plan.first + plan.times).contains(&number);
        state.broken += usize::from(meets);
        meets.then_some(match plan.moment {
            Moment::Before => Fate::Before,
            Moment::After => Fate::After,
        })
    }

    fn loses(&self, replies: &[Value]) -> bool {
        let has = |word: &str| format!("{replies:?}").contains(word);
        self.state().breaks(Moment::After, has)
    }

    fn lost(&self, mut replies: Vec<Value>) {
        replies.retain(|reply| !matches!(reply, Value::ServerError(_)));
        self.state().swallowed.extend(replies);
    }
}
