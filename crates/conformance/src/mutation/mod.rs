//! Scripts broken on purpose, one line at a time. The conformance suite must notice each: a change of a
//! script that no case notices is one that nobody would notice when it is made by mistake.

mod asked;
mod bananas;
mod batches;
mod children;
mod claim;
mod common;
mod control;
mod duties;
mod ends;
mod foreign;
mod keys;
mod later;
mod migrate;
mod nooble;
pub mod noticed;
mod returns;
mod schedules;
mod settings;
mod slots;
mod starts;
pub mod touched;
mod waits;
mod wishes;

use std::time::Duration;

use meshwork_broker::script::{Schema, Scripts, Verb};

use crate::cases::{Case, Engine, Failure, GROUPS, Group};

/// A case that a broken script keeps busy for longer has noticed it; none of those that are asked takes a tenth of it.
const PATIENCE: Duration = Duration::from_secs(60);

/// One way to break one script.
#[derive(Debug, Clone, Copy)]
pub struct Mutation {
    /// Whose script.
    pub verb: Verb,
    /// What is wrong with it then.
    pub what: &'static str,
    find: &'static str,
    replace: &'static str,
    /// The files whose cases are tried first.
    near: &'static [&'static str],
}

/// What is wrong, the text that occurs once in the script, and what stands there instead.
type Change = (&'static str, &'static str, &'static str);

/// Which case noticed, and what it said.
#[derive(Debug)]
pub struct Caught {
    /// The case, as `claim::pops_the_id`.
    pub case: String,
    /// What it found wrong.
    pub failure: Failure,
}

/// All mutations, in the order of a job's life.
#[must_use]
pub fn all() -> Vec<Mutation> {
    let lists: &[(Verb, &[Change])] = &[
        (Verb::Enqueue, common::TIMES),
        (Verb::Claim, common::CLOCK),
        (Verb::Renew, common::CLOCK),
        (Verb::Reclaim, common::CLOCK),
        (Verb::Promote, common::CLOCK),
        (Verb::Finish, common::REPLY),
        (Verb::Fail, common::EVENTS),
        (Verb::Enqueue, starts::ENQUEUE),
        (Verb::Enqueue, starts::ENQUEUE_LIMITS),
        (Verb::Enqueue, starts::ENQUEUE_FALLBACK),
        (Verb::Submit, children::SUBMIT),
        (Verb::Renew, starts::RENEW),
        (Verb::Claim, claim::CLAIM),
        (Verb::Claim, foreign::UNREADABLE),
        (Verb::Claim, claim::CLAIM_ORDER),
        (Verb::Claim, waits::FOREIGN),
        (Verb::Enqueue, waits::HOLD),
        (Verb::Enqueue, waits::DOUBLE),
        (Verb::Finish, ends::FINISH),
        (Verb::Fail, ends::FAIL),
        (Verb::Cancel, asked::CANCEL),
        (Verb::Retry, asked::RETRY),
        (Verb::Delete, asked::DELETE),
        (Verb::Release, returns::RELEASE),
        (Verb::Reclaim, returns::RECLAIM),
        (Verb::Reclaim, returns::RECLAIM_FEEDS),
        (Verb::Orphan, returns::ORPHAN),
        (Verb::Leave, returns::LEAVE),
        (Verb::Promote, later::PROMOTE),
        (Verb::Settle, later::SETTLE),
        (Verb::Finish, later::ENDS),
        (Verb::Finish, later::OWE),
        (Verb::Finish, later::ADVANCE),
        (Verb::Settle, later::ADVANCE),
        (Verb::Fail, later::ADVANCE_FAILED),
        (Verb::Migrate, migrate::MIGRATE),
        (Verb::Prune, duties::PRUNE),
        (Verb::Control, control::CONTROL),
        (Verb::Present, control::PRESENT),
        (Verb::Log, control::LOG),
        (Verb::Configure, settings::CONFIGURE),
        (Verb::Configure, settings::SEAT),
        (Verb::Configure, settings::WALK),
        (Verb::RunNow, settings::RUN_NOW),
        (Verb::Schedule, schedules::SCHEDULE),
        (Verb::Due, schedules::DUE),
        (Verb::Tick, schedules::TICK),
    ];
    let far = lists
        .iter()
        .map(|(verb, changes)| (*verb, *changes, &[][..]));
    far.chain(wished().iter().copied())
        .chain(bananas::ALL.iter().copied())
        .chain(nooble::ALL.iter().copied())
        .flat_map(|(verb, changes, near)| {
            let mutation = move |(what, find, replace): &Change| Mutation {
                verb,
                what,
                find,
                replace,
                near,
            };
            changes.iter().map(mutation)
        })
        .collect()
}

/// The files whose cases notice most of what is wrong with batches.
const BATCHES: &[&str] = &["batches", "batch_ends", "batch_lists"];

/// The files whose cases notice most of what is wrong with the rescue of orphans.
const RESCUE: &[&str] = &["watch", "adopt", "rescue", "rescue_foreign", "sweep"];

/// Those of what jobs may wish for and queues be set to, each with the files whose cases notice most of them.
fn wished() -> &'static [(Verb, &'static [Change], &'static [&'static str])] {
    &[
        (Verb::Watch, duties::WATCH, RESCUE),
        (Verb::Adopt, duties::ADOPT, RESCUE),
        (Verb::Claim, claim::CLAIM_LOCKS, &["defer", "locks"]),
        (Verb::Finish, batches::COUNTED, BATCHES),
        (Verb::Exchange, batches::COUNTED_TOGETHER, BATCHES),
        (Verb::Fail, batches::COUNTED_FAILED, BATCHES),
        (Verb::Enqueue, batches::JOIN, BATCHES),
        (Verb::OpenBatch, batches::OPEN, BATCHES),
        (Verb::SealBatch, batches::SEAL, BATCHES),
        (Verb::CancelBatch, batches::CANCEL, BATCHES),
        (Verb::TendBatches, batches::TEND, BATCHES),
        (Verb::Retry, batches::RETRY, BATCHES),
        (Verb::Delete, batches::DELETE, BATCHES),
        (Verb::Watch, batches::WATCH, BATCHES),
        (
            Verb::Enqueue,
            wishes::DELAYS,
            &["delays", "pause", "keys", "limits", "figures"],
        ),
        (Verb::Enqueue, wishes::UNIQUE, &["unique"]),
        (Verb::Finish, wishes::DELAYED, &["delays", "keys"]),
        (Verb::Finish, wishes::UNCLAIM, &["unique"]),
        (Verb::Claim, wishes::STARTED, &["unique"]),
        (Verb::Claim, wishes::CLAIMED, &["figures"]),
        (
            Verb::Retry,
            wishes::RETRY,
            &["records", "unique", "keys", "figures"],
        ),
        (Verb::Tick, schedules::SLOTS_TOLD, &["figures", "stats"]),
        (Verb::Exchange, wishes::SHARED, &["shared_events"]),
        (Verb::Enqueue, wishes::NOTES, &["shared_events"]),
        (Verb::Claim, wishes::BLANKS, &["shared_events"]),
        (Verb::Finish, wishes::FIGURES, &["figures", "shared_events"]),
        (Verb::Exchange, wishes::FINISH, &["exchange", "slots"]),
        (Verb::Cancel, wishes::STOPPED, &["figures"]),
        (Verb::Fail, wishes::FAILED, &["figures"]),
        (Verb::Exchange, wishes::EXCHANGE, &["exchange", "figures"]),
        (Verb::Reclaim, wishes::RECLAIM, &["figures"]),
        (Verb::Release, wishes::RELEASE, &["figures"]),
        (Verb::Watch, wishes::WATCH, &["figures"]),
        (Verb::Claim, slots::SETTINGS, &["slots", "pause"]),
        (Verb::Claim, slots::RATES, &["rates", "pause"]),
        (Verb::Claim, slots::SLOTS, &["slots"]),
        (
            Verb::Claim,
            slots::GATE,
            &["pause", "rates", "slots", "keys"],
        ),
        (
            Verb::Claim,
            slots::CLAIM,
            &["slots", "keys", "pause", "figures", "records"],
        ),
        (Verb::Enqueue, keys::KEYED, &["keys"]),
        (Verb::Cancel, keys::STRIKE, &["keys"]),
        (Verb::Finish, keys::UNLEASE, &["slots", "keys"]),
        (
            Verb::Promote,
            keys::RECHECK,
            &["keys", "rates", "slots", "delays"],
        ),
        (Verb::Cancel, keys::CANCEL, &["slots", "keys"]),
        (Verb::Delete, keys::DELETE, &["slots", "keys", "unique"]),
        (Verb::Reclaim, keys::RECLAIM, &["slots"]),
        (Verb::Release, keys::RELEASE, &["slots"]),
        (Verb::Fail, keys::FAIL, &["slots", "figures"]),
    ]
}

impl Mutation {
    /// As `claim::lease_not_written`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}::{}", self.verb.name(), self.what)
    }

    /// The scripts with this one broken.
    ///
    /// # Errors
    /// When the text to be replaced does not occur exactly once: the script has changed, and the
    /// mutation is to change with it.
    pub fn scripts(&self) -> Result<Scripts, Failure> {
        let times = self.verb.source().matches(self.find).count();
        if times != 1 {
            let verb = self.verb.name();
            let what = format!("`{}` occurs {times} times in {verb}.lua", self.find);
            return Err(Failure::new(what));
        }
        Ok(Scripts::altered(|verb, source| {
            if verb == self.verb {
                source.replace(self.find, self.replace)
            } else {
                source
            }
        }))
    }

    /// Runs the suite with the broken script until a case notices, the case called `first` before all others.
    /// `None`: none did.
    ///
    /// # Errors
    /// When the script cannot be broken, or the engine is not there.
    pub async fn run_on(
        &self,
        engine: Engine,
        first: Option<&str>,
    ) -> Result<Option<Caught>, Failure> {
        let scripts = self.scripts()?;
        let mut cases: Vec<_> = self.cases().collect();
        cases.sort_by_key(|(group, case)| Some(case_name(group, case).as_str()) != first);
        for (group, case) in cases {
            let place = engine.place(self.what).await?;
            let place = place.ok_or_else(|| Failure::new(format!("no {}", engine.program())))?;
            if let Err(failure) = case.run_on(&place, scripts.clone(), PATIENCE).await {
                return Ok(Some(Caught {
                    case: case_name(group, case),
                    failure,
                }));
            }
        }
        Ok(None)
    }

    /// The cases that are not heavy, the likeliest to notice first: those that are said to, those of the broken
    /// verb, then those that go across verbs.
    fn cases(&self) -> impl Iterator<Item = (&'static Group, &'static Case)> {
        let (own, near) = (self.verb.name(), self.near);
        let of_a_verb = |group: &Group| Verb::ALL.iter().any(|verb| verb.name() == group.name);
        // What is about one wire only those cases notice that are about it too.
        let kin = move |group: &Group| {
            let of = |beginning| group.name.starts_with(beginning);
            let schema = match () {
                () if of("bananas_") => Schema::Bananas,
                () if of("nooble_") => Schema::Nooble,
                () => Schema::Hero,
            };
            schema == self.verb.schema()
        };
        let rank = move |group: &&Group| match near.iter().position(|name| *name == group.name) {
            Some(at) => at,
            None if !kin(group) => near.len() + 3,
            None if group.name == own => near.len(),
            None if !of_a_verb(group) => near.len() + 1,
            None => near.len() + 2,
        };
        let mut light: Vec<_> = GROUPS.iter().filter(|group| !group.heavy).collect();
        light.sort_by_key(rank);
        light
            .into_iter()
            .flat_map(|group| group.cases.iter().map(move |case| (group, case)))
    }
}

fn case_name(group: &Group, case: &Case) -> String {
    format!("{}::{}", group.name, case.name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// A script that has changed under its mutation, or two that share a name, are told in a second.
    #[test]
    fn what_is_recorded_is_there() {
        let names: BTreeSet<_> = all().iter().map(Mutation::name).collect();
        let gone = noticed::recorded()
            .into_keys()
            .filter(|mutation| !names.contains(mutation))
            .collect::<Vec<_>>();
        assert!(gone.is_empty(), "these stand in noticed.txt only: {gone:?}");
    }

    #[test]
    fn each_has_a_name_of_its_own_and_a_text_to_break() {
        let (mut names, mut wrong) = (BTreeSet::new(), Vec::new());
        for mutation in all() {
            assert!(names.insert(mutation.name()), "{} twice", mutation.name());
            wrong.extend(mutation.scripts().err().map(|why| why.to_string()));
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
