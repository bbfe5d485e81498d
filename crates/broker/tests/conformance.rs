//! The conformance suite on every engine: one trial per case, `redis::claim::pops_the_id`.

use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use meshwork_broker::script::Scripts;
use meshwork_conformance::cases::{Case, Engine, GROUPS, LIMIT};
use meshwork_conformance::full_log::refused_scripts;
use meshwork_conformance::mutation::touched::Touched;
use tokio::runtime::{Builder, Runtime};

/// The embedded engine works on these, for seconds where a case is heavy, and so do the connections to servers, which
/// must not wait for that: the system shares the processors between them.
const THREADS: usize = 16;

/// Scripts that a full log refuses in some case, at least: nearly all of them write.
const SCRIPTS_THAT_WRITE: usize = 60;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let runtime = Builder::new_multi_thread()
        .worker_threads(THREADS)
        .enable_all()
        .build();
    let runtime = Arc::new(runtime.expect("threads can be started"));
    let touched = Touched::from_environment().unwrap_or_else(|why| panic!("{why}"));
    let engines = engines();
    let mut trials = Vec::new();
    for engine in Engine::ALL
        .into_iter()
        .chain([Engine::Cluster, Engine::Rights, Engine::FullLog])
        .filter(|engine| engines.is_empty() || engines.iter().any(|name| name == engine.name()))
    {
        // What is heavy is tried on each of the others, which these are.
        let heavy = Engine::ALL.contains(&engine);
        let groups = GROUPS.iter().filter(|group| heavy || !group.heavy);
        for group in groups {
            for case in group.cases {
                let short = format!("{}::{}", group.name, case.name);
                if touched
                    .as_ref()
                    .is_some_and(|touched| !touched.cases.contains(&short))
                {
                    continue;
                }
                let name = format!("{}::{short}", engine.name());
                trials.push(trial(name, engine, case, Arc::clone(&runtime)));
            }
        }
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    let filter = arguments.filter.as_deref().unwrap_or("full-log");
    let all = filter == "full-log"
        && arguments.skip.is_empty()
        && !arguments.list
        && touched.is_none()
        && engines.is_empty();
    let refused = refused_scripts();
    assert!(
        !all || refused >= SCRIPTS_THAT_WRITE,
        "only {refused} scripts met a full log"
    );
    conclusion.exit_code()
}

/// Names the engines to run on, as `redis,embedded`; all of them where it is not set.
const ENGINES: &str = "MESHWORK_ENGINES";

fn engines() -> Vec<String> {
    let named = std::env::var(ENGINES).unwrap_or_default();
    let names = named.split(',').filter(|name| !name.is_empty());
    names.map(str::to_owned).collect()
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
