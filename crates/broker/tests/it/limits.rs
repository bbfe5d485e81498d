//! Limits, rates, turns and pauses under random steps, beside a model that only counts: on every engine. What fails
//! is made as short as it gets, and printed. `MESHWORK_LIMITS_PLANS` says how many plans each engine plays.

use meshwork_conformance::cases::Engine;
use meshwork_conformance::cases::queue::model::{Plan, Rate, Step};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use tokio::runtime::Runtime;

/// Plans that each engine plays where nothing else is said: a few seconds.
const PLANS: u32 = 24;
/// Steps of the longest.
const STEPS: usize = 80;
/// Tries to make one that failed shorter.
const SHRINKS: u32 = 2_000;
/// The shortest time of a rate in milliseconds. The server forgets by its own clock what a rate has let start, so
/// it is far longer than a plan takes.
const LONG: u32 = 60_000;

fn step() -> impl Strategy<Value = Step> {
    let run = any::<u8>();
    let delay = || prop_oneof![3 => Just(0_u16), 1 => 1..20_000_u16];
    prop_oneof![
        8 => (any::<u8>(), delay()).prop_map(|(key, delay)| Step::Enqueue(key, delay)),
        8 => (0..6_u8).prop_map(Step::Claim),
        4 => (run, 0..4_u8).prop_map(|(run, want)| Step::Exchange(run, want)),
        2 => run.prop_map(Step::Finish),
        2 => (run, delay()).prop_map(|(run, delay)| Step::Fail(run, delay)),
        2 => run.prop_map(Step::Release),
        2 => run.prop_map(Step::Kill),
        1 => run.prop_map(Step::Vanish),
        1 => run.prop_map(Step::Cancel),
        1 => run.prop_map(Step::Delete),
        3 => Just(Step::Reclaim),
        4 => Just(Step::Promote),
        4 => (1..30_000_u32).prop_map(Step::Pass),
        2 => (0..4_u8, 0..3_u8, any::<bool>(), prop::bool::weighted(0.1))
            .prop_map(|(all, of_key, fair, paused)| Step::Limit(all, of_key, fair, paused)),
    ]
}

fn rate() -> impl Strategy<Value = Option<Rate>> {
    prop_oneof![
        2 => Just(None),
        1 => (1..4_u32, LONG..2 * LONG).prop_map(|(n, ms)| Some(Rate::Window(n, ms))),
        1 => (1..4_u32, LONG..2 * LONG, 1..4_u32).prop_map(|(n, ms, burst)| Some(Rate::Bucket(n, ms, burst))),
    ]
}

fn plan() -> impl Strategy<Value = Plan> {
    let steps = prop::collection::vec(step(), 1..STEPS);
    (rate(), rate(), steps).prop_map(|(rate, key_rate, steps)| Plan {
        rate,
        key_rate,
        steps,
    })
}

fn hold(engine: Engine) {
    let runtime = Runtime::new().expect("threads can be started");
    let named = std::env::var("MESHWORK_LIMITS_PLANS").ok();
    let cases = named.map_or(PLANS, |n| {
        n.parse().expect("MESHWORK_LIMITS_PLANS is a number")
    });
    let config = Config {
        cases,
        max_shrink_iters: SHRINKS,
        failure_persistence: None,
        ..Config::default()
    };
    // Said once where the engine is missing, not once for each plan.
    let place = runtime.block_on(engine.place("limits"));
    if place.expect("the engine lets us in").is_none() {
        return;
    }
    let play = |plan: Plan| {
        let played = runtime.block_on(async {
            match engine.place("limits").await? {
                Some(place) => plan.run_on(&place).await,
                None => Ok(()),
            }
        });
        played.map_err(|why| TestCaseError::fail(why.to_string()))
    };
    if let Err(why) = TestRunner::new(config).run(&plan(), play) {
        panic!("{} on {}", why, engine.name());
    }
}

#[test]
fn limits_hold_on_the_embedded_engine() {
    hold(Engine::Embedded);
}

#[test]
fn limits_hold_on_redis() {
    hold(Engine::Redis);
}

#[test]
fn limits_hold_on_valkey() {
    hold(Engine::Valkey);
}

#[test]
fn limits_hold_on_a_cluster() {
    hold(Engine::Cluster);
}

#[test]
fn limits_hold_for_a_user_with_few_rights() {
    hold(Engine::Rights);
}
