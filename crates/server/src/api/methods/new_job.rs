//! New jobs of the API: their ids are those of the context of the call.

use meshwork::JobRequest;
use meshwork_model::name::{JobId, NameError};
use meshwork_model::schedule::zone::Zone;
use meshwork_model::spec::{InvalidSpec, JobSpec, SpecPlace};

use crate::api::{ApiError, Call};

impl From<InvalidSpec> for ApiError {
    fn from(error: InvalidSpec) -> Self {
        Self::invalid(error.to_string())
    }
}

/// Returns the request of a job.
///
/// # Errors
/// If a parameter is wrong, or two exclude each other.
pub(crate) fn request(call: &Call, mut spec: JobSpec) -> Result<JobRequest, ApiError> {
    let Some(script_type) = spec.script_type.take() else {
        return Err(ApiError::invalid("type: give the type of the job"));
    };
    if spec.text()?.is_none() {
        return Err(ApiError::invalid("script: give a script, or a payload"));
    }
    let topic = spec.topic.take().map(|topic| topic.0);
    if topic.is_some() && call.bindings.is_none() {
        let message = "topic: this server has no bindings (`meshwork supervisor --bindings`): give a route, or a group";
        return Err(ApiError::invalid(message));
    }
    let named = |id: &str| id.parse().map_err(|error: NameError| error.to_string());
    let id = |id: &str| match call.entered {
        Some(_) => call.job_id(id).map_err(|error| error.to_string()),
        None => named(id),
    };
    let awaited = |id: &str| match &call.entered {
        Some(it) => Ok::<JobId, _>(it.context.awaited(it.caller.id(), id)),
        None => named(id),
    };
    let place = SpecPlace {
        id: &id,
        awaited: &awaited,
        now_ms: meshwork::host_ms(),
        zone: &Zone::default(),
    };
    let request = JobRequest::new(script_type.0, "").with_spec(spec, &place)?;
    Ok(match &call.bindings {
        Some(bindings) => request.route_by(bindings, topic.as_ref()),
        None => request,
    })
}

/// Returns the request of a job that is a field of other parameters.
///
/// # Errors
/// As for [`request`]; the text begins with the name of that field.
pub(super) fn request_in(call: &Call, field: &str, spec: JobSpec) -> Result<JobRequest, ApiError> {
    request(call, spec).map_err(|error| {
        let message = format!("{field}.{}", error.message);
        ApiError { message, ..error }
    })
}

/// Returns the name of the queue of a job of a spread queue.
pub(super) fn queue_of(spec: &JobSpec) -> String {
    let script_type = spec.script_type.as_ref().map_or("", |it| it.0.as_str());
    match &spec.group {
        Some(group) => format!("{script_type}:group:{}", group.0),
        None => script_type.to_owned(),
    }
}
