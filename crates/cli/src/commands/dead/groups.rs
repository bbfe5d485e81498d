//! Dead letters in groups of the same failure, for `meshwork dead list --groups`.

use std::collections::HashMap;

use meshwork::model::job::FailureGroup;
use meshwork::model::time;
use meshwork::{Client, JobFilter};
use serde::Serialize;

use crate::error::CommandError;
use crate::out::{Column, Row, note};

/// Greatest number of letters that are grouped.
const MOST: usize = 100_000;

/// Letters of one type and reason, whose errors differ in numbers, ids and quoted texts alone.
#[derive(Debug, Serialize)]
pub(super) struct Group {
    fingerprint: String,
    #[serde(rename = "type")]
    script_type: String,
    reason: String,
    error: String,
    count: u64,
    first_at: String,
    last_at: String,
    last_id: String,
}

impl Row for Group {
    fn columns() -> Vec<Column> {
        let names = [
            "count", "type", "reason", "first", "last", "last job", "error",
        ];
        Column::named(names, &["count"])
    }

    fn optional() -> &'static [&'static str] {
        &["first", "last job", "type"]
    }

    fn cells(&self) -> Vec<String> {
        vec![
            self.count.to_string(),
            self.script_type.clone(),
            self.reason.clone(),
            self.first_at.clone(),
            self.last_at.clone(),
            self.last_id.clone(),
            self.error.clone(),
        ]
    }
}

/// Groups the letters that match, the largest group first.
pub(super) async fn of(client: &Client, filter: &JobFilter) -> Result<Vec<Group>, CommandError> {
    let (mut groups, mut known) = (Vec::<Group>::new(), HashMap::<FailureGroup, usize>::new());
    let (mut cursor, mut letters) = (None, 0);
    loop {
        let page = client.dead_letters(filter, cursor.as_ref()).await?;
        letters += page.letters.len();
        for letter in page.letters {
            let group = FailureGroup::of(&letter.job);
            let at = time::iso(letter.at_ms);
            if let Some(at_index) = known.get(&group) {
                // The newest come first.
                groups[*at_index].count += 1;
                groups[*at_index].first_at = at;
                continue;
            }
            groups.push(Group {
                fingerprint: group.fingerprint(),
                script_type: group.script_type.clone(),
                reason: group.reason.clone(),
                error: group.error.clone(),
                count: 1,
                first_at: at.clone(),
                last_at: at,
                last_id: letter.job.id,
            });
            known.insert(group, groups.len() - 1);
        }
        cursor = page.next;
        if cursor.is_some() && letters >= MOST {
            note(format_args!(
                "the newest {letters} letters are grouped; there are more"
            ));
        }
        if cursor.is_none() || letters >= MOST {
            groups.sort_by_key(|group| std::cmp::Reverse(group.count));
            return Ok(groups);
        }
    }
}
