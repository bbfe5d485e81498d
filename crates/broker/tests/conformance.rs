//! The conformance suite on every engine: one trial per case, `redis::claim::pops_the_id`.

use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use meshwork_broker::script::Scripts;
use meshwork_testkit::conformance::{Case, Engine, GROUPS, LIMIT};
use tokio::runtime::{Builder, Runtime};

/// The embedded engine works on these, for seconds where a case is heavy, and so do the connections to servers, which
/// must not wait for that: the system shares the processors between them.
const THREADS: usize = 16;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let runtime = Builder::new_multi_thread()
        .worker_threads(THREADS)
        .enable_all()
        .build();
    let runtime = Arc::new(runtime.expect("threads can be started"));
    let mut trials = Vec::new();
    for engine in Engine::ALL
        .into_iter()
        .chain([Engine::Cluster, Engine::Rights])
    {
        // Both are redis-servers: what is heavy for one is tried on that.
        let heavy = Engine::ALL.contains(&engine);
        let groups = GROUPS.iter().filter(|group| heavy || !group.heavy);
        for group in groups {
            for case in group.cases {
                let name = format!("{}::{}::{}", engine.name(), group.name, case.name);
                trials.push(trial(name, engine, case, Arc::clone(&runtime)));
            }
        }
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn trial(name: String, engine: Engine, case: &'static Case, runtime: Arc<Runtime>) -> Trial {
    Trial::ignorable_test(name.clone(), move || {
        runtime.block_on(async {
            let place = engine
                .place(&name)
                .await
                .map_err(|why| Failed::from(&why))?;
            let Some(place) = place else {
                return Ok(Completion::ignored_with(format!("no {}", engine.program())));
            };
            case.run_on(&place, Scripts::default(), LIMIT)
                .await
                .map_err(|why| Failed::from(&why))?;
            Ok(Completion::Completed)
        })
    })
}
