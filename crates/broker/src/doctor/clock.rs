//! The clock of this host beside the server's.

use super::facts::Facts;
use super::{Finding, Level};

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
    let what = format!("the server's clock is {apart} ms {side} this host's");
    if apart <= MOST_APART_MS {
        return Some(Finding::ok(CHECK, what));
    }
    let why = "leases and delays go by the server's clock, so no job is lost; but times in logs do not fit \
               those in records, and certificates may seem not to be valid";
    let remedy = "let both follow a time server: `timedatectl set-ntp true` on each";
    Some(Finding::bad(Level::Warning, CHECK, what, why, remedy))
}
