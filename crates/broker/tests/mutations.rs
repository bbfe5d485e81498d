//! Each way to break a script turns at least one conformance case red: one trial per mutation,
//! `claim::lease_not_written`. Each says which case noticed. All of them take the better part of an hour: every
//! twenty-fourth is tried unless `MESHWORK_MUTATIONS=all` or the name of one is said.

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use meshwork_testkit::conformance::Engine;
use meshwork_testkit::mutation::{Mutation, all};
use tokio::runtime::Runtime;

/// The engine on which the broken scripts run: the one that is there on every machine.
const ENGINE: Engine = Engine::Embedded;

/// One of so many is tried in each run of all tests.
const SHARE: usize = 24;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let all_of_them = std::env::var("MESHWORK_MUTATIONS").is_ok_and(|which| which == "all");
    let share = if all_of_them || arguments.filter.is_some() {
        1
    } else {
        SHARE
    };
    let runtime = Arc::new(Runtime::new().expect("threads can be started"));
    let trials = all()
        .into_iter()
        .step_by(share)
        .map(|mutation| trial(mutation, Arc::clone(&runtime)))
        .collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn trial(mutation: Mutation, runtime: Arc<Runtime>) -> Trial {
    let name = format!("{}::{}", mutation.verb.name(), mutation.what);
    Trial::ignorable_test(name.clone(), move || {
        runtime.block_on(async {
            let failed = |why| Failed::from(&why);
            let place = ENGINE.place(&name).await.map_err(failed)?;
            if place.is_none() {
                return Ok(Completion::ignored_with(format!("no {}", ENGINE.program())));
            }
            drop(place);
            match mutation.run_on(ENGINE).await.map_err(failed)? {
                Some(caught) => {
                    // One write, so that lines of trials that run side by side stay whole.
                    let line = format!("{name}: noticed by {}\n", caught.case);
                    std::io::stdout().write_all(line.as_bytes())?;
                    Ok(Completion::Completed)
                }
                None => Err(Failed::from("no case notices")),
            }
        })
    })
}
