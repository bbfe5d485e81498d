//! Comparison of two replies: to the last byte, except for the cases listed here.

use meshwork_embedded::{Reply, decode_reply};

/// Text that describes a difference between the two sides.
pub(super) type Different = String;

/// The way in which the replies of a command are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    /// To the last byte.
    Exact,
    /// The items in any order, which is that of a randomly seeded hash table.
    Unordered,
    /// The pairs of names and values in any order, for the same reason.
    UnorderedPairs,
    /// The type of the reply and the number of its items, which are random.
    Count,
    /// The type of the reply: it describes the server, its clock or its clients.
    Kind,
    /// Times that differ by at most [`TIME_TOLERANCE`] are equal: each side adds relative times to its own clock.
    Times,
    /// The same as `Times`, for times anywhere in a report on a stream.
    TimesWithin,
    /// The reply of EXEC: each part by the comparison of its queued command.
    Queued,
}

/// Commands that are not compared to the last byte.
const INEXACT: [(&str, Comparison); 42] = [
    ("client|id", Comparison::Kind),
    ("client|info", Comparison::Kind),
    ("client|list", Comparison::Kind),
    ("command", Comparison::Kind),
    ("command|count", Comparison::Kind),
    ("command|docs", Comparison::Kind),
    ("command|info", Comparison::Kind),
    ("command|list", Comparison::Kind),
    ("config|get", Comparison::Kind),
    ("exec", Comparison::Queued),
    ("expiretime", Comparison::Times),
    ("hello", Comparison::Count),
    ("hgetall", Comparison::UnorderedPairs),
    ("hkeys", Comparison::Unordered),
    ("hscan", Comparison::Kind),
    ("hvals", Comparison::Unordered),
    ("info", Comparison::Kind),
    ("keys", Comparison::Unordered),
    ("lastsave", Comparison::Kind),
    ("pexpiretime", Comparison::Times),
    ("psubscribe", Comparison::Unordered),
    ("pttl", Comparison::Times),
    ("pubsub|channels", Comparison::Unordered),
    ("pubsub|shardchannels", Comparison::Unordered),
    ("punsubscribe", Comparison::Unordered),
    ("randomkey", Comparison::Kind),
    ("scan", Comparison::Kind),
    ("sdiff", Comparison::Unordered),
    ("sinter", Comparison::Unordered),
    ("smembers", Comparison::Unordered),
    ("spop", Comparison::Count),
    ("srandmember", Comparison::Count),
    ("sscan", Comparison::Kind),
    ("sunion", Comparison::Unordered),
    ("sunsubscribe", Comparison::Unordered),
    ("time", Comparison::Kind),
    ("ttl", Comparison::Times),
    ("unsubscribe", Comparison::Unordered),
    ("xinfo|consumers", Comparison::TimesWithin),
    ("xinfo|stream", Comparison::TimesWithin),
    ("xpending", Comparison::TimesWithin),
    ("zscan", Comparison::Kind),
];

/// Greatest difference of two times that were set by two clocks, in seconds and milliseconds.
const TIME_TOLERANCE: i64 = 2_000;

/// Least number that the generator uses as a time.
const MIN_TIME: i64 = 50_000;

/// Returns the comparison for a command. A subcommand has both words, as in `client|id`.
pub(super) fn comparison(name: &str) -> Comparison {
    let entry = INEXACT.iter().find(|(entry, _)| *entry == name);
    entry.map_or(Comparison::Exact, |(_, likeness)| *likeness)
}

/// Returns true if replies of a command are not compared to the last byte.
pub(super) fn is_inexact(name: &str) -> bool {
    comparison(name) != Comparison::Exact
}

/// Returns the name of a request's command in the form of [`INEXACT`], as in `client|id`.
pub(super) fn command_name(args: &[Vec<u8>]) -> String {
    let lower = |arg: &Vec<u8>| String::from_utf8_lossy(arg).to_lowercase();
    let name = args.first().map(lower).unwrap_or_default();
    let containers = [
        "client", "command", "config", "memory", "pubsub", "script", "xgroup", "xinfo",
    ];
    match args.get(1) {
        Some(sub) if containers.contains(&name.as_str()) => format!("{name}|{}", lower(sub)),
        _ => name,
    }
}

/// Returns true if two encoded replies to a request count as equal. `queued` has the requests of the transaction that
/// the request executes.
pub(super) fn same(args: &[Vec<u8>], queued: &[Vec<Vec<u8>>], one: &[u8], other: &[u8]) -> bool {
    if one == other {
        return true;
    }
    if one.starts_with(b"-") && other.starts_with(b"-") {
        // Errors are text here, and bytes in Redis, which quotes invalid text unchanged.
        return String::from_utf8_lossy(one) == String::from_utf8_lossy(other);
    }
    let name = command_name(args);
    if !is_inexact(&name) {
        return false;
    }
    match (decode_reply(one), decode_reply(other)) {
        (Ok(Some((one, _))), Ok(Some((other, _)))) => same_reply(&name, queued, &one, &other),
        _ => false,
    }
}

/// Same as [`same`], for decoded replies.
fn same_reply(name: &str, queued: &[Vec<Vec<u8>>], one: &Reply, other: &Reply) -> bool {
    use Reply::{Array, Error, Int};
    if matches!(one, Error(_)) || matches!(other, Error(_)) {
        return one == other;
    }
    let same_kind = std::mem::discriminant(one) == std::mem::discriminant(other);
    match (comparison(name), one, other) {
        (Comparison::Exact, ..) => one == other,
        (Comparison::Queued, Array(one), Array(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .zip(other)
                    .zip(queued)
                    .all(|((one, other), args)| same_reply(&command_name(args), &[], one, other))
        }
        (Comparison::Times, Int(one), Int(other)) => {
            one == other
                || one.min(other) > &MIN_TIME
                    && one.abs_diff(*other) <= TIME_TOLERANCE.unsigned_abs()
        }
        (Comparison::TimesWithin, ..) => same_but_times(one, other),
        (Comparison::Kind, ..) => same_kind,
        (Comparison::Count, ..) => same_kind && items(one).len() == items(other).len(),
        (Comparison::Unordered, ..) => {
            same_kind && sorted(items(one), 1) == sorted(items(other), 1)
        }
        (Comparison::UnorderedPairs, ..) => {
            let width = if matches!(one, Reply::Map(_)) { 1 } else { 2 };
            same_kind && sorted(items(one), width) == sorted(items(other), width)
        }
        _ => one == other,
    }
}

/// Returns whether two reports on a stream are the same except for times of deliveries and of consumers' activity.
pub(super) fn same_but_times(one: &Reply, other: &Reply) -> bool {
    let (Some(ones), Some(others)) = (flat(one), flat(other)) else {
        return one == other;
    };
    // A pending entry is its id, its consumer or not, its time of delivery, and its number of deliveries.
    let delivered = match ones.as_slice() {
        [Reply::Bulk(_), Reply::Int(_), Reply::Int(_)] => Some(1),
        [Reply::Bulk(_), Reply::Bulk(_), Reply::Int(_), Reply::Int(_)] => Some(2),
        _ => None,
    };
    let is_time = |at: usize| {
        let name = at.checked_sub(1).map(|before| &ones[before]);
        delivered == Some(at)
            || matches!(name, Some(Reply::Bulk(name)) if name == "idle" || name == "seen-time")
    };
    std::mem::discriminant(one) == std::mem::discriminant(other)
        && ones.len() == others.len()
        && ones
            .iter()
            .zip(&others)
            .enumerate()
            .all(|(at, pair)| match pair {
                (Reply::Int(one), Reply::Int(other)) if is_time(at) => {
                    one.abs_diff(*other) <= TIME_TOLERANCE.unsigned_abs()
                }
                (one, other) => same_but_times(one, other),
            })
}

/// Returns the items of an array, or the names and values of a map in their order; `None` for other replies.
fn flat(reply: &Reply) -> Option<Vec<Reply>> {
    match reply {
        Reply::Array(items) => Some(items.clone()),
        Reply::Map(pairs) => {
            let parts = pairs.iter().flat_map(|(name, value)| [name, value]);
            Some(parts.cloned().collect())
        }
        _ => None,
    }
}

/// Returns the items of a reply; a pair of a map is one item.
fn items(reply: &Reply) -> Vec<Reply> {
    match reply {
        Reply::Array(items) | Reply::Set(items) | Reply::Push(items) => items.clone(),
        Reply::Map(pairs) => pairs
            .iter()
            .map(|(key, value)| Reply::Array(vec![key.clone(), value.clone()]))
            .collect(),
        other => vec![other.clone()],
    }
}

/// Returns the items in groups of `width`, in a fixed order.
pub(super) fn sorted(items: Vec<Reply>, width: usize) -> Vec<String> {
    let mut groups: Vec<String> = items
        .chunks(width)
        .map(|group| format!("{group:?}"))
        .collect();
    groups.sort_unstable();
    groups
}
