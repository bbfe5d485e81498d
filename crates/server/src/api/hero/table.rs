//! The names of Hero's APIs.

use std::sync::LazyLock;

use meshwork_model::api_key::Scope;

use super::Dialect::{Coordinator, Dispatcher, First, Second, Third};
use super::HeroMethod;
use super::{auth, coordinator, jobs, runners};

/// Parameter that tells the coordinator's methods from those of the table.
const WRAPPED: &[&str] = &["params"];
/// Parameters that tell the second generation's methods from those of the table.
const SECOND: &[&str] = &["secret", "job", "job_id"];

/// The only parameter of many methods.
const ID: &[&str] = &["job_id"];

/// All names, by generation. Generations share names.
pub static HERO: LazyLock<Vec<HeroMethod>> = LazyLock::new(|| {
    let tables = [
        dispatcher(),
        first(),
        logins(),
        second(),
        second_runners(),
        third(),
        of_contexts(),
        works_of_contexts(),
    ];
    tables.into_iter().flatten().collect()
});

/// The dispatcher's operations.
fn dispatcher() -> Vec<HeroMethod> {
    let (viewer, user) = (Some(Scope::Viewer), Some(Scope::User));
    vec![
        HeroMethod::new(
            Dispatcher,
            ("run_job_and_await_result", "`job.run`"),
            user,
            &["job", "worker_id"],
            jobs::run,
        )
        .of_job(),
        HeroMethod::new(
            Dispatcher,
            ("list_jobs", "`job.list`"),
            viewer,
            &[],
            jobs::list_ids,
        ),
        HeroMethod::new(
            Dispatcher,
            ("stop_job", "`job.cancel`"),
            user,
            ID,
            jobs::stop,
        ),
        HeroMethod::new(
            Dispatcher,
            ("get_job_status", "`job.get`"),
            viewer,
            ID,
            jobs::status,
        ),
        HeroMethod::new(
            Dispatcher,
            ("get_job_logs", "`job.logs`"),
            viewer,
            ID,
            jobs::logs,
        ),
    ]
}

/// The jobs of the first generation.
fn first() -> Vec<HeroMethod> {
    let (viewer, user) = (Some(Scope::Viewer), Some(Scope::User));
    let admin = Some(Scope::Admin);
    let job = &["job"][..];
    let script = &["script", "script_type", "prerequisites"][..];
    vec![
        HeroMethod::new(
            First,
            ("create_job", "`job.create`"),
            user,
            job,
            jobs::create,
        )
        .of_job(),
        HeroMethod::new(First, ("start_job", "`job.run_now`"), user, ID, jobs::start),
        HeroMethod::new(First, ("run_job", "`job.run`"), user, script, jobs::run).of_job(),
        HeroMethod::new(First, ("play", "`job.run`"), user, script, jobs::play).of_job(),
        HeroMethod::new(
            First,
            ("get_job_output", "`job.result`"),
            viewer,
            ID,
            jobs::output_of,
        ),
        HeroMethod::new(
            First,
            ("delete_job", "`job.delete`"),
            admin,
            ID,
            jobs::delete,
        ),
        HeroMethod::new(
            First,
            ("clear_all_jobs", "`job.delete`"),
            admin,
            &[],
            jobs::clear,
        ),
    ]
}

/// The logins of the first generation.
fn logins() -> Vec<HeroMethod> {
    vec![
        HeroMethod::new(
            First,
            ("fetch_nonce", "–"),
            None,
            &["pubkey"],
            auth::in_session,
        ),
        HeroMethod::new(
            First,
            ("authenticate", "–"),
            None,
            &["pubkey", "signature", "nonce"],
            auth::in_session,
        ),
        HeroMethod::new(First, ("whoami", "`system.info`"), None, &[], auth::whoami),
    ]
}

/// The jobs of the second generation.
fn second() -> Vec<HeroMethod> {
    let (viewer, user) = (Some(Scope::Viewer), Some(Scope::User));
    let admin = Some(Scope::Admin);
    let job = &["job"][..];
    vec![
        HeroMethod::new(
            Second,
            ("jobs.create", "`job.create`"),
            user,
            job,
            jobs::create,
        )
        .of_job(),
        HeroMethod::new(Second, ("jobs.list", "`job.list`"), viewer, &[], jobs::list),
        HeroMethod::new(
            Second,
            ("job.run", "`job.run`"),
            user,
            job,
            jobs::run_outcome,
        )
        .marked(SECOND)
        .of_job(),
        HeroMethod::new(
            Second,
            ("job.start", "`job.run_now`"),
            user,
            ID,
            jobs::start_silently,
        ),
        HeroMethod::new(
            Second,
            ("job.status", "`job.get`"),
            viewer,
            ID,
            jobs::status_object,
        ),
        HeroMethod::new(
            Second,
            ("job.result", "`job.result`"),
            viewer,
            ID,
            jobs::result_of,
        )
        .marked(SECOND),
        HeroMethod::new(Second, ("job.stop", "`job.cancel`"), user, ID, jobs::stop).marked(SECOND),
        HeroMethod::new(
            Second,
            ("job.delete", "`job.delete`"),
            admin,
            ID,
            jobs::delete,
        )
        .marked(SECOND),
    ]
}

/// The runners and keys of the second generation.
fn second_runners() -> Vec<HeroMethod> {
    let (viewer, admin) = (Some(Scope::Viewer), Some(Scope::Admin));
    let name = &["name"][..];
    vec![
        HeroMethod::new(
            Second,
            ("list_runners", "`worker.list`"),
            viewer,
            &[],
            runners::list,
        ),
        HeroMethod::new(
            Second,
            ("get_runner_status", "`worker.list`"),
            viewer,
            name,
            runners::status,
        ),
        HeroMethod::new(
            Second,
            ("stop_runner", "`worker.stop`"),
            admin,
            name,
            runners::stop,
        ),
        HeroMethod::new(
            Second,
            ("auth.verify", "–"),
            None,
            &["key"],
            auth::in_session,
        ),
        HeroMethod::new(
            Second,
            ("auth.create_key", "`key.create`"),
            admin,
            &["name", "scope"],
            auth::create_key,
        ),
    ]
}

/// The third generation has names of the first one, too.
fn third() -> Vec<HeroMethod> {
    let get = HeroMethod::new(
        Third,
        ("get_job", "`job.get`"),
        Some(Scope::Viewer),
        &["job_id"],
        jobs::get,
    );
    vec![get]
}

/// The coordinator's actors, contexts and runners.
fn of_contexts() -> Vec<HeroMethod> {
    use coordinator as it;

    let (viewer, admin) = (Some(Scope::Viewer), Some(Scope::Admin));
    let registrar = Some(Scope::Registrar);
    wrapped([
        HeroMethod::new(
            Coordinator,
            ("actor.create", "`actor.get`"),
            admin,
            WRAPPED,
            it::create_actor,
        ),
        HeroMethod::new(
            Coordinator,
            ("actor.load", "`actor.get`"),
            viewer,
            WRAPPED,
            it::load_actor,
        ),
        HeroMethod::new(
            Coordinator,
            ("context.create", "`context.get`"),
            admin,
            WRAPPED,
            it::create_context,
        ),
        HeroMethod::new(
            Coordinator,
            ("context.load", "`context.get`"),
            viewer,
            WRAPPED,
            it::load_context,
        ),
        HeroMethod::new(
            Coordinator,
            ("runner.create", "`runner.register`"),
            registrar,
            WRAPPED,
            it::create_runner,
        )
        .unseen(),
        HeroMethod::new(
            Coordinator,
            ("runner.load", "`runner.get`"),
            viewer,
            WRAPPED,
            it::load_runner,
        )
        .unseen(),
    ])
}

/// The coordinator's messages, jobs and flows.
fn works_of_contexts() -> Vec<HeroMethod> {
    use coordinator as it;

    let (viewer, user) = (Some(Scope::Viewer), Some(Scope::User));
    wrapped([
        HeroMethod::new(
            Coordinator,
            ("message.create", "`message.create`"),
            user,
            WRAPPED,
            it::create_message,
        )
        .unseen(),
        HeroMethod::new(
            Coordinator,
            ("message.load", "`message.get`"),
            viewer,
            WRAPPED,
            it::load_message,
        )
        .unseen(),
        HeroMethod::new(
            Coordinator,
            ("job.create", "`job.create`"),
            user,
            WRAPPED,
            it::create_job,
        )
        .unseen(),
        HeroMethod::new(
            Coordinator,
            ("job.load", "`job.get`"),
            viewer,
            WRAPPED,
            it::load_job,
        )
        .unseen(),
        HeroMethod::new(
            Coordinator,
            ("flow.create", "`flow.submit`"),
            user,
            WRAPPED,
            it::create_flow,
        )
        .unseen(),
        HeroMethod::new(
            Coordinator,
            ("flow.load", "`flow.get`"),
            viewer,
            WRAPPED,
            it::load_flow,
        )
        .unseen(),
    ])
}

/// Marks the coordinator's methods by their only parameter.
fn wrapped(methods: impl IntoIterator<Item = HeroMethod>) -> Vec<HeroMethod> {
    methods
        .into_iter()
        .map(|method| method.marked(WRAPPED))
        .collect()
}
