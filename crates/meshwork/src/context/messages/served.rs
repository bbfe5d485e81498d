//! A served context: the parts of a step, each with its own failures. Neither a damaged key nor a damaged message
//! delays another part, another message or another context.

use std::collections::BTreeMap;
use std::time::Duration;

use meshwork_model::keys::context::ContextId;
use tokio::time::Instant;

use crate::context::messages::inbox::Sorted;
use crate::context::{ContextError, ContextHandle};

/// First pause of a part that failed.
const FIRST: Duration = Duration::from_millis(100);
/// Longest pause of a part that fails. A repaired key is noticed after this time at the latest.
const LONGEST: Duration = Duration::from_secs(10);
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

/// A part that fails as a whole, because a key of the context holds another type of value.
#[derive(Debug)]
struct Trouble {
    next: Instant,
    pause: Duration,
    logged: Instant,
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
        let (context, now) = (self.context.id(), Instant::now());
        let Some(trouble) = self.troubles.get_mut(&part) else {
            tracing::warn!(%context, ?part, %error, "messages not served; retrying");
            let (next, pause, logged) = (now + FIRST, FIRST, now);
            let trouble = Trouble {
                next,
                pause,
                logged,
            };
            self.troubles.insert(part, trouble);
            return;
        };
        trouble.pause = LONGEST.min(trouble.pause * 2);
        trouble.next = now + trouble.pause;
        if now - trouble.logged >= REMIND {
            trouble.logged = now;
            tracing::warn!(%context, ?part, %error, "messages still not served");
        }
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
