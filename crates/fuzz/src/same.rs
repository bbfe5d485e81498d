//! Comparison of two replies: to the last byte, except for the cases listed here.

use meshwork_embedded::{Reply, decode_reply};

/// Description of a difference.
pub(super) type Different = String;

/// The way in which the replies of a command are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Likeness {
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
    /// Times that differ slightly are equal: each side counts relative times from its own present.
    Times,
    /// The same for times anywhere in a report on a stream.
    TimesWithin,
    /// Each reply by its own command in the transaction.
    Queued,
}

/// Commands that are not compared to the last byte.
const LOOSE: [(&str, Likeness); 42] = [
    ("client|id", Likeness::Kind),
    ("client|info", Likeness::Kind),
    ("client|list", Likeness::Kind),
    ("command", Likeness::Kind),
    ("command|count", Likeness::Kind),
    ("command|docs", Likeness::Kind),
    ("command|info", Likeness::Kind),
    ("command|list", Likeness::Kind),
    ("config|get", Likeness::Kind),
    ("exec", Likeness::Queued),
    ("expiretime", Likeness::Times),
    ("hello", Likeness::Count),
    ("hgetall", Likeness::UnorderedPairs),
    ("hkeys", Likeness::Unordered),
    ("hscan", Likeness::Kind),
    ("hvals", Likeness::Unordered),
    ("info", Likeness::Kind),
    ("keys", Likeness::Unordered),
    ("lastsave", Likeness::Kind),
    ("pexpiretime", Likeness::Times),
    ("psubscribe", Likeness::Unordered),
    ("pttl", Likeness::Times),
    ("pubsub|channels", Likeness::Unordered),
    ("pubsub|shardchannels", Likeness::Unordered),
    ("punsubscribe", Likeness::Unordered),
    ("randomkey", Likeness::Kind),
    ("scan", Likeness::Kind),
    ("sdiff", Likeness::Unordered),
    ("sinter", Likeness::Unordered),
    ("smembers", Likeness::Unordered),
    ("spop", Likeness::Count),
    ("srandmember", Likeness::Count),
    ("sscan", Likeness::Kind),
    ("sunion", Likeness::Unordered),
    ("sunsubscribe", Likeness::Unordered),
    ("time", Likeness::Kind),
    ("ttl", Likeness::Times),
    ("unsubscribe", Likeness::Unordered),
    ("xinfo|consumers", Likeness::TimesWithin),
    ("xinfo|stream", Likeness::TimesWithin),
    ("xpending", Likeness::TimesWithin),
    ("zscan", Likeness::Kind),
];

/// Greatest difference of two times that were set by two clocks, in seconds and milliseconds.
const TIME_TOLERANCE: i64 = 2_000;

/// Least number that the generator uses as a time.
const TIME_MIN: i64 = 50_000;

/// Returns the comparison for a command. A subcommand has both words, as in `client|id`.
pub(super) fn likeness(name: &str) -> Likeness {
    let loose = LOOSE.iter().find(|(loose, _)| *loose == name);
    loose.map_or(Likeness::Exact, |(_, likeness)| *likeness)
}

/// Returns whether replies of a command are not compared to the last byte.
pub(super) fn is_loose(name: &str) -> bool {
    likeness(name) != Likeness::Exact
}

/// Returns the name of a request's command, as in the table.
pub(super) fn name_of(args: &[Vec<u8>]) -> String {
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

/// Returns whether two encoded replies are the same for a request. `queued` are the requests of the transaction that
/// it ends.
pub(super) fn same(args: &[Vec<u8>], queued: &[Vec<Vec<u8>>], one: &[u8], other: &[u8]) -> bool {
    if one == other {
        return true;
    }
    if one.starts_with(b"-") && other.starts_with(b"-") {
        // Errors are text here, and bytes in Redis, which quotes invalid text unchanged.
        return String::from_utf8_lossy(one) == String::from_utf8_lossy(other);
    }
    let name = name_of(args);
    if !is_loose(&name) {
        return false;
    }
    match (decode_reply(one), decode_reply(other)) {
        (Ok(Some((one, _))), Ok(Some((other, _)))) => alike(&name, queued, &one, &other),
        _ => false,
    }
}

fn alike(name: &str, queued: &[Vec<Vec<u8>>], one: &Reply, other: &Reply) -> bool {
    use Reply::{Array, Error, Int};
    if matches!(one, Error(_)) || matches!(other, Error(_)) {
        return one == other;
    }
    let same_kind = std::mem::discriminant(one) == std::mem::discriminant(other);
    match (likeness(name), one, other) {
        (Likeness::Exact, ..) => one == other,
        (Likeness::Queued, Array(one), Array(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .zip(other)
                    .zip(queued)
                    .all(|((one, other), args)| alike(&name_of(args), &[], one, other))
        }
        (Likeness::Times, Int(one), Int(other)) => {
            one == other
                || one.min(other) > &TIME_MIN
                    && one.abs_diff(*other) <= TIME_TOLERANCE.unsigned_abs()
        }
        (Likeness::TimesWithin, ..) => same_but_times(one, other),
        (Likeness::Kind, ..) => same_kind,
        (Likeness::Count, ..) => same_kind && items(one).len() == items(other).len(),
        (Likeness::Unordered, ..) => same_kind && sorted(items(one), 1) == sorted(items(other), 1),
        (Likeness::UnorderedPairs, ..) => {
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

/// Returns the parts of a reply, if it has any.
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
