//! Each way to break a script turns at least one conformance case red: one trial per mutation,
//! `claim::lease_not_written`. Each says which case noticed. A run tries those of which the repository keeps that, and
//! asks that case first; the others, which may take a minute each, are tried by name, or all of those with
//! `MESHWORK_MUTATIONS=record`, which keeps what it finds.

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use meshwork_conformance::cases::Engine;
use meshwork_conformance::mutation::noticed::{self, Noticed};
use meshwork_conformance::mutation::touched::Touched;
use meshwork_conformance::mutation::{Mutation, all};
use meshwork_conformance::trials::{Slowest, at_once};
use tokio::runtime::Runtime;

/// The engine on which the broken scripts run: the one that is there on every machine.
const ENGINE: Engine = Engine::Embedded;

fn main() -> ExitCode {
    let mutations = all().unwrap_or_else(|why| panic!("{why}"));
    let noticed = noticed::recorded().unwrap_or_else(|why| panic!("{why}"));
    let touched = Touched::from_environment().unwrap_or_else(|why| panic!("{why}"));
    // A case that panics has noticed: its backtrace would look like a failure among thousands of lines.
    std::panic::set_hook(Box::new(|_| {}));
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert_with(at_once);
    let record = std::env::var("MESHWORK_MUTATIONS").is_ok_and(|what| what == "record");
    let runtime = Arc::new(Runtime::new().expect("threads can be started"));
    let noticed = Arc::new(Mutex::new(noticed));
    let slowest = Arc::new(Slowest::default());
    let is_known = |mutation: &Mutation| lock(&noticed).contains_key(&mutation.name());
    let is_touched = |mutation: &Mutation| {
        let touched = touched.as_ref();
        touched.is_none_or(|touched| touched.mutations.contains(&mutation.name()))
    };
    let trials = mutations
        .into_iter()
        .filter(is_touched)
        .filter(|mutation| arguments.filter.is_some() || is_known(mutation) != record)
        .map(|mutation| {
            let (runtime, noticed) = (Arc::clone(&runtime), Arc::clone(&noticed));
            trial(mutation, runtime, noticed, Arc::clone(&slowest), record)
        })
        .collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    slowest.say();
    conclusion.exit_code()
}

fn trial(
    mutation: Mutation,
    runtime: Arc<Runtime>,
    noticed: Arc<Mutex<Noticed>>,
    slowest: Arc<Slowest>,
    record: bool,
) -> Trial {
    let name = mutation.name();
    Trial::ignorable_test(name.clone(), move || {
        let first = lock(&noticed).get(&name).cloned();
        let run = async || {
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
                    let mut noticed = lock(&noticed);
                    noticed.insert(name.clone(), caught.case);
                    // At once: such a run takes long, and may be ended.
                    if record {
                        noticed::record(&noticed)?;
                    }
                    Ok(Completion::Completed)
                }
                None => Err(Failed::from("no case notices")),
            }
        };
        slowest.timed(&name, || runtime.block_on(run()))
    })
}

fn lock(noticed: &Mutex<Noticed>) -> MutexGuard<'_, Noticed> {
    noticed.lock().unwrap_or_else(PoisonError::into_inner)
}
