//! Meshwork's own keys with values of another type. Scripts that need such a key fail, and cannot name it.

use meshwork_model::keys::hero::Hero;

use super::facts::ask;
use super::{Finding, Level};
use crate::conn::Conn;

/// Type of each of Meshwork's own keys, by its name in scripts.
const KINDS: [(&str, &str); 17] = [
    ("LEASES", "zset"),
    ("FEEDS", "zset"),
    ("DELAYED", "zset"),
    ("DEAD", "zset"),
    ("ENDED", "zset"),
    ("WATCH", "zset"),
    ("WALK", "hash"),
    ("LISTS", "zset"),
    ("STALE", "zset"),
    ("EVENTS", "stream"),
    ("CONFIG", "hash"),
    ("ACTORS", "zset"),
    ("SETTLE", "list"),
    ("STOPS", "zset"),
    ("BATCHES_OPEN", "zset"),
    ("BATCHES_ENDED", "zset"),
    ("TURN", "string"),
];

/// Checks the types of Meshwork's keys. Keys that this user may not read are skipped.
pub(super) async fn check(conn: &Conn, keys: &Hero) -> Vec<Finding> {
    const CHECK: &str = "keys";
    const WHY: &str = "scripts that need it fail with WRONGTYPE";
    let names = keys.script_names();
    let mut findings = Vec::new();
    for (name, kind) in KINDS {
        let Some((_, key)) = names.iter().find(|(known, _)| *known == name) else {
            continue;
        };
        let mut cmd = redis::cmd("TYPE");
        cmd.arg(key);
        let Ok(found) = ask::<String>(conn, &cmd).await else {
            continue;
        };
        if found != "none" && found != kind {
            let what = format!("{key} is a {found}, and has to be a {kind}");
            let remedy = format!("RENAME {key} to a name that is not Meshwork's, or DEL {key}");
            let finding = Finding::bad(Level::Problem, CHECK, what, WHY, remedy);
            findings.push(finding);
        }
    }
    findings
}
