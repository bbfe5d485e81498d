//! Schedules that never fire: those that cannot be read, and those that the set of all schedules lacks.

use meshwork_model::keys::hero::JobKeys;

use super::{Finding, Level, such_as};
use crate::broker::Broker;
use crate::conn::Conn;

/// Greatest number of pages that are read: of 500 keys, in a scan of all keys.
const PAGES: usize = 1000;

/// Finds schedules that do not fire. Finds none for a user that may not read them.
pub(super) async fn check(conn: &Conn, keys: &JobKeys) -> Vec<Finding> {
    const CHECK: &str = "schedules";
    let broker = Broker::new(conn.clone(), keys.clone());
    let (mut lost, mut odd, mut from) = (Vec::new(), Vec::new(), 0);
    for _ in 0..PAGES {
        let Ok(page) = broker.schedules(from).await else {
            break;
        };
        for there in page.schedules {
            if there.schedule.is_err() {
                odd.push(there.name.to_string());
            } else if !there.indexed {
                lost.push(there.name.to_string());
            }
        }
        from = page.next;
        if from == 0 {
            break;
        }
    }
    let gone = broker.schedules_without_record().await;
    let gone = gone.unwrap_or_default();
    let named = such_as(gone.len(), &gone);
    let gone = (!gone.is_empty()).then(|| {
        const WHY: &str = "their records are gone, so they do not fire; at their next slot the names are removed too";
        let remedy = "add them again with `meshwork schedule add`, or restore a backup";
        Finding::bad(Level::Problem, CHECK, named, WHY, remedy)
    });
    let warning = |names: &[String], why, remedy: &str| {
        let what = such_as(names.len(), names);
        (!names.is_empty()).then(|| Finding::bad(Level::Warning, CHECK, what, why, remedy))
    };
    let why = "the set of all schedules lacks them, so they do not fire";
    let remedy = "any worker restores them within about a minute; `meshwork schedule resume NAME` restores one at once";
    let unreadable = "their records cannot be read, so they do not fire";
    let again = "see the reason with `meshwork schedule show NAME`; `meshwork schedule add --replace` replaces one";
    [
        warning(&lost, why, remedy),
        warning(&odd, unreadable, again),
        gone,
    ]
    .into_iter()
    .flatten()
    .collect()
}
