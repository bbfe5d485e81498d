//! A served context: the parts of a step, each with its own failures. Neither a damaged key nor a damaged message
//! delays another part, another message or another context.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use meshwork_model::keys::context::ContextId;
use tokio::time::Instant;

use crate::context::messages::inbox::Sorted;
use crate::context::rest::Rest;
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
    pub(crate) rest: Rest,
    troubles: BTreeMap<Part, Trouble>,
    /// The end of the pause after an outage of its server, and the length of the pause.
    away: Option<(Instant, Duration)>,
}

impl Served {
    pub(crate) fn new(context: ContextHandle) -> Self {
        Self {
            context,
            sorted: Sorted::default(),
            rest: Rest::default(),
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

    /// Returns true if a part failed, and has not succeeded since.
    pub(crate) fn has_troubles(&self) -> bool {
        !self.troubles.is_empty()
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
    list: BTreeMap<ContextId, Served>,
    /// Contexts whose step is running.
    lent: BTreeMap<ContextId, ContextHandle>,
    /// Contexts of which a change was reported while their step was running.
    changed: BTreeSet<ContextId>,
    /// The reasons why the last search did not find some contexts.
    faults: Vec<String>,
}

impl Roll {
    /// Updates the served contexts after a search. A known context stays while it cannot be found.
    pub(crate) fn update(&mut self, (found, failed): (Vec<ContextHandle>, Vec<ContextError>)) {
        let found: BTreeMap<_, _> = found.into_iter().map(|it| (it.id(), it)).collect();
        if failed.is_empty() {
            let is_there = |id: &ContextId, one: &mut Served| {
                let found = found.get(id);
                found.is_some_and(|it| it.keys() == one.context.keys())
            };
            self.list.retain(is_there);
        }
        for (id, context) in found {
            let known = self.list.get(&id);
            let is_known = known.is_some_and(|one| one.context.keys() == context.keys());
            if !is_known && !self.lent.contains_key(&id) {
                self.list.insert(id, Served::new(context));
            }
        }
        let faults: Vec<_> = failed.iter().map(ToString::to_string).collect();
        for error in faults.iter().filter(|it| !self.faults.contains(*it)) {
            tracing::warn!(%error, "context not found; trying again");
        }
        self.faults = faults;
    }

    pub(crate) fn contexts(&self) -> impl Iterator<Item = &ContextHandle> + Clone {
        let list = self.list.values().map(|one| &one.context);
        list.chain(self.lent.values())
    }

    /// Ends the rest of contexts that have changed; with `all`, any may have.
    pub(crate) fn wake(&mut self, (changed, all): (BTreeSet<u32>, bool)) {
        let is_changed = |id: &ContextId| all || changed.contains(&id.get());
        for (_, one) in self.list.iter_mut().filter(|(id, _)| is_changed(id)) {
            one.rest.end();
        }
        let lent = self.lent.keys().filter(|id| is_changed(id));
        self.changed.extend(lent);
    }

    /// Takes the contexts that neither pause nor rest out of the list.
    pub(crate) fn lend(&mut self) -> Vec<Served> {
        let now = Instant::now();
        let is_due =
            |one: &Served| one.away.is_none_or(|(until, _)| until <= now) && !one.rest.is_on(now);
        let due = self.list.extract_if(.., |_, one| is_due(one));
        let lent: Vec<_> = due.map(|(_, one)| one).collect();
        let handles = lent
            .iter()
            .map(|one| (one.context.id(), one.context.clone()));
        self.lent.extend(handles);
        lent
    }

    /// Puts a context back after its step.
    pub(crate) fn take_back(&mut self, mut one: Served) {
        let id = one.context.id();
        self.lent.remove(&id);
        if self.changed.remove(&id) {
            one.rest.end();
        }
        self.list.insert(id, one);
    }

    /// Returns true if all contexts are lent.
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns true if a context pauses.
    pub(crate) fn has_pauses(&self) -> bool {
        self.list.values().any(|one| one.away.is_some())
    }
}
