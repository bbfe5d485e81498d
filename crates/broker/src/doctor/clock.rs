//! The clock of this host beside the server's.

use meshwork_model::keys::hero::JobKeys;
use meshwork_model::time::duration;

use super::facts::{Facts, ask};
use super::{Finding, Level};
use crate::clock::Steps;
use crate::conn::Conn;

/// Greatest accepted difference. Leases and delays use the server's clock; logs and certificates use the host's.
const MOST_APART_MS: u64 = 1000;

pub(super) fn check(facts: &Facts) -> Option<Finding> {
    const CHECK: &str = "clock";
    let ahead = facts.ahead_ms?;
    if facts.embedded {
        return None;
    }
    let apart = ahead.unsigned_abs();
    let side = if ahead < 0 { "behind" } else { "ahead of" };
    let what = format!(
        "the server's clock is {} {side} this host's",
        duration(apart)
    );
    if apart <= MOST_APART_MS {
        return Some(Finding::ok(CHECK, what));
    }
    let why = "leases and delays go by the server's clock, so no job is lost; but times in logs do not fit \
               those in records, and certificates may seem not to be valid";
    let remedy = "let both follow a time server: `timedatectl set-ntp true` on each";
    Some(Finding::bad(Level::Warning, CHECK, what, why, remedy))
}

/// Finds that scripts are ahead of the server's clock, since it went back.
pub(super) async fn steps(conn: &Conn, keys: &JobKeys) -> Option<Finding> {
    let mut get = redis::cmd("GET");
    get.arg(keys.clock());
    let seen: Option<String> = ask(conn, &get).await.ok()?;
    let steps = Steps::read(&seen?)?;
    let time = ask::<(u64, u64)>(conn, &redis::cmd("TIME")).await;
    let (seconds, micros) = time.ok()?;
    let ahead = steps.ahead(seconds * 1000 + micros / 1000);
    if ahead == 0 {
        return None;
    }
    let (count, ahead) = (steps.count.max(1), duration(ahead));
    let times = if count == 1 { "" } else { "s" };
    let what = format!(
        "the server's clock went back {count} time{times}; jobs and schedules are {ahead} ahead of it"
    );
    let why = "times in records are ahead, and slots and delays come too early by the clock, for twice that time";
    let remedy = "let the server follow a time server: `timedatectl set-ntp true`; no job waits for the clock";
    Some(Finding::bad(Level::Warning, "clock", what, why, remedy))
}
