//! The words of commands: few keys and values, so that commands affect each other's, and many wrong values.

use rand::{RngExt, rngs::StdRng};

/// Keys, named after the type of their usual value.
pub(super) const STRINGS: &[&str] = &["s1", "s2", "s3"];
pub(super) const LISTS: &[&str] = &["l1", "l2", "l3"];
pub(super) const HASHES: &[&str] = &["h1", "h2"];
pub(super) const SETS: &[&str] = &["t1", "t2", "t3"];
pub(super) const ZSETS: &[&str] = &["z1", "z2"];

pub(super) const STREAMS: &[&str] = &["x1", "x2", "x3"];

/// A time in ids of entries that is later than any clock, so that `*` continues from there on both sides alike.
pub(super) const LATE_MS: u64 = 9_000_000_000_000;

/// Commands with a relative time, which may be over on one side before the other if it is short.
pub(super) const TIMED: [&str; 16] = [
    "blmove",
    "blmpop",
    "blpop",
    "brpop",
    "brpoplpush",
    "expire",
    "getex",
    "pexpire",
    "psetex",
    "set",
    "setex",
    "xautoclaim",
    "xclaim",
    "xpending",
    "xread",
    "xreadgroup",
];

const GROUPS: &[&str] = &["g1", "g1", "g1", "g1", "g2", ""];
const CONSUMERS: &[&str] = &["w1", "w1", "w1", "w2", "", "a\r\nb"];
const IDS: &[&str] = &[
    "0",
    "0-0",
    "0-1",
    "5",
    "5-0",
    "05-01",
    " 5",
    "+5",
    "5-*",
    "5--3",
    "5--03",
    "5-",
    "-5",
    "-",
    "+",
    "$",
    ">",
    "*",
    "",
    "abc",
    "5-1-1",
    "(5",
    "(5-1",
    "(0",
    "(-",
    "(",
    "(9000000000000-3",
    "9000000000000",
    "18446744073709551615",
    "18446744073709551615-18446744073709551615",
    "(18446744073709551615-18446744073709551615",
    "18446744073709551616",
];
/// Least times since a delivery: none, or longer than a run.
const IDLE: &[&str] = &[
    "0",
    "0",
    "100000000",
    "100000000",
    "-1",
    "abc",
    "4294967296",
];
const FIELDS: &[&str] = &["a", "b", "c", "d", "e", "", "long-field-name", "\u{e4}"];
const VALUES: &[&str] = &[
    "",
    "a",
    "b",
    "abc",
    "hello world",
    "0",
    "1",
    "10",
    "-3",
    "007",
    "3.5",
    "1e5",
    "5.0e3",
    " 1",
    "+1",
    "-0",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "nan",
    "inf",
    "0x10",
    "1_000",
    "a\r\nb",
    "\u{e4}\u{f6}",
    "12345678901234567890123456789012345678901234567890",
];
const NUMBERS: &[&str] = &[
    "0",
    "1",
    "-1",
    "2",
    "3",
    "5",
    "-2",
    "-5",
    "10",
    "100",
    "-100",
    "1000",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "4294967296",
    "2147483648",
    "1.5",
    "abc",
    "",
    "-0",
    "+1",
    " 1",
    "01",
];
const FLOATS: &[&str] = &[
    "0",
    "1",
    "-1",
    "1.5",
    "-2.25",
    "0.1",
    "3.14159265358979",
    "1e3",
    "1e300",
    "-1e300",
    "5e-324",
    "inf",
    "-inf",
    "+inf",
    "nan",
    "1e400",
    "0x10",
    "abc",
    "",
    " 1",
    "1 ",
    "1.0000000000000001",
    "123456789012345678",
    "10.50",
    "-0",
    "-0.0",
    "Infinity",
    "1.7976931348623157e308",
];
const SCORE_BOUNDS: &[&str] = &[
    "-inf", "+inf", "inf", "(1", "1", "2", "(2", "5", "(-1", "-1", "(inf", "(-inf", "1.5", "(1.5",
    "abc", "(", "nan", "(nan", "",
];
const LEX_BOUNDS: &[&str] = &[
    "-", "+", "[a", "(a", "[c", "(c", "[", "(", "a", "[zz", "", "(b",
];
const PATTERNS: &[&str] = &[
    "*", "?", "a*", "*a", "s?", "[a-c]", "[^a]", "h[12]", "\\*", "[a", "", "**", "*1", "[]", "a\\",
    "l*", "[z-a]*", "?*", "[\\]]",
];
const CHANNELS: &[&str] = &["c1", "c2", "c*", "[c]1", "", "x"];
const PLACES: &[&str] = &[
    "0", "1", "2", "-1", "-2", "5", "-5", "100", "-100", "abc", "1.5",
];
const COUNTS: &[&str] = &[
    "0",
    "1",
    "2",
    "3",
    "10",
    "-1",
    "-2",
    "abc",
    "1.5",
    "9223372036854775807",
];
/// Relative times that are over at once, or invalid.
const OVER: &[&str] = &[
    "0",
    "-1",
    "-1000",
    "-9223372036854775808",
    "abc",
    "1.5",
    "9223372036854775807",
];
/// Deadlines that are not reached in a run, and too far apart to pass each other.
const PAST: &[&str] = &["1", "0", "-1", "1000", "-9223372036854775808"];
const FUTURE_SECONDS: &[&str] = &[
    "4000000000",
    "4100000000",
    "4200000000",
    "9223372036854775",
    "abc",
];
const FUTURE_MS: &[&str] = &[
    "4000000000123",
    "4100000000456",
    "4200000000789",
    "9223372036854775807",
    "abc",
];
const KINDS: &[&str] = &[
    "string", "list", "hash", "set", "zset", "stream", "none", "STRING", "x",
];

/// Options of all commands, for commands without a form.
const OPTIONS: &[&str] = &[
    "NX",
    "XX",
    "GT",
    "LT",
    "CH",
    "INCR",
    "GET",
    "KEEPTTL",
    "EX",
    "PX",
    "EXAT",
    "PXAT",
    "PERSIST",
    "COUNT",
    "MATCH",
    "TYPE",
    "LIMIT",
    "REV",
    "BYSCORE",
    "BYLEX",
    "WITHSCORES",
    "WITHVALUES",
    "LEFT",
    "RIGHT",
    "BEFORE",
    "AFTER",
    "RANK",
    "MAXLEN",
    "DB",
    "REPLACE",
    "ASYNC",
    "SYNC",
    "MIN",
    "MAX",
    "STORE",
    "ON",
    "OFF",
    "MINID",
    "NOMKSTREAM",
    "MKSTREAM",
    "ENTRIESREAD",
    "STREAMS",
    "GROUP",
    "NOACK",
    "IDLE",
    "FORCE",
    "JUSTID",
    "LASTID",
    "FULL",
    "~",
];

/// Returns one item of a list.
pub(super) fn one_of<'a, T: ?Sized>(random: &mut StdRng, list: &[&'a T]) -> &'a T {
    list[random.random_range(0..list.len())]
}

/// Returns true once in `times` calls, on average.
pub(super) fn once_in(random: &mut StdRng, times: u32) -> bool {
    random.random_range(0..times) == 0
}

/// Returns a key that mostly has a type of value: `s`, `l`, `h`, `t`, `z`, `q` (a stream), or any.
pub(super) fn key(random: &mut StdRng, kind: char) -> Vec<u8> {
    let kinds = [STRINGS, LISTS, HASHES, SETS, ZSETS, STREAMS];
    let at = "slhtzq".find(kind).filter(|_| !once_in(random, 12));
    let names = kinds[at.unwrap_or_else(|| random.random_range(0..kinds.len()))];
    one_of(random, names).as_bytes().to_vec()
}

/// Returns a word of the kind that a letter of the grammar names.
pub(super) fn word(random: &mut StdRng, kind: char) -> Vec<u8> {
    let list = match kind {
        's' | 'l' | 'h' | 't' | 'z' | 'q' | 'k' => return key(random, kind),
        'I' if !once_in(random, 6) => return id(random),
        'I' => IDS,
        'a' => return new_id(random),
        'g' => GROUPS,
        'w' => CONSUMERS,
        'm' => IDLE,
        'v' if once_in(random, 20) => return binary(random),
        'f' => FIELDS,
        'v' => VALUES,
        'i' => PLACES,
        'n' => COUNTS,
        'N' => NUMBERS,
        'd' => FLOATS,
        'b' => SCORE_BOUNDS,
        'x' => LEX_BOUNDS,
        'p' => PATTERNS,
        'c' => CHANNELS,
        'T' => KINDS,
        'o' => OPTIONS,
        'P' => PAST,
        'Q' => OVER,
        'E' => FUTURE_SECONDS,
        'M' => FUTURE_MS,
        // Relative times, which the two servers count from slightly different moments.
        'r' => {
            return random
                .random_range(100_000..10_000_000)
                .to_string()
                .into_bytes();
        }
        'R' => {
            return random
                .random_range(100_000_000_u64..10_000_000_000)
                .to_string()
                .into_bytes();
        }
        'S' if once_in(random, 6) => FLOATS,
        'S' => return score(random),
        'D' => return random.random_range(0..18).to_string().into_bytes(),
        _ => return any(random),
    };
    one_of(random, list).as_bytes().to_vec()
}

/// Returns a word of any kind.
pub(super) fn any(random: &mut StdRng) -> Vec<u8> {
    let kind = one_of(
        random,
        &[
            "k", "f", "v", "i", "n", "N", "d", "b", "x", "p", "o", "o", "T", "S", "I", "g",
        ],
    );
    word(random, kind.chars().next().unwrap_or('v'))
}

/// Returns the id of an entry that may exist.
fn id(random: &mut StdRng) -> Vec<u8> {
    let ms = if once_in(random, 3) {
        random.random_range(1..8)
    } else {
        LATE_MS
    };
    let seq_max = *one_of(random, &[&3, &12, &12, &150]);
    format!("{ms}-{}", random.random_range(0..=seq_max)).into_bytes()
}

/// Returns the id of an entry to add.
fn new_id(random: &mut StdRng) -> Vec<u8> {
    match random.random_range(0..10) {
        0..5 => b"*".to_vec(),
        5..7 => format!("{LATE_MS}-*").into_bytes(),
        7 => format!("{}-*", random.random_range(0..8)).into_bytes(),
        _ => word(random, 'I'),
    }
}

fn score(random: &mut StdRng) -> Vec<u8> {
    let score = f64::from(random.random_range(-20..20)) / 4.0;
    score.to_string().into_bytes()
}

fn binary(random: &mut StdRng) -> Vec<u8> {
    let len = one_of(random, &[&1_usize, &3, &70, &600]);
    (0..*len)
        .map(|_| random.random_range(0..=u8::MAX))
        .collect()
}
