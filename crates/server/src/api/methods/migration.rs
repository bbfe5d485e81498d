//! Methods of migrations from other workers.

use meshwork_model::api_key::Scope;
use schemars::JsonSchema;
use serde::Serialize;

use crate::api::call::Call;
use crate::api::error::ApiError;
use crate::api::method::{HttpVerb, Method, Reply};
use meshwork_ops::Paging;

/// The methods.
pub(in crate::api) fn methods() -> Vec<Method> {
    vec![Method::new(
        ("migration.list", Scope::Viewer),
        (HttpVerb::Get, "/v1/migrations"),
        "List the types that migrate from other workers",
        list,
    )]
}

/// Page of the types that migrate.
#[derive(Debug, Serialize, JsonSchema)]
struct Migrations {
    /// The types, by name.
    types: Vec<MigratingType>,
    /// Cursor of the next page; null after the last one.
    next: Option<String>,
}

/// A type that migrates.
#[derive(Debug, Serialize, JsonSchema)]
struct MigratingType {
    /// Type of the jobs.
    #[serde(rename = "type")]
    script_type: String,
    /// Phase: `dual`, `canonical` or `closing`.
    phase: &'static str,
    /// Old list, to which jobs are pushed besides the queue; `*` for the name of a worker.
    list: String,
    /// Number of ids on it; null if each worker has a list of its own.
    waiting: Option<usize>,
}

async fn list(call: Call, params: Paging) -> Result<Reply<Migrations>, ApiError> {
    let broker = call.client.broker();
    let (page, next) = params.page(broker.migrations().await?)?;
    let mut types = Vec::new();
    for (script_type, migration) in page {
        let list = migration.list;
        let waiting = match list.is_per_worker() {
            true => None,
            false => Some(broker.list_length(list.as_str()).await?),
        };
        types.push(MigratingType {
            script_type,
            phase: migration.phase.as_str(),
            list: list.as_str().to_owned(),
            waiting,
        });
    }
    Ok(Reply::new(&Migrations { types, next }))
}
