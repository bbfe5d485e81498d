//! A connection that breaks when a test wants it to, around one that does not: before a command is
//! sent, or after it took effect and before its reply is read. It counts every command on the way.

use std::sync::{Arc, Mutex, MutexGuard};

use meshwork_broker::conn::Conn;
use redis::Value;

use crate::around::{Around, Fate, Fates, contains};

/// When the connection breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// The command never reaches the server.
    Before,
    /// The command takes effect, and nobody learns so.
    After,
}

/// Which commands meet a broken connection.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// The first one, counted from 0.
    pub first: usize,
    /// How many in a row.
    pub times: usize,
    /// At which moment.
    pub moment: Moment,
}

/// What clones of the connection share.
#[derive(Debug, Clone, Default)]
pub struct Faults(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    plan: Option<Plan>,
    /// It breaks at this word, if it has not done so.
    word: Option<(&'static str, Moment)>,
    commands: usize,
    broken: usize,
    swallowed: Vec<Value>,
}

/// The connection; clones share their count.
pub type Faulty = Around<Faults>;

impl Faulty {
    /// A connection over `inner` that breaks as planned, or only counts.
    #[must_use]
    pub fn new(inner: Conn, plan: Option<Plan>) -> Self {
        let state = State {
            plan,
            ..State::default()
        };
        Self::of(inner, Faults(Arc::new(Mutex::new(state))))
    }

    /// A connection over `inner` that breaks once: before the first command is sent that has this word in it, or after
    /// the first one took effect that has it in its reply.
    #[must_use]
    pub fn at_word(inner: Conn, word: &'static str, moment: Moment) -> Self {
        let faulty = Self::new(inner, None);
        faulty.fates.state().word = Some((word, moment));
        faulty
    }

    /// How many commands were to be sent so far.
    #[must_use]
    pub fn commands(&self) -> usize {
        self.fates.state().commands
    }

    /// How many of them met a broken connection.
    #[must_use]
    pub fn broken(&self) -> usize {
        self.fates.state().broken
    }

    /// The replies that were lost, of commands that took effect.
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
    /// Whether the connection breaks at its word now, if that is there.
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

    /// Counts a command, and says what happens to it.
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
