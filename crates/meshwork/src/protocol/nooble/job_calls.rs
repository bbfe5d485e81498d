//! Calls of actions by jobs of other protocols, in the name of the service `meshwork`. All jobs of a worker share one
//! client, and so one connection for replies.

use futures_util::future::BoxFuture;
use meshwork_broker::nooble::Nooble;
use meshwork_model::job::Job;
use meshwork_model::nooble::{Data, ErrorDetail};
use sha2::{Digest, Sha256};
use uuid::{Builder, Uuid};

use super::client::Client;
use super::error::Error;
use super::request::{Ids, Request};
use crate::runtime::{ActionCallError, ActionRequest, CallActions};

/// The service in whose name jobs call: that of `meshwork action call`.
const CALLER: &str = "meshwork";

/// Calls of the jobs of one worker.
pub(crate) struct JobCalls(Client);

impl JobCalls {
    pub(crate) fn new(broker: Nooble) -> Self {
        Self(Client::new(broker, CALLER))
    }
}

impl CallActions for JobCalls {
    fn call<'a>(
        &'a self,
        request: ActionRequest<'a>,
    ) -> BoxFuture<'a, Result<Data, ActionCallError>> {
        Box::pin(async move {
            let wait = request.wait;
            let response = self.0.call(message(&request), wait).await;
            let response = response.map_err(refusal)?;
            match response.error {
                Some(error) => Err(failure(request.action_type, error)),
                None => Ok(response.data.unwrap_or_else(Data::empty)),
            }
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.0.close())
    }
}

/// The message. Its ids follow from the job, except for the correlation id: a reply to an earlier run's call must not be
/// taken for that to this one.
fn message(request: &ActionRequest<'_>) -> Request {
    let job = id_of(request.job, &[]);
    let ids = Ids {
        tenant_id: job.clone(),
        session_id: job.clone(),
        task_id: job.clone(),
        agent_id: job.clone(),
        user_id: None,
        trace_id: job,
    };
    let number = request.number.to_string();
    let parts = [number.as_str(), &request.action_type, request.data.text()];
    let message = Request::with_data(&request.action_type, request.data.clone());
    let message = message.ids(ids).with_action_id(&id_of(request.job, &parts));
    match request.trace {
        Some(trace) => message.trace(trace),
        None => message,
    }
}

/// A UUID that is the same in each run of a job, and for the same call in it. A later job with the same id has another
/// time of creation.
fn id_of(job: &Job, parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    let of_job = [job.id.as_str(), job.created_at.as_str()];
    for part in of_job.iter().chain(parts) {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash.finalize()[..16]);
    let id: Uuid = Builder::from_custom_bytes(bytes).into_uuid();
    id.hyphenated().to_string()
}

fn failure(action_type: String, error: ErrorDetail) -> ActionCallError {
    ActionCallError::Failed {
        action_type,
        error_type: error.error_type,
        code: error.error_code,
        message: error.message,
        details: error.details,
    }
}

fn refusal(error: Error) -> ActionCallError {
    match error {
        Error::NoAnswer {
            action_type,
            waited,
            ..
        } => ActionCallError::NoAnswer {
            action_type,
            waited,
        },
        error => ActionCallError::Refused(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(created_at: &str) -> Job {
        let fields = [("created_at".to_owned(), created_at.as_bytes().to_vec())];
        Job::from_fields("j", fields)
    }

    #[test]
    fn the_id_of_a_call_follows_from_job_number_and_request() {
        let job = |created_at| job(created_at);
        let first = id_of(&job("1"), &["1", "a.b", "{}"]);
        assert_eq!(first, id_of(&job("1"), &["1", "a.b", "{}"]));
        let others = [
            id_of(&job("2"), &["1", "a.b", "{}"]),
            id_of(&job("1"), &["2", "a.b", "{}"]),
            id_of(&job("1"), &["1", "a.c", "{}"]),
            id_of(&job("1"), &["1", "a.b", "{\"a\":1}"]),
            id_of(&job("1"), &[]),
        ];
        assert!(others.iter().all(|other| *other != first), "{others:?}");
        assert_eq!(Uuid::parse_str(&first).unwrap().get_version_num(), 8);
    }
}
