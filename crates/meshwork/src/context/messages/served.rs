//! A served context: the parts of a step, each with its own failures. Neither a damaged key nor a damaged message
//! delays another part, another message or another context.

use std::collections::BTreeMap;
use std::time::Duration;

use meshwork_model::keys::context::ContextId;
use tokio::time::Instant;

use crate::context::messages::done::Done;
use crate::context::messages::inbox::Sorted;
use crate::context::{ContextError, ContextHandle};

/// First pause of a part that failed.
const FIRST: Duration = Duration::from_millis(100);
/// Longest pause of a part that fails. A repaired key is noticed after this time at the latest.
const LONGEST: Duration = Duration::from_secs(10);
/// Longest pause of a part that could handle none of its messages. It delays a new message, so that it is short.
const LONGEST_OF_MESSAGES: Duration = Duration::from_secs(1);
/// Longest pause of a context whose server does not answer. It is noticed after this time that a replica has taken over.
const AWAY: Duration = Duration::from_secs(2);
/// Interval of log lines about a part that still fails.
const REMIND: Duration = Duration::from_secs(60);

/// A part of a coordinator's step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    Expire,
    Route,
    Sort,
    TakeUp,
    Answer,
    Prune,
    Letters,
}

impl Part {
    /// All parts in their order: messages expire before they are sent.
    pub(crate) const ALL: [Self; 7] = [
        Self::Expire,
        Self::Route,
        Self::Sort,
        Self::TakeUp,
        Self::Answer,
        Self::Prune,
        Self::Letters,
    ];
}

/// A part that fails as a whole, or for a message, because a key holds another type of value.
#[derive(Debug)]
struct Trouble {
    next: Instant,
    pause: Duration,
    logged: Instant,
    /// The message that was logged; none for the whole part.
    message: Option<String>,
}

/// A context with the state of its service in this process.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) context: ContextHandle,
    pub(crate) sorted: Sorted,
    troubles: BTreeMap<Part, Trouble>,
    /// The end of the pause after an outage of its server, and the length of the pause.
    away: Option<(Instant, Duration)>,
}

impl Served {
    pub(crate) fn new(context: ContextHandle) -> Self {
        Self {
            context,
            sorted: Sorted::default(),
            troubles: BTreeMap::new(),
            away: None,
        }
    }

    /// Pauses after an outage of its server, each time twice as long.
    pub(crate) fn pause(&mut self) {
        let last = self.away.map(|(_, pause)| pause);
        let pause = last.map_or(FIRST, |last| AWAY.min(last * 2));
        self.away = Some((Instant::now() + pause, pause));
    }

    /// Records that its server answers.
    pub(crate) fn reached(&mut self) {
        self.away = None;
    }

    /// Returns false while a part that failed pauses.
    pub(crate) fn is_due(&self, part: Part) -> bool {
        let trouble = self.troubles.get(&part);
        trouble.is_none_or(|trouble| Instant::now() >= trouble.next)
    }

    /// Records that a part failed: it pauses, each time twice as long.
    pub(crate) fn failed(&mut self, part: Part, error: &ContextError) {
        self.pause_part(part, None, error, LONGEST);
    }

    /// Records what a part has handled. If it could handle nothing, it pauses, each time twice as long.
    pub(crate) fn handled(&mut self, part: Part, done: &Done) {
        match &done.failed {
            None => self.succeeded(part),
            Some((message, error)) => {
                let longest = match done.count {
                    0 => LONGEST_OF_MESSAGES,
                    _ => Duration::ZERO,
                };
                self.pause_part(part, Some(message.as_str()), error, longest);
            }
        }
    }

    fn pause_part(
        &mut self,
        part: Part,
        message: Option<&str>,
        error: &ContextError,
        longest: Duration,
    ) {
        let (context, now) = (self.context.id(), Instant::now());
        let last = self.troubles.remove(&part);
        let pause = last
            .as_ref()
            .map_or(FIRST, |last| FIRST.max(last.pause * 2));
        let pause = longest.min(pause);
        let known = last.filter(|last| last.message.as_deref() == message);
        let logged = match known.as_ref().map(|known| known.logged) {
            Some(logged) if now - logged < REMIND => logged,
            logged => {
                let is_new = logged.is_none();
                match (message, is_new) {
                    (None, true) => {
                        tracing::warn!(%context, ?part, %error, "messages not served; retrying");
                    }
                    (None, false) => {
                        tracing::warn!(%context, ?part, %error, "messages still not served");
                    }
                    (Some(message), true) => {
                        tracing::warn!(%context, element = message, %error, "message not handled; retrying");
                    }
                    (Some(message), false) => {
                        tracing::warn!(%context, element = message, %error, "message still not handled");
                    }
                }
                now
            }
        };
        let trouble = Trouble {
            next: now + pause,
            pause,
            logged,
            message: message.map(str::to_owned),
        };
        self.troubles.insert(part, trouble);
    }

    /// Records that a part succeeded.
    pub(crate) fn succeeded(&mut self, part: Part) {
        if self.troubles.remove(&part).is_some() {
            let context = self.context.id();
            tracing::warn!(%context, ?part, "messages served again");
        }
    }
}

/// The contexts that a coordinator serves now.
#[derive(Debug, Default)]
pub(crate) struct Roll {
    list: Vec<Served>,
    /// Contexts whose step is running.
    lent: BTreeMap<ContextId, ContextHandle>,
    /// The reasons why the last search did not find some contexts.
    faults: Vec<String>,
}

impl Roll {
    /// Updates the served contexts after a search. A known context stays while it cannot be found.
    pub(crate) fn update(&mut self, (found, failed): (Vec<ContextHandle>, Vec<ContextError>)) {
        if failed.is_empty() {
            let is_there = |one: &Served| found.iter().any(|it| it.keys() == one.context.keys());
            self.list.retain(is_there);
        }
        for context in found {
            if self.lent.contains_key(&context.id()) {
                continue;
            }
            let known = self.list.iter_mut();
            let mut known = known.filter(|one| one.context.id() == context.id());
            match known.next() {
                Some(one) if one.context.keys() == context.keys() => {}
                Some(one) => *one = Served::new(context),
                None => self.list.push(Served::new(context)),
            }
        }
        let faults: Vec<_> = failed.iter().map(ToString::to_string).collect();
        for error in faults.iter().filter(|it| !self.faults.contains(*it)) {
            tracing::warn!(%error, "context not found; trying again");
        }
        self.faults = faults;
    }

    pub(crate) fn contexts(&self) -> impl Iterator<Item = &ContextHandle> + Clone {
        let list = self.list.iter().map(|one| &one.context);
        list.chain(self.lent.values())
    }

    /// Takes the contexts that do not pause out of the list.
    pub(crate) fn lend(&mut self) -> Vec<Served> {
        let now = Instant::now();
        let is_due = |one: &mut Served| one.away.is_none_or(|(until, _)| until <= now);
        let lent: Vec<_> = self.list.extract_if(.., is_due).collect();
        let handles = lent
            .iter()
            .map(|one| (one.context.id(), one.context.clone()));
        self.lent.extend(handles);
        lent
    }

    /// Puts a context back after its step.
    pub(crate) fn take_back(&mut self, one: Served) {
        self.lent.remove(&one.context.id());
        self.list.push(one);
    }

    /// Returns true if a context pauses.
    pub(crate) fn has_pauses(&self) -> bool {
        self.list.iter().any(|one| one.away.is_some())
    }
}
