//! Dead letters in groups of the same failure, for `meshwork dead list --groups`.

use meshwork::view::{DeadGroup, DeadGroups};
use meshwork::{Client, JobFilter};

use crate::error::CommandError;
use crate::out::{Column, Row, note};

/// Greatest number of letters that are grouped.
const MOST: usize = 100_000;

impl Row for DeadGroup {
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
pub(super) async fn of(
    client: &Client,
    filter: &JobFilter,
) -> Result<Vec<DeadGroup>, CommandError> {
    let mut groups = DeadGroups::default();
    let (mut cursor, mut letters) = (None, 0);
    loop {
        let page = client.dead_letters(filter, cursor.as_ref()).await?;
        letters += page.letters.len();
        page.letters.iter().for_each(|letter| groups.add(letter));
        cursor = page.next;
        if cursor.is_some() && letters >= MOST {
            note(format_args!(
                "the newest {letters} letters are grouped; there are more"
            ));
        }
        if cursor.is_none() || letters >= MOST {
            return Ok(groups.largest_first());
        }
    }
}
