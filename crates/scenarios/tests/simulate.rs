//! Schedules of the simulation in each check. `cargo xtask simulate` runs a million.

#![allow(clippy::unwrap_used, reason = "a failed test panics")]

use meshwork_scenarios::simulate::simulate;

/// Number of schedules in a check.
const SCHEDULES: u64 = 2_000;

#[test]
fn the_rules_of_the_exchange_hold_on_random_schedules() {
    let report = simulate(1, SCHEDULES).unwrap();
    assert_eq!(report.schedules, SCHEDULES);
    // The weather lets some arrive, and others not.
    for outcome in ["processed", "refused", "not_delivered", "result_unknown"] {
        let many = report.outcomes.get(outcome).copied().unwrap_or_default();
        assert!(many > SCHEDULES / 50, "{outcome}: {report:?}");
    }
    assert!(!report.outcomes.contains_key("none"), "{report:?}");
}

#[test]
fn a_seed_repeats_its_schedule() {
    assert_eq!(simulate(7, 20).unwrap(), simulate(7, 20).unwrap());
}
