//! A connection that fails before or after each single command of a few jobs' lives, once or several
//! times in a row: no job is lost, none ends twice, and what is counted is what happened. One trial per
//! engine, moment and number of failures: `redis::after::once`.

mod life;

use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use meshwork_conformance::cases::Engine;
use meshwork_conformance::faulty::{Moment, Plan};
use meshwork_conformance::trials::{Slowest, at_once};
use tokio::runtime::Runtime;

/// Failures in a row. A job may lose four workers, and each failed claim is a worker lost to it.
const TIMES: [(&str, usize); 2] = [("once", 1), ("thrice", 3)];

/// Commands in all lives together, at least: eleven verbs, each of which is first refused since the server
/// does not know its script, then sent whole, then repeated, and some of which are called several times.
const FEWEST: usize = 60;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert_with(at_once);
    let runtime = Arc::new(Runtime::new().expect("threads can be started"));
    let slowest = Arc::new(Slowest::default());
    let mut trials = Vec::new();
    for engine in Engine::ALL {
        for (when, moment) in [("before", Moment::Before), ("after", Moment::After)] {
            for (often, times) in TIMES {
                let name = format!("{}::{when}::{often}", engine.name());
                let (runtime, slowest) = (Arc::clone(&runtime), Arc::clone(&slowest));
                trials.push(trial(name, engine, moment, times, runtime, slowest));
            }
        }
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    slowest.say();
    conclusion.exit_code()
}

fn trial(
    name: String,
    engine: Engine,
    moment: Moment,
    times: usize,
    runtime: Arc<Runtime>,
    slowest: Arc<Slowest>,
) -> Trial {
    Trial::ignorable_test(name.clone(), move || {
        let run = async || {
            let mut first = 0;
            loop {
                let place = engine.place(&name).await;
                let Some(place) = place.map_err(|why| Failed::from(&why))? else {
                    return Ok(Completion::ignored_with(format!("no {}", engine.program())));
                };
                let plan = Plan {
                    first,
                    times,
                    moment,
                };
                let broken = life::run(place.conn().clone(), plan)
                    .await
                    .map_err(|why| Failed::from(format!("command {first}: {why}")))?;
                if broken == 0 {
                    // The whole life was over before: each of its commands has met a failure.
                    assert!(first > FEWEST, "a life of {first} commands only");
                    return Ok(Completion::Completed);
                }
                first += 1;
            }
        };
        slowest.timed(&name, || runtime.block_on(run()))
    })
}
