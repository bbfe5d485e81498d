//! The clock of this host beside the server's.

use std::time::{Duration, SystemTime};

use super::facts::{Facts, ask};
use super::{Finding, Level};
use crate::conn::Conn;

/// Leases and delays go by the server's clock, whatever a host's says; logs and certificates do not.
const MOST_APART_MS: u64 = 1000;

/// By how many milliseconds the server's clock is before ours, with half the way's time allowed for.
pub(super) async fn ahead(conn: &Conn) -> Option<i64> {
    let before = now()?;
    let (seconds, micros): (u64, u64) = ask(conn, &redis::cmd("TIME")).await.ok()?;
    let after = now()?;
    let theirs = Duration::from_secs(seconds) + Duration::from_micros(micros);
    let ours = before + after.saturating_sub(before) / 2;
    let apart = theirs.abs_diff(ours).as_millis();
    let apart = i64::try_from(apart).unwrap_or(i64::MAX);
    Some(if theirs < ours { -apart } else { apart })
}

#[allow(
    clippy::disallowed_methods,
    reason = "the host's clock is what is looked at"
)]
fn now() -> Option<Duration> {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .ok()
}

pub(super) fn check(facts: &Facts) -> Option<Finding> {
    const CHECK: &str = "clock";
    let ahead = facts.ahead_ms?;
    if facts.embedded {
        return None;
    }
    let apart = ahead.unsigned_abs();
    let side = if ahead < 0 { "behind" } else { "ahead of" };
    let what = format!("the server's clock is {apart} ms {side} this host's");
    if apart <= MOST_APART_MS {
        return Some(Finding::ok(CHECK, what));
    }
    let why = "leases and delays go by the server's clock, so no job is lost; but times in logs do not fit \
               those in records, and certificates may seem not to be valid";
    let remedy = "let both follow a time server: `timedatectl set-ntp true` on each";
    Some(Finding::bad(Level::Warning, CHECK, what, why, remedy))
}
