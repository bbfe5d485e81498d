//! `meshwork outbox check`.

use std::path::PathBuf;

use meshwork_model::number::counted;
use meshwork_outbox::Outbox;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::app::App;
use crate::args::input;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::{Column, Row, note};

/// Most rows that are listed.
const MOST_LISTED: usize = 1000;

/// Check rows that another program would write: JSON lines with `id` and `job`; needs no database
///
/// A line is `{"id": "…", "job": {"type": "…", "script": "…"}}`; `job` may also be the text of the column. Lists the rows
/// that a relay would set aside, and exits with 1 if there are some. docs/outbox.md has the fields of a job.
#[derive(Debug, clap::Args)]
pub(crate) struct Check {
    /// File with a row in each line, or - for stdin
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// A row as a line of JSON.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Given<'a> {
    id: String,
    #[serde(borrow)]
    job: &'a RawValue,
}

/// A row that no relay could move.
#[derive(Debug, Serialize)]
struct Wrong {
    line: usize,
    error: String,
}

impl Row for Wrong {
    fn columns() -> Vec<Column> {
        Column::named(["line", "error"], &["line"])
    }

    fn cells(&self) -> Vec<String> {
        vec![self.line.to_string(), self.error.clone()]
    }
}

/// Checks a line.
fn check(line: &[u8]) -> Result<(), String> {
    let row: Given<'_> = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    let text = row.job.get();
    // The text of the column, or its content.
    let text = serde_json::from_str(text).unwrap_or_else(|_| text.to_owned());
    Outbox::check_row(&row.id, &text).map_err(|error| error.to_string())
}

impl Check {
    pub(super) fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let bytes = match self.file.as_os_str() == "-" {
            true => input::read_stdin()?,
            false => input::read(&self.file)?,
        };
        let lines = bytes.split(|byte| *byte == b'\n').enumerate();
        let lines = lines.filter(|(_, line)| !line.trim_ascii().is_empty());
        let (mut rows, mut wrong) = (0, Vec::new());
        for (at, line) in lines {
            rows += 1;
            if let Err(error) = check(line) {
                let line = at + 1;
                wrong.push(Wrong { line, error });
            }
        }
        let bad = wrong.len();
        context.out.rows(wrong.into_iter().take(MOST_LISTED))?;
        let cut = match bad > MOST_LISTED {
            true => format!(", of which {MOST_LISTED} are listed"),
            false => String::new(),
        };
        note(format_args!("{}, {bad} wrong{cut}", counted(rows, "row")));
        Ok(if bad == 0 { Exit::DONE } else { Exit::FAILED })
    }
}
