//! The conformance suite on every engine: one trial per case, `redis::claim::pops_the_id`.

use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use meshwork_broker::script::Scripts;
use meshwork_conformance::cases::{Bounds, Case, Engine, GROUPS, Group};
use meshwork_conformance::full_log::refused_scripts;
use meshwork_conformance::mutation::touched::Touched;
use meshwork_conformance::trials::{Slowest, at_once};
use tokio::runtime::{Builder, Runtime};

/// The embedded engine works on these, for seconds where a case is heavy, and so do the connections to servers, which
/// must not wait for that: the system shares the processors between them.
const THREADS: usize = 16;

/// Scripts that a full log refuses in some case, at least: nearly all of them write.
const SCRIPTS_THAT_WRITE: usize = 60;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert_with(at_once);
    let runtime = Builder::new_multi_thread()
        .worker_threads(THREADS)
        .enable_all()
        .build();
    let shared = Shared {
        runtime: runtime.expect("threads can be started"),
        slowest: Slowest::default(),
    };
    let shared = Arc::new(shared);
    let touched = Touched::from_environment().unwrap_or_else(|why| panic!("{why}"));
    let named = named_engines().unwrap_or_else(|why| panic!("{why}"));
    let engines = named.as_deref().unwrap_or(&USUAL);
    let mut trials = Vec::new();
    for &engine in engines {
        let heavy = engine.takes_heavy();
        let beside = engine.has_others_beside();
        let fits = |group: &&Group| (heavy || !group.heavy) && (beside || !group.beside);
        let groups = GROUPS.iter().filter(fits);
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
                trials.push(trial(name, engine, group, case, Arc::clone(&shared)));
            }
        }
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    shared.slowest.say();
    let filter = arguments.filter.as_deref().unwrap_or("full-log");
    let all = filter == "full-log"
        && arguments.skip.is_empty()
        && !arguments.list
        && touched.is_none()
        && engines.contains(&Engine::FullLog);
    let refused = refused_scripts();
    assert!(
        !all || refused >= SCRIPTS_THAT_WRITE,
        "only {refused} scripts met a full log"
    );
    conclusion.exit_code()
}

/// The engines of a usual run: three for each case, and the full disk.
const USUAL: [Engine; 4] = [
    Engine::Redis,
    Engine::Valkey,
    Engine::Embedded,
    Engine::FullLog,
];

/// Names the engines to run on, as `redis,embedded`, or `all` there are. The usual ones where it is not set.
const ENGINES: &str = "MESHWORK_ENGINES";

fn named_engines() -> Result<Option<Vec<Engine>>, String> {
    let named = std::env::var(ENGINES).unwrap_or_default();
    if named.is_empty() {
        return Ok(None);
    }
    if named == "all" {
        return Ok(Some(Engine::EVERY.to_vec()));
    }
    let engine = |name: &str| {
        let mut every = Engine::EVERY.into_iter();
        let found = every.find(|engine| engine.name() == name);
        let known = || Engine::EVERY.map(Engine::name).join(", ");
        found.ok_or_else(|| format!("{ENGINES} names `{name}`: use all, or some of {}", known()))
    };
    named
        .split(',')
        .map(engine)
        .collect::<Result<_, _>>()
        .map(Some)
}

/// State that all trials share.
struct Shared {
    runtime: Runtime,
    slowest: Slowest,
}

fn trial(
    name: String,
    engine: Engine,
    group: &'static Group,
    case: &'static Case,
    shared: Arc<Shared>,
) -> Trial {
    let bounds = Bounds::of(group.heavy, engine);
    let run = async move |name: &str| {
        let place = engine.place(name).await;
        let Some(place) = place.map_err(|why| Failed::from(&why))? else {
            return Ok(Completion::ignored_with(format!("no {}", engine.program())));
        };
        let outcome = case.run_on(&place, Scripts::default(), bounds).await;
        outcome.map_err(|why| Failed::from(&why))?;
        Ok(Completion::Completed)
    };
    Trial::ignorable_test(name.clone(), move || {
        let work = || shared.runtime.block_on(run(&name));
        shared.slowest.timed(&name, work)
    })
}
