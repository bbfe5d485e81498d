//! Dead letters in groups of the same failure.

use std::collections::HashMap;

use meshwork::model::job::FailureGroup;
use meshwork::model::time;
use meshwork::{DeadLetter, JobFilter};
use meshwork_broker::JobSet;
use meshwork_model::api_key::Scope;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::dead;
use super::job::READ;
use crate::api::call::Call;
use crate::api::error::ApiError;
use crate::api::method::{HttpVerb, Method, Reply};

/// The methods.
pub(in crate::api) fn methods() -> Vec<Method> {
    vec![Method::new(
        ("dead.groups", Scope::Viewer),
        (HttpVerb::Get, "/v1/dead_groups"),
        "Group the next 1,000 dead letters by their failures, the newest first",
        groups,
    )]
}

/// A part of the dead letters.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "DeadGroupsParams")]
struct GroupsParams {
    /// Context of the jobs; none for jobs outside contexts.
    context: Option<u32>,
    /// `next` of the part before.
    cursor: Option<String>,
}

/// Dead letters of one type and reason, whose errors differ in numbers, ids and quoted texts alone.
#[derive(Debug, Serialize, JsonSchema)]
struct DeadGroup {
    /// Name of the group: 16 hexadecimal digits.
    fingerprint: String,
    /// Type of the jobs; empty if their records have none.
    #[serde(rename = "type")]
    script_type: String,
    /// Reason of the failure.
    reason: String,
    /// First line of the error: `#` for numbers and ids, `…` for quoted texts.
    error: String,
    /// Number of letters in this part.
    count: u64,
    /// Time of the first death (RFC 3339).
    first_at: String,
    /// Time of the last death (RFC 3339).
    last_at: String,
    /// Id of the letter that died last.
    last_id: String,
}

/// A part of the dead letters, in groups.
#[derive(Debug, Serialize, JsonSchema)]
struct DeadGroups {
    /// The groups, the largest first.
    groups: Vec<DeadGroup>,
    /// Number of letters that were looked at.
    looked_at: u64,
    /// Number of all letters.
    stored: u64,
    /// Cursor of the next part; null after the last one.
    next: Option<String>,
}

async fn groups(call: Call, params: GroupsParams) -> Result<Reply<DeadGroups>, ApiError> {
    let call = call.enter(params.context, READ).await?;
    let cursor = params.cursor.as_deref().map(dead::read).transpose()?;
    let all = JobFilter::default();
    let page = call.client.dead_letters(&all, cursor.as_ref()).await?;
    let stored = call.client.broker().set_length(JobSet::Dead).await?;
    Ok(Reply::new(&DeadGroups {
        groups: grouped(&page.letters),
        looked_at: page.letters.len() as u64,
        stored,
        next: page.next.as_ref().map(ToString::to_string),
    }))
}

/// Counts letters, which come with the newest first.
fn grouped(letters: &[DeadLetter]) -> Vec<DeadGroup> {
    let mut groups: Vec<DeadGroup> = Vec::new();
    let mut known: HashMap<FailureGroup, usize> = HashMap::new();
    for letter in letters {
        let group = FailureGroup::of(&letter.job);
        let at = time::iso(letter.at_ms);
        if let Some(known) = known.get(&group) {
            let group = &mut groups[*known];
            group.count += 1;
            group.first_at = at;
            continue;
        }
        groups.push(DeadGroup {
            fingerprint: group.fingerprint(),
            script_type: group.script_type.clone(),
            reason: group.reason.clone(),
            error: group.error.clone(),
            count: 1,
            first_at: at.clone(),
            last_at: at,
            last_id: letter.job.id.clone(),
        });
        known.insert(group, groups.len() - 1);
    }
    groups.sort_by_key(|group| std::cmp::Reverse(group.count));
    groups
}
