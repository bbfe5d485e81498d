//! Which slots are decided, and what jobs they get.

use super::{ms, schedule, timing};
use crate::batch::Membership;
use crate::job::When;
use crate::schedule::policy::{CatchUp, Overlap};
use crate::schedule::{MAX_SLOTS, MISSED_AFTER_MS, ScheduleError};

const MINUTE: u64 = 60_000;

#[test]
fn a_slot_is_due_from_its_moment_on_and_once() {
    let schedule = schedule(timing("@every 1m", "UTC"));
    let before = schedule.plan(0, MINUTE - 1, MAX_SLOTS);
    assert_eq!(
        (before.slots.len(), before.position, before.next),
        (0, 0, Some(MINUTE))
    );
    let due = schedule.plan(0, MINUTE, MAX_SLOTS);
    assert_eq!(
        (due.slots, due.position, due.next),
        (vec![MINUTE], MINUTE, Some(2 * MINUTE))
    );
    let after = schedule.plan(MINUTE, MINUTE, MAX_SLOTS);
    assert_eq!((after.slots.len(), after.next), (0, Some(2 * MINUTE)));
    // A clock that was set back decides nothing again.
    let back = schedule.plan(5 * MINUTE, MINUTE, MAX_SLOTS);
    assert_eq!(
        (back.slots.len(), back.position, back.next),
        (0, 5 * MINUTE, Some(6 * MINUTE))
    );
}

#[test]
fn missed_slots_are_caught_up_with_as_the_policy_says() {
    let mut schedule = schedule(timing("@every 1m", "UTC"));
    schedule.overlap = Overlap::Allow;
    let now = 1000 * MINUTE + 10;
    let one = schedule.plan(0, now, MAX_SLOTS);
    assert_eq!(
        (one.slots, one.position),
        (vec![1000 * MINUTE], 1000 * MINUTE)
    );
    schedule.catch_up = CatchUp::Skip;
    let skip = schedule.plan(0, now, MAX_SLOTS);
    assert_eq!(skip.slots, [1000 * MINUTE], "this one was not missed");
    schedule.catch_up = CatchUp::All(3);
    let all = schedule.plan(0, now, MAX_SLOTS);
    assert_eq!(all.slots, [998 * MINUTE, 999 * MINUTE, 1000 * MINUTE]);
    assert_eq!(
        (all.position, all.next),
        (1000 * MINUTE, Some(1001 * MINUTE))
    );
}

#[test]
fn a_slot_that_is_late_was_missed() {
    let mut schedule = schedule(timing("@hourly", "UTC"));
    schedule.catch_up = CatchUp::Skip;
    let slot = 60 * MINUTE;
    assert_eq!(
        schedule.plan(0, slot + MISSED_AFTER_MS, MAX_SLOTS).slots,
        [slot]
    );
    let late = schedule.plan(0, slot + MISSED_AFTER_MS + 1, MAX_SLOTS);
    assert_eq!(
        (late.slots.len(), late.position, late.next),
        (0, slot, Some(2 * slot))
    );
}

#[test]
fn many_missed_slots_are_decided_in_parts() {
    let mut schedule = schedule(timing("* * * * *", "UTC"));
    schedule.catch_up = CatchUp::All(250);
    let now = 1000 * MINUTE;
    let (mut position, mut slots) = (0, Vec::new());
    loop {
        let plan = schedule.plan(position, now, 40);
        assert!(plan.slots.len() <= 40);
        position = plan.position;
        slots.extend(plan.slots);
        if plan.next.is_some_and(|next| next > now) {
            break;
        }
    }
    let expected: Vec<_> = (751..=1000).map(|minute| minute * MINUTE).collect();
    assert_eq!(slots, expected);
    assert_eq!(schedule.plan(0, now, 1000).slots.len(), MAX_SLOTS);
    assert_eq!(schedule.plan(0, now, 0).slots.len(), 1);
}

#[test]
fn a_job_goes_by_its_schedule_and_its_slot() {
    let schedule = schedule(timing("@hourly", "UTC"));
    let job = schedule.job_at(ms("2026-03-29T01:00:00Z"));
    assert_eq!(job.id.as_str(), "nightly.20260329T010000Z");
    assert_eq!(job.env_vars["MESHWORK_SLOT"], "2026-03-29T01:00:00.000Z");
    job.check().unwrap();
    let by_hand = schedule.job_as("by-hand", ms("2026-03-29T01:00:00.5Z"));
    assert_eq!(by_hand.id.as_str(), "nightly.by-hand");
    assert_eq!(
        by_hand.env_vars["MESHWORK_SLOT"],
        "2026-03-29T01:00:00.500Z"
    );
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let good = schedule(timing("@hourly", "UTC"));
    good.check().unwrap();
    let mut never = good.clone();
    never.timing.start = Some(ms("2026-01-01T00:00:01Z"));
    never.timing.end = Some(ms("2026-01-01T00:59:59Z"));
    assert!(matches!(never.check(), Err(ScheduleError::NoSlot { .. })));
    let mut one = good.clone();
    one.catch_up = CatchUp::All(2);
    assert!(matches!(one.check(), Err(ScheduleError::OneAtATime { .. })));
    one.overlap = Overlap::Allow;
    one.check().unwrap();
    let mut bad = good.clone();
    bad.job.timeout = 0;
    assert!(matches!(bad.check(), Err(ScheduleError::Job { .. })));
    let mut later = good.clone();
    later.job.when = Some(When::In(5));
    assert!(matches!(later.check(), Err(ScheduleError::When { .. })));
    let mut member = good.clone();
    member.job.batch = Some(Membership {
        batch: "b".parse().unwrap(),
        by: None,
    });
    assert!(matches!(member.check(), Err(ScheduleError::Batch { .. })));
    let mut waits = good;
    waits.job.depends_on.push("a".parse().unwrap());
    assert!(matches!(
        waits.check(),
        Err(ScheduleError::Prerequisites { .. })
    ));
}
