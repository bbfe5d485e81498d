//! Demand: the state that the fetcher and the prefetchers share: whether slots are free, which queues are blocked, and from
//! which queues ids have arrived.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::Instant;

/// Longest time that a prefetcher waits for the claim of its id before it reads again.
const CLAIM_SOON: Duration = Duration::from_secs(1);
/// Longest pause before a blocked queue is tried again, since an operator may have removed the reason.
const HOLD_MOST: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
struct Want {
    /// Slots are free, and the last claim found the queues empty.
    hungry: bool,
    /// Queues from which nothing may be claimed now.
    held: HashSet<String>,
}

impl Want {
    fn is_for(&self, list: &str) -> bool {
        self.hungry && !self.held.contains(list)
    }
}

/// The state that the fetcher and the prefetchers share.
#[derive(Debug)]
pub struct Demand {
    want: watch::Sender<Want>,
    claims: watch::Sender<u64>,
    /// Queues whose prefetchers reported an id that no claim has included yet.
    arrived: watch::Sender<BTreeSet<String>>,
    /// Ids were seen in queues.
    seen: Notify,
}

impl Default for Demand {
    fn default() -> Self {
        Self {
            want: watch::Sender::default(),
            claims: watch::Sender::new(0),
            arrived: watch::Sender::default(),
            seen: Notify::new(),
        }
    }
}

impl Demand {
    /// Waits until slots are free, the last claim found the queues empty, and `list` is not blocked.
    pub(crate) async fn wait_for_demand(&self, list: &str) {
        let mut want = self.want.subscribe();
        // The sender lives as long as `self`.
        let _ = want.wait_for(|want| want.is_for(list)).await;
    }

    /// Returns true if [`Demand::wait_for_demand`] would return at once.
    pub fn is_demanded(&self, list: &str) -> bool {
        self.want.borrow().is_for(list)
    }

    /// Reports that an id has arrived from `list`, or may have. Wakes the fetcher, and returns after its claim.
    pub(crate) async fn notify_arrival(&self, list: &str) {
        let notify = || {
            self.note_arrival(list);
            true
        };
        self.handled(notify).await;
    }

    /// Delivers something to the fetcher, and returns after it has handled it. `deliver` returns false if there is no
    /// fetcher any more.
    pub(crate) async fn handled(&self, deliver: impl FnOnce() -> bool) {
        let mut claims = self.claims.subscribe();
        claims.mark_unchanged();
        if deliver() {
            let _ = tokio::time::timeout(CLAIM_SOON, claims.changed()).await;
        }
    }

    /// Wakes the fetcher, since `list` may have more ids.
    pub(crate) fn note_arrival(&self, list: &str) {
        self.arrived.send_modify(|arrived| {
            arrived.insert(list.to_owned());
        });
    }

    /// Waits for arrivals, and returns the lists with arrivals since the last call.
    pub(crate) async fn arrivals(&self) -> BTreeSet<String> {
        let mut arrived = self.arrived.subscribe();
        // The sender lives as long as `self`.
        let _ = arrived.wait_for(|arrived| !arrived.is_empty()).await;
        self.arrived.send_replace(BTreeSet::new())
    }

    /// Returns true if slots may be free and the last claim found the queues empty.
    pub fn is_hungry(&self) -> bool {
        self.want.borrow().hungry
    }

    /// Wakes the fetcher: a protocol that looks for ids itself has found some.
    pub fn note_ids(&self) {
        self.seen.notify_one();
    }

    /// Returns after the next [`Demand::note_ids`].
    pub(crate) async fn ids(&self) {
        self.seen.notified().await;
    }

    /// Records that the fetcher has handled a claim.
    pub(crate) fn claimed(&self) {
        self.claims.send_modify(|claims| *claims += 1);
    }

    /// Sets whether the prefetchers wait for ids.
    pub(crate) fn tell(&self, hungry: bool) {
        self.want.send_if_modified(|want| {
            let changed = want.hungry != hungry;
            want.hungry = hungry;
            changed
        });
    }

    fn hold(&self, holds: &BlockedQueues) {
        self.want.send_if_modified(|want| {
            let same = want.held.len() == holds.until.len()
                && holds.until.keys().all(|list| want.held.contains(list));
            if !same {
                want.held = holds.until.keys().cloned().collect();
            }
            !same
        });
    }
}

/// Queues that are paused or at a limit, with the time of the next try. A queue stays here until a claim reports
/// otherwise.
#[derive(Debug, Default)]
pub(crate) struct BlockedQueues {
    until: HashMap<String, Instant>,
}

impl BlockedQueues {
    /// Returns the time of the next try.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.until.values().min().copied()
    }

    /// Returns the queues that the next claim leaves out.
    pub(crate) fn skipped(&self, now: Instant) -> Vec<String> {
        if self.until.is_empty() {
            return Vec::new();
        }
        let later = self.until.iter().filter(|(_, until)| **until > now);
        later.map(|(list, _)| list.clone()).collect()
    }

    /// Tries queues again that share their limits with that of an ended job, which may have freed a slot.
    pub(crate) fn unblock(&mut self, now: Instant, same: impl Fn(&str) -> bool) {
        for (list, until) in &mut self.until {
            if same(list) {
                *until = now;
            }
        }
    }

    /// Records the blocked queues that a claim without `skipped` reported.
    pub(crate) fn update(
        &mut self,
        demand: &Demand,
        skipped: &[String],
        held: Vec<(String, Duration)>,
        now: Instant,
    ) {
        if self.until.is_empty() && held.is_empty() {
            return;
        }
        self.until.retain(|list, _| skipped.contains(list));
        for (list, wait) in held {
            self.until.insert(list, now + wait.min(HOLD_MOST));
        }
        demand.hold(self);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn a_list_is_held_until_a_claim_is_told_otherwise() {
        let (demand, mut holds, now) =
            (Demand::default(), BlockedQueues::default(), Instant::now());
        demand.tell(true);
        let waits = |list: &str| demand.wait_for_demand(list).now_or_never().is_none();
        let hold = |list: &str, ms| (list.to_owned(), Duration::from_millis(ms));
        let both = vec![hold("q", 200), hold("q:prio:2", 9000)];
        holds.update(&demand, &[], both, now);
        assert_eq!(holds.skipped(now).len(), 2);
        assert!(waits("q") && !waits("other"));
        assert_eq!(holds.next(), Some(now + Duration::from_millis(200)));
        let later = now + HOLD_MOST;
        assert!(holds.skipped(later).is_empty(), "tried again");
        assert!(waits("q"), "until that was answered");
        holds.update(&demand, &[], vec![hold("q", 200)], later);
        assert!(!waits("q:prio:2"));
        holds.update(&demand, &["q".to_owned()], Vec::new(), later);
        assert_eq!(holds.skipped(later), ["q"], "still left out");
        holds.unblock(later, |list| list == "q");
        assert!(holds.skipped(later).is_empty() && waits("q"));
        holds.update(&demand, &[], Vec::new(), later);
        assert!(!waits("q"));
        assert_eq!(holds.next(), None);
    }
}
