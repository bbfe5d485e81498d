//! Findings of `meshwork doctor` about the database of an outbox.

use meshwork_broker::doctor::{Finding, Level};
use meshwork_model::number::counted;
use meshwork_model::time::duration;
use meshwork_outbox::Backlog;

use super::database::OutboxArgs;
use crate::error::CommandError;
use crate::exit::Exit;

/// Age of the oldest row of an outbox from which on it is old: relays look every 5 s by default.
const OLD_MS: u64 = 60_000;

/// Returns the state of the database of an outbox.
pub(crate) async fn of_outbox(of: &OutboxArgs) -> Result<Vec<Finding>, CommandError> {
    let finding = |level, what: String| Finding {
        check: "outbox",
        level,
        what,
        why: None,
        remedy: None,
    };
    let found = match of.examine().await {
        Ok(found) => found,
        Err(error) if error.exit == Exit::USAGE => return Err(error),
        Err(error) => return Ok(vec![finding(Level::Problem, error.to_string())]),
    };
    let Backlog {
        waiting,
        oldest_ms,
        set_aside,
        ..
    } = found.backlog;
    let mut findings = vec![finding(
        Level::Ok,
        format!("{}, {} waiting", found.database, counted(waiting, "row")),
    )];
    findings.extend(
        found
            .faults
            .into_iter()
            .map(|it| finding(Level::Problem, it)),
    );
    findings.extend(
        found
            .remarks
            .into_iter()
            .map(|it| finding(Level::Warning, it)),
    );
    if oldest_ms > OLD_MS {
        let waits = duration(oldest_ms);
        let what = format!("a row waits for {waits}: look whether a relay runs");
        findings.push(finding(Level::Warning, what));
    }
    if set_aside > 0 {
        let what = format!(
            "{} set aside: `meshwork outbox list` shows the errors",
            counted(set_aside, "row")
        );
        findings.push(finding(Level::Warning, what));
    }
    Ok(findings)
}
