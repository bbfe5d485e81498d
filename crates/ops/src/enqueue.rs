//! Many new jobs in one call, each with its outcome.

use meshwork::{Client, Enqueued, Error};
use meshwork_model::job::NewJob;
use serde::{Deserialize, Serialize};

/// Outcome of a new job among others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NewJobOutcome {
    /// Its id.
    pub id: String,
    /// `stored`; `exists`: the same job was stored before; `kept`: a job with its unique name was; or why it was refused:
    /// `full`, `draining`, `large`, `unknown`, `refused`, `not_in_batch` or `elsewhere`.
    pub result: String,
    /// The job that was kept, or that is the reason of a refusal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other: Option<String>,
    /// The reason of a refusal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl NewJobOutcome {
    /// Returns true if the call has stored it.
    #[must_use]
    pub fn is_stored(&self) -> bool {
        self.result == word(&Enqueued::Stored)
    }
}

/// Enqueues jobs, and returns the outcome of each, in their order.
///
/// # Errors
/// A call to the server fails: none of them is stored, or all that are not refused. Repeat it with the same ids.
pub async fn enqueue_many(client: &Client, jobs: &[NewJob]) -> Result<Vec<NewJobOutcome>, Error> {
    let answers = client.try_enqueue_built(jobs).await?;
    let mut outcomes = Vec::with_capacity(jobs.len());
    for (job, answer) in jobs.iter().zip(&answers) {
        let refusal = match answer {
            Enqueued::Stored | Enqueued::Exists | Enqueued::Kept(_) => None,
            _ => client.rejection(job, answer).await?,
        };
        let other = match answer {
            Enqueued::Kept(id) | Enqueued::Taken(id) | Enqueued::Unknown(id) => Some(id),
            _ => None,
        };
        outcomes.push(NewJobOutcome {
            id: job.id.to_string(),
            result: word(answer).to_owned(),
            other: other.map(ToString::to_string),
            error: refusal.map(|refusal| refusal.to_string()),
        });
    }
    Ok(outcomes)
}

fn word(answer: &Enqueued) -> &'static str {
    match answer {
        Enqueued::Stored => "stored",
        Enqueued::Exists => "exists",
        Enqueued::Full => "full",
        Enqueued::Draining => "draining",
        Enqueued::Large(_) => "large",
        Enqueued::Unknown(_) => "unknown",
        Enqueued::Kept(_) => "kept",
        Enqueued::Taken(_) => "refused",
        Enqueued::NotInBatch(_) => "not_in_batch",
        // Answers about jobs of spread queues.
        Enqueued::Stale(_) | Enqueued::Elsewhere => "elsewhere",
    }
}
