//! Each way to break a script turns at least one conformance case red: one trial per mutation,
//! `claim::lease_not_written`. Each says which case noticed; `MESHWORK_MUTATIONS=record` keeps that in the
//! repository, and the next run asks that case first. Those of which it is not kept yet take a minute each: they
//! are tried with `record`, or by name.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use meshwork_testkit::conformance::Engine;
use meshwork_testkit::mutation::noticed::{self, Noticed};
use meshwork_testkit::mutation::{Mutation, all};
use tokio::runtime::Runtime;

/// The engine on which the broken scripts run: the one that is there on every machine.
const ENGINE: Engine = Engine::Embedded;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let record = std::env::var("MESHWORK_MUTATIONS").is_ok_and(|what| what == "record");
    let runtime = Arc::new(Runtime::new().expect("threads can be started"));
    let noticed = Arc::new(Mutex::new(noticed::recorded()));
    let every = record || arguments.filter.is_some();
    let is_known = |mutation: &Mutation| lock(&noticed).contains_key(&mutation.name());
    let trials = all()
        .into_iter()
        .filter(|mutation| every || is_known(mutation))
        .map(|mutation| trial(mutation, Arc::clone(&runtime), Arc::clone(&noticed)))
        .collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    if record {
        let known = all().iter().map(Mutation::name).collect();
        keep(&noticed, &known);
    }
    conclusion.exit_code()
}

/// Those of mutations that are no more are dropped.
fn keep(noticed: &Mutex<Noticed>, known: &BTreeSet<String>) {
    let mut noticed = lock(noticed);
    noticed.retain(|mutation, _| known.contains(mutation));
    noticed::record(&noticed).expect("the list can be written");
}

fn trial(mutation: Mutation, runtime: Arc<Runtime>, noticed: Arc<Mutex<Noticed>>) -> Trial {
    let name = mutation.name();
    Trial::ignorable_test(name.clone(), move || {
        let first = lock(&noticed).get(&name).cloned();
        runtime.block_on(async {
            let failed = |why| Failed::from(&why);
            let place = ENGINE.place(&name).await.map_err(failed)?;
            if place.is_none() {
                return Ok(Completion::ignored_with(format!("no {}", ENGINE.program())));
            }
            drop(place);
            let caught = mutation.run_on(ENGINE, first.as_deref()).await;
            match caught.map_err(failed)? {
                Some(caught) => {
                    // One write, so that lines of trials that run side by side stay whole.
                    let line = format!("{name}: noticed by {}\n", caught.case);
                    std::io::stdout().write_all(line.as_bytes())?;
                    lock(&noticed).insert(name, caught.case);
                    Ok(Completion::Completed)
                }
                None => Err(Failed::from("no case notices")),
            }
        })
    })
}

fn lock(noticed: &Mutex<Noticed>) -> MutexGuard<'_, Noticed> {
    noticed.lock().unwrap_or_else(PoisonError::into_inner)
}
