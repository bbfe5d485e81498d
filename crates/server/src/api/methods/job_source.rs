//! The method for the script and the input of a job.

use meshwork::view::JobSourceView;
use meshwork_model::api_key::Scope;
use meshwork_ops::job::{IdParams, READ};

use crate::api::call::Call;
use crate::api::error::ApiError;
use crate::api::method::{HttpVerb, Method, Reply};

/// The method.
pub(in crate::api) fn methods() -> Vec<Method> {
    vec![Method::new(
        ("job.source", Scope::Viewer),
        (HttpVerb::Get, "/v1/jobs/{id}/source"),
        "Read the script and the input of a job, and the jobs that it waits for or that wait for it",
        source,
    )]
}

async fn source(call: Call, params: IdParams) -> Result<Reply<JobSourceView<'static>>, ApiError> {
    let (store, id) = params.open(call.store, READ).await?;
    let job = store.client.status(&id).await?;
    Ok(Reply::borrowed(&JobSourceView::new(&job)))
}
