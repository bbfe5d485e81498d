//! Dead letters in groups of the same failure.

use meshwork::JobFilter;
use meshwork::view::{self, DeadGroup};
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
    let mut groups = view::DeadGroups::default();
    page.letters.iter().for_each(|letter| groups.add(letter));
    let stored = call.client.broker().set_length(JobSet::Dead).await?;
    Ok(Reply::new(&DeadGroups {
        groups: groups.largest_first(),
        looked_at: page.letters.len() as u64,
        stored,
        next: page.next.as_ref().map(ToString::to_string),
    }))
}
