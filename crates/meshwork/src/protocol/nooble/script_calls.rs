//! Actions of scripts: of jobs of other protocols, in the name of the service `meshwork`, and of handlers, in the name of
//! their service. All runs of a worker share one client, and so one connection for replies.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use meshwork_broker::nooble::Nooble;
use meshwork_model::job::Job;
use meshwork_model::nooble::{Action, Data, ErrorDetail, InvalidData};
use sha2::{Digest, Sha256};
use uuid::{Builder, Uuid};

use super::client::Client;
use super::error::Error;
use super::request::{Ids, Request, traceparent};
use meshwork_runtime::{
    ActionCallError, ActionIds, ActionReply, ActionRequest, CallActions, CheckedDelivery,
    ServiceFailure,
};

/// The service in whose name jobs send: that of `meshwork action call`.
const CALLER: &str = "meshwork";

/// Sends the actions of scripts.
pub(crate) struct ScriptCalls {
    client: Client,
    /// The action that the script handles; `None` for jobs.
    handled: Option<Handled>,
}

/// Parts of a handled action that all actions of its handler share.
struct Handled {
    ids: Ids,
    /// Trace and span of the action, as `traceparent`.
    parent: Option<String>,
}

impl ScriptCalls {
    /// Creates the sender for all jobs of a worker.
    pub(crate) fn of_jobs(broker: Nooble) -> Self {
        Self {
            client: Client::new(broker, CALLER),
            handled: None,
        }
    }

    /// Creates the sender for one run of a handler.
    pub(super) fn of_handler(client: &Client, action: &Arc<Action>) -> Self {
        Self {
            client: client.clone(),
            handled: Some(Handled {
                ids: Ids::of(action),
                parent: traceparent(action),
            }),
        }
    }

    /// Returns the message. The task, tenant and trace are those of the handled action, or follow from the job. The id of
    /// the message is the same in each run, so a service can recognize a repetition. The correlation id of a call is new
    /// in each run: a reply to an earlier run's call must not be taken for that to this one.
    fn message(&self, request: &ActionRequest<'_>) -> Result<Request, InvalidData> {
        let number = request.number.to_string();
        let parts = [number.as_str(), &request.action_type, request.data.text()];
        let message = Request::with_data(&request.action_type, request.data.clone());
        let message = message.with_action_id(&id_of(request.job, &parts));
        if let Some(handled) = &self.handled {
            let message = message.ids(handled.ids.clone());
            return message.parent(handled.parent.as_deref());
        }
        let job = id_of(request.job, &[]);
        let message = message.ids(Ids {
            tenant_id: job.clone(),
            session_id: job.clone(),
            task_id: job.clone(),
            agent_id: job.clone(),
            user_id: None,
            trace_id: job,
        });
        Ok(match request.trace {
            Some(trace) => message.trace(trace),
            None => message,
        })
    }

    async fn send(&self, request: ActionRequest<'_>) -> Result<ActionReply, ActionCallError> {
        let message = self
            .message(&request)
            .map_err(|error| refusal(error.into()))?;
        let mut ids = ids_of(&message.action);
        let json = match request.delivery {
            CheckedDelivery::Call(wait) => {
                let response = self.client.call(message, wait).await.map_err(refusal)?;
                ids.correlation_id = Some(response.correlation_id);
                match response.error {
                    Some(error) => return Err(failure(request.action_type, error, ids)),
                    None => response.data.unwrap_or_else(Data::empty).text().to_owned(),
                }
            }
            CheckedDelivery::Send(None) => {
                self.client.send(message).await.map_err(refusal)?;
                text(&ids.action_id)
            }
            CheckedDelivery::Send(Some(callback)) => {
                // Repeated runs share the record of the request, so its callback is handled once.
                let parts = [ids.action_id.as_str(), &callback.event];
                let message = message.correlation_id(&id_of(request.job, &parts));
                let sent =
                    self.client
                        .send_with_callback(message, &callback.event, &callback.remember);
                let id = sent.await.map_err(refusal)?;
                let json = text(&id);
                ids.correlation_id = Some(id);
                json
            }
            CheckedDelivery::Notify => {
                let heard = self.client.notify(&request.action_type, message).await;
                heard.map_err(refusal)?.to_string()
            }
        };
        Ok(ActionReply { json, ids })
    }
}

impl CallActions for ScriptCalls {
    fn call<'a>(
        &'a self,
        request: ActionRequest<'a>,
    ) -> BoxFuture<'a, Result<ActionReply, ActionCallError>> {
        Box::pin(self.send(request))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.client.close()
    }
}

fn ids_of(action: &Action) -> ActionIds {
    ActionIds::new(
        action.action_id.clone(),
        action.trace_id.clone(),
        action.task_id.clone(),
    )
}

/// Returns a text as JSON.
fn text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Returns a UUID that is the same in each run of a job, and for the same action in it. A later job with the same id has another
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

fn failure(action_type: String, error: ErrorDetail, ids: ActionIds) -> ActionCallError {
    ActionCallError::Failed {
        action_type,
        failure: Box::new(ServiceFailure { error, ids }),
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
