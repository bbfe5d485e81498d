//! Warnings about new jobs and flows. They are accepted, but nobody would run them now: a name may be wrong, or a worker
//! may come later.

use std::collections::{BTreeMap, BTreeSet};

use meshwork::context::ContextId;
use meshwork::flow::{FlowSession, Plan};
use meshwork::{Client, Error, runtime};
use meshwork_model::flow::{Run, Work};
use meshwork_model::name::{Group, ScriptType};
use meshwork_model::route::Route;
use serde::Serialize;

use crate::error::OpError;

/// Returns a warning if no worker runs jobs of this route: of a type that no runtime has, or of a group; with `every`, of each.
///
/// # Errors
/// A call to the server fails.
pub async fn of_job(client: &Client, route: &Route, every: bool) -> Result<Vec<String>, Error> {
    let name = route.script_type.as_str();
    let is_known =
        ScriptType::KNOWN.contains(&name) || runtime::runtimes().any(|known| known == name);
    let is_usual = is_known && route.group.is_none() && !every;
    if is_usual || client.has_worker(route).await? {
        return Ok(Vec::new());
    }
    let keys = client.broker().keys();
    let (group, queue) = (of_group(route.group.as_ref()), route.queue(keys));
    Ok(vec![format!(
        "no worker{group} runs jobs of type `{name}` now; they wait in {} for one",
        keys.queue_name(&queue)
    )])
}

/// Returns the warnings about jobs that are stored, each once. A call to the server that fails gives none.
pub async fn of_stored<'a>(
    client: &Client,
    routes: impl IntoIterator<Item = &'a Route>,
    every: bool,
) -> Vec<String> {
    let mut warnings = BTreeSet::new();
    let names = |route: &&Route| (route.script_type.to_string(), route.group.clone());
    let routes: BTreeMap<_, _> = routes.into_iter().map(|it| (names(&it), it)).collect();
    for route in routes.into_values() {
        warnings.extend(of_job(client, route, every).await.unwrap_or_default());
    }
    warnings.into_iter().collect()
}

/// Answer with warnings.
#[derive(Debug, Serialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "New{T}")
)]
pub struct Warned<T> {
    /// The answer.
    #[serde(flatten)]
    pub answer: T,
    /// Warnings, such as that no worker runs jobs of this type or group now. Missing if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Returns a warning for each type and group of a plan's scripts that no worker of the context runs.
///
/// # Errors
/// A call to the server fails.
pub async fn of_plan(
    place: Option<(&Client, ContextId)>,
    plan: &Plan,
) -> Result<Vec<String>, Error> {
    let mut warnings = Vec::new();
    for ((script_type, group), job) in routes(plan) {
        let mut route = Route::to(ScriptType::foreign(script_type.to_owned()));
        route.group = group.and_then(|group| group.parse().ok());
        let has_worker = match place {
            Some((client, _)) => client.has_worker(&route).await?,
            // There are no workers without a context.
            None => false,
        };
        if !has_worker {
            let group = of_group(route.group.as_ref());
            let context = place.map(|(_, id)| format!(" of context {id}"));
            let context = context.unwrap_or_default();
            warnings.push(format!(
                "no worker{group}{context} runs the type `{script_type}` of job `{job}` now"
            ));
        }
    }
    Ok(warnings)
}

/// Returns the warnings about a flow that was submitted.
///
/// # Errors
/// A call to the server fails.
pub async fn of_flow(
    session: &FlowSession,
    client: &Client,
    plan: &Plan,
) -> Result<Vec<String>, OpError> {
    let id = session.client().context();
    let mut warnings = of_plan(Some((client, id)), plan).await?;
    if !session.has_executor().await? {
        warnings.push(format!(
            "nobody may run jobs of context {id}: give the role with `meshwork context grant {id} executor ACTOR`"
        ));
    }
    Ok(warnings)
}

fn of_group(group: Option<&Group>) -> String {
    let named = group.map(|group| format!(" of the group `{group}`"));
    named.unwrap_or_default()
}

/// Returns the types and groups of a plan's scripts, with those of nested flows; each with one of its jobs.
fn routes(plan: &Plan) -> BTreeMap<(&str, Option<&str>), &str> {
    let mut routes = BTreeMap::new();
    for job in &plan.jobs {
        // Another context has workers of its own.
        if let Work::Run(run @ Run { context: None, .. }) = &job.work {
            let route = (run.script_type.as_str(), run.group.as_deref());
            routes.entry(route).or_insert(job.name.as_str());
        }
    }
    for nested in plan.flows.values() {
        for (route, job) in self::routes(nested) {
            routes.entry(route).or_insert(job);
        }
    }
    routes
}
