//! Dead letters as JSON.

use meshwork_broker::DeadLetter;
use meshwork_model::time;
use serde::Serialize;

use super::JobSummary;

/// Dead letter in a list.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeadLetterView<'a> {
    /// Time of its death (RFC 3339).
    pub died_at: String,
    /// The job.
    #[serde(flatten)]
    pub job: JobSummary<'a>,
}

impl<'a> From<&'a DeadLetter> for DeadLetterView<'a> {
    fn from(letter: &'a DeadLetter) -> Self {
        Self {
            died_at: time::iso(letter.at_ms),
            job: JobSummary::from(&letter.job),
        }
    }
}
