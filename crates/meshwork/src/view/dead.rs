//! Dead letters as JSON.

use std::cmp::Reverse;
use std::collections::HashMap;

use meshwork_broker::DeadLetter;
use meshwork_model::job::FailureGroup;
use meshwork_model::time;
use serde::{Deserialize, Serialize};

use super::JobSummary;

/// Dead letter in a list.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeadLetterView<'a> {
    /// Time of its death (RFC 3339).
    pub died_at: String,
    /// The job.
    #[serde(flatten)]
    pub job: JobSummary<'a>,
}

impl<'a> DeadLetterView<'a> {
    /// Returns a letter in a context, or outside.
    #[must_use]
    pub fn new(letter: &'a DeadLetter, context: Option<u32>) -> Self {
        let job = &letter.job;
        Self {
            died_at: time::iso(letter.at_ms),
            job: JobSummary::new(job, job.state(false), context),
        }
    }
}

/// Dead letters of one type and reason, whose errors differ in numbers, ids and quoted texts alone.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeadGroup {
    /// Name of the group: 16 hexadecimal digits.
    pub fingerprint: String,
    /// Type of the jobs; empty if their records have none.
    #[serde(rename = "type")]
    pub script_type: String,
    /// Reason of the failure.
    pub reason: String,
    /// First line of the error: `#` for numbers and ids, `…` for quoted texts.
    pub error: String,
    /// Number of letters in this part.
    pub count: u64,
    /// Time of the first death (RFC 3339).
    pub first_at: String,
    /// Time of the last death (RFC 3339).
    pub last_at: String,
    /// Id of the letter that died last.
    pub last_id: String,
}

/// Counts dead letters in groups of the same failure.
#[derive(Debug, Default)]
pub struct DeadGroups {
    groups: Vec<DeadGroup>,
    known: HashMap<FailureGroup, usize>,
}

impl DeadGroups {
    /// Adds a letter. The newest have to come first.
    pub fn add(&mut self, letter: &DeadLetter) {
        let (group, at) = (FailureGroup::of(&letter.job), time::iso(letter.at_ms));
        if let Some(known) = self.known.get(&group) {
            let group = &mut self.groups[*known];
            group.count += 1;
            group.first_at = at;
            return;
        }
        self.groups.push(DeadGroup {
            fingerprint: group.fingerprint(),
            script_type: group.script_type.clone(),
            reason: group.reason.clone(),
            error: group.error.clone(),
            count: 1,
            first_at: at.clone(),
            last_at: at,
            last_id: letter.job.id.clone(),
        });
        self.known.insert(group, self.groups.len() - 1);
    }

    /// Returns the groups, the largest first.
    #[must_use]
    pub fn largest_first(mut self) -> Vec<DeadGroup> {
        self.groups.sort_by_key(|group| Reverse(group.count));
        self.groups
    }
}
