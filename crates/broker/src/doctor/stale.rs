//! Stale jobs: suspected orphans of foreign workers and clients.

use meshwork_model::keys::hero::JobKeys;

use super::facts::ask;
use super::{Finding, Level, NAMED, such_as};
use crate::conn::Conn;
use crate::verb::count_stale;

/// Reports the stale jobs. Reports nothing to a user without the right to read them.
pub(super) async fn check(conn: &Conn, keys: &JobKeys) -> Vec<Finding> {
    const WHY: &str = "they are in no queue, or were started without a lease longer ago than their timeout: a foreign \
                       worker or client is gone";
    let key = keys.stale();
    let Ok((seconds, _)) = ask::<(u64, u64)>(conn, &redis::cmd("TIME")).await else {
        return Vec::new();
    };
    let now = seconds * 1000;
    let Ok(many @ 1..) = count_stale(conn, keys, now).await else {
        return Vec::new();
    };
    let mut first = redis::cmd("ZRANGEBYSCORE");
    first.arg(&key).arg("-inf").arg(now);
    first.arg("LIMIT").arg(0).arg(NAMED);
    let first: Vec<String> = ask(conn, &first).await.unwrap_or_default();
    let ids: Vec<_> = first
        .iter()
        .filter_map(|member| member.split_once(' '))
        .map(|(_, id)| id)
        .collect();
    let what = such_as(many, &ids);
    let remedy = "list them with `meshwork job list --state stale`; run one again with `meshwork job retry ID`, or all \
                  of them with `meshwork worker --rescue-orphans-after AGE`";
    vec![Finding::bad(
        Level::Warning,
        "stale jobs",
        what,
        WHY,
        remedy,
    )]
}
