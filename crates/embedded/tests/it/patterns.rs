//! Patterns in scripts: like redis-server on a fixed table, like Lua on random ones; and the bounds of patterns and
//! of other slow functions.

use std::{cell::RefCell, sync::mpsc, thread, time::Duration};

use crate::support::{Raw, Runs};
use futures_util::FutureExt as _;
use meshwork_embedded::{Handle, Reply, Session};
use meshwork_test_servers::servers::RealServer;
use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};

/// All uses of a pattern, with their errors. ARGV: the source, the pattern, the replacement, the first position, the
/// greatest number.
const ALL: &str = r"
local s, p, r, from, most = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local out = {}
local function say(...)
  for i = 1, select('#', ...) do out[#out + 1] = type(select(i, ...)) .. ':' .. tostring((select(i, ...))) end
  out[#out + 1] = ';'
end
say(pcall(string.find, s, p))
say(pcall(string.find, s, p, from))
say(pcall(string.find, s, p, from, true))
say(pcall(string.match, s, p, from))
say(pcall(function() return s:match(p) end))
say(pcall(function() local n = 0 for a, b, c in s:gmatch(p) do
  n = n + 1 say(a, b, c) if n > 20 then break end end return n end))
say(pcall(string.gsub, s, p, r))
say(pcall(string.gsub, s, p, r, most))
say(pcall(string.gsub, s, p, {a = 'T', b = 7, ab = false, ['1'] = 'one', [1] = 'first', [2] = true}, most))
say(pcall(string.gsub, s, p, function(...)
  say('called', ...) local a = ... if a == 'a' then return nil elseif a == 'b' then return false end
  return select('#', ...) .. '<' .. tostring(a) .. '>' end, most))
say(pcall(string.gsub, s, p, function(a) return a == 'x' and {} or 1.5 end))
return table.concat(out, ' ')
";

const SOURCES: [&str; 12] = [
    "",
    "a",
    "hello world from Lua",
    "key=value, other = thing",
    "((a)(b(c)))(",
    "THE (quick) fox",
    "aaaaaaaaab",
    "a\0b\0\0c",
    "  trim me \t\x0b\x0c\r\n",
    "%d+%s[x]-^$.",
    "\u{e9}\u{fc}\x7f\x01",
    "0x1F -12.5e3 007",
];

const PATTERNS: [&str; 96] = [
    "",
    ".",
    "a",
    "^a",
    "a$",
    "^",
    "$",
    "^$",
    "^^a",
    "a^",
    "$a",
    "%a+",
    "%A+",
    "%c",
    "%C",
    "%d+",
    "%D",
    "%l+",
    "%L",
    "%p",
    "%P",
    "%s+",
    "%S+",
    "%u+",
    "%U",
    "%w+",
    "%W",
    "%x+",
    "%X",
    "%z",
    "%Z+",
    "%q",
    "%%",
    "%.",
    "[abc]+",
    "[^abc]+",
    "[a-c]",
    "[a-]",
    "[-a]",
    "[]]",
    "[^]]",
    "[]",
    "[^]",
    "[a",
    "[%",
    "[%a",
    "[%]]",
    "[%a_]",
    "[^%s]+",
    "[a-%z]",
    "[%a-z]",
    "[b-a]",
    "[^",
    "%",
    "a%",
    "(",
    ")",
    "()",
    "(a",
    "a)",
    "(a)(b)",
    "((a)b)",
    "()a()",
    "(a*(.)%w(%s*))",
    "(.)%1",
    "(.)(.)%2%1",
    "%1",
    "%0",
    "(%1)",
    "()%1",
    "%b()",
    "%b",
    "%b(",
    "%bxx",
    "%b()%b()",
    "%f[%a]%a+",
    "%f[%A]",
    "%f",
    "%fa",
    "%f[",
    "%f[%z]",
    "%f[^%z]",
    "a*",
    "a+",
    "a-",
    "a?",
    "a-b",
    "a*a",
    "a*?",
    "a+-",
    "a**",
    "(a*)*",
    "(a-)$",
    "^(.-)%s*$",
    "a\0b",
    "\0",
];

const REPLACEMENTS: [&str; 10] = [
    "", "x", "%0", "%1", "%2%1", "%%", "%", "%x", "<%0%0>", "a\0%0",
];

/// Runs the script on both, and compares.
async fn compare(server: &mut Raw, session: &mut Session, argv: &[&[u8]]) {
    let args: Vec<&[u8]> = [&[&b"EVAL"[..], ALL.as_bytes(), b"0"], argv].concat();
    let (theirs, ours) = (server.run(&args).await, session.run(&args).await);
    let shown: Vec<_> = argv
        .iter()
        .map(|arg| arg.escape_ascii().to_string())
        .collect();
    assert_eq!(ours, theirs, "{shown:?}");
}

#[tokio::test]
async fn patterns_are_those_of_redis() {
    let Some(redis) = RealServer::redis().start() else {
        return;
    };
    let mut server = Raw::connect(&redis.socket()).await;
    let mut session = Handle::in_memory().session();
    for source in SOURCES {
        for (at, pattern) in PATTERNS.iter().enumerate() {
            let replacement = REPLACEMENTS[at % REPLACEMENTS.len()];
            for (from, most) in [("1", "1"), ("-3", "0"), ("100", "-1"), ("3", "2")] {
                let argv = [source, pattern, replacement, from, most].map(str::as_bytes);
                compare(&mut server, &mut session, &argv).await;
            }
        }
    }
    for replacement in REPLACEMENTS {
        for pattern in ["a", "(a)", "()", "(a)(b)?", "%w"] {
            let argv = ["ab a", pattern, replacement, "1", "9"].map(str::as_bytes);
            compare(&mut server, &mut session, &argv).await;
        }
    }
}

/// Number of random patterns in a test.
const RANDOM: u32 = 5_000;

/// Pieces of patterns, some of them invalid.
const ITEMS: [&str; 34] = [
    "a", "b", "c", ".", "%a", "%d", "%s", "%w", "%W", "%z", "[ab]", "[^a]", "[a-c]", "[%a1]",
    "[]a]", "(", ")", "()", "*", "+", "-", "?", "^", "$", "%1", "%2", "%b()", "%bab", "%f[a]",
    "%f[^b]", "%", "[", "]", "\0",
];
/// Pieces of sources: few, so that much of them matches.
const TEXT: [&str; 9] = ["a", "b", "c", "ab", "(", ")", " ", "1", "\0"];
/// Pieces of replacements.
const NEW: [&str; 6] = ["x", "%0", "%1", "%2", "%%", "\0"];

/// Returns up to `most` of these pieces, one after the other.
fn pieces(of: &'static [&'static str], most: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(of), 0..=most)
        .prop_map(|pieces| pieces.concat().into_bytes())
}

/// Items for one character.
const CLASSES: [&str; 16] = [
    "a", "b", "c", ".", ".", "%a", "%w", "%W", "[ab]", "[^a]", "[a-b]", "[a-]", "[%a-c]", "[]a]",
    "[^a-b]", "%)",
];
const SUFFIXES: [&str; 8] = ["", "", "", "", "*", "+", "-", "?"];
/// Items without a suffix.
const OTHERS: [&str; 8] = ["()", "%1", "%2", "%b()", "%bac", "%f[a]", "%f[^b]", "$"];

/// Returns a pattern, mostly without errors.
fn pattern() -> impl Strategy<Value = Vec<u8>> {
    let (class, suffix) = (
        prop::sample::select(&CLASSES[..]),
        prop::sample::select(&SUFFIXES[..]),
    );
    let other = prop::sample::select(&OTHERS[..]).prop_map(str::to_owned);
    let item = prop_oneof![
        4 => (class, suffix).prop_map(|(class, suffix)| format!("{class}{suffix}")),
        1 => other,
    ];
    let items = item.prop_recursive(3, 12, 4, |inner| {
        let items = prop::collection::vec(inner, 1..=4).prop_map(|items| items.concat());
        (items, any::<bool>()).prop_map(|(items, capture)| match capture {
            true => format!("({items})"),
            false => items,
        })
    });
    ("\\^?", items).prop_map(|(anchor, items)| format!("{anchor}{items}").into_bytes())
}

/// Returns the result of Lua's own functions.
fn by_lua(lua: &mlua::Lua, argv: &[&[u8]]) -> Vec<u8> {
    let argv = argv.iter().map(|arg| lua.create_string(arg).unwrap());
    lua.globals()
        .set("ARGV", lua.create_sequence_from(argv).unwrap())
        .unwrap();
    let chunk = lua.load(ALL).set_name("@user_script");
    let text: mlua::LuaString = chunk.call(()).unwrap();
    text.as_bytes().to_vec()
}

#[test]
fn random_patterns_are_those_of_lua() {
    let lua = mlua::Lua::new();
    let session = RefCell::new(Handle::in_memory().session());
    let mut runner = TestRunner::new(Config::with_cases(RANDOM));
    let any_bytes = || prop::collection::vec(any::<u8>(), 0..=6);
    let cases = (
        prop_oneof![8 => pieces(&TEXT, 12), 1 => any_bytes()],
        prop_oneof![8 => pattern(), 2 => pieces(&ITEMS, 7), 1 => any_bytes()],
        prop_oneof![8 => pieces(&NEW, 3), 1 => any_bytes()],
        -4_i64..12,
        -1_i64..4,
    );
    let checked = runner.run(&cases, |(source, pattern, replacement, from, most)| {
        let (from, most) = (from.to_string(), most.to_string());
        let argv = [
            &source[..],
            &pattern,
            &replacement,
            from.as_bytes(),
            most.as_bytes(),
        ];
        let args: Vec<&[u8]> = [&[&b"EVAL"[..], ALL.as_bytes(), b"0"], &argv[..]].concat();
        let ours = session.borrow_mut().run(&args).now_or_never();
        let theirs = Reply::Bulk(by_lua(&lua, &argv).into());
        prop_assert_eq!(ours, Some(theirs));
        Ok(())
    });
    checked.unwrap();
}

/// Calls with arguments of every type, and errors that name the line, the function and the argument.
const CALLS: [&str; 31] = [
    "return {string.find('a', 'a', nil)}",
    "return {pcall(string.find)}",
    "return {pcall(string.find, 'a')}",
    "return {pcall(string.find, {}, 'a')}",
    "return {pcall(string.match, 'a', nil)}",
    "return {pcall(string.gmatch, 'a')}",
    "return {pcall(string.gsub, 'a', 'a')}",
    "return {pcall(string.gsub, 'a', 'a', true)}",
    "return {pcall(string.gsub, 'a', 'a', 'b', 'x')}",
    "return {string.gsub('a1', 1, 2)}",
    "return {string.find(1234, 23)}",
    "return {string.find('abc', 'b', -1.5)}",
    "return {string.find('abc', 'b', '2')}",
    "string.find('a', '[a')",
    "\n\nstring.find('a')",
    "('x'):find()",
    "('x'):match({})",
    "('x').rep('x', {})",
    "local f = string.gsub f('x', '(', 'y')",
    "string.gsub('hello', 'l', function() error('here') end)",
    "string.gsub('hello', 'l', function() redis.call('nope') end)",
    "return {pcall(string.gsub, 'hello', 'l', setmetatable({}, {__index = function(_, k) return k .. k end}))}",
    "for k in string.gmatch('a b', '(') do end",
    "return {string.rep('ab', 3), string.rep('ab', 0), string.rep('ab', -1), string.rep('', 5), string.rep('x', '2')}",
    "return {string.rep('abc', 342), #string.rep('abc', 1000), string.rep(('x'):rep(1025), 2), string.rep(('y'):rep(512), 5)}",
    "return {pcall(string.rep, 'x')}",
    "return tostring(string.gfind == string.gmatch)",
    "return {string.find('a\\0b', 'b'), string.find('a\\0b', '\\0'), string.find('a\\0b', '%z')}",
    "return #string.gsub(string.rep('a', 100000), 'a', '%0%0')",
    "return string.find(string.rep('a', 20000), string.rep('a?', 20000))",
    "return {string.find(string.rep('(', 32) .. 'x', string.rep('%(', 32)), pcall(string.find, 'a', string.rep('(', 33))}",
];

#[tokio::test]
async fn calls_are_those_of_redis() {
    let Some(redis) = RealServer::redis().start() else {
        return;
    };
    let mut server = Raw::connect(&redis.socket()).await;
    let mut session = Handle::in_memory().session();
    for script in CALLS {
        let args = [b"EVAL", script.as_bytes(), b"0"];
        let (theirs, ours) = (server.run(&args).await, session.run(&args).await);
        assert_eq!(ours, theirs, "{script}");
    }
}

/// Far more than the time limit of a script, for a busy machine.
const BOUND: Duration = Duration::from_secs(60);

/// Number of scripts that run at once: each may use 512 MB.
const AT_ONCE: usize = 3;

/// Scripts that run forever, or for hours.
const ENDLESS: [&str; 11] = [
    "local p = string.rep('a*', 30) .. 'b' while true do pcall(string.find, string.rep('a', 200), p) end",
    "local s = string.rep('a', 1e7) while true do string.find(s, 'b') end",
    "local s = string.rep('a', 1e7) while true do string.find('b', s) end",
    "while true do local s = string.rep('', 2e9) end",
    "local s = string.rep('x', 2e6) .. 'z' while true do s = s:sub(2) .. 'y' end",
    "local s = string.rep('x', 1e8) while true do pcall(function() return s:upper() end) end",
    "local t = {} for i = 1, 1e4 do t[i] = string.rep('x', 1e4) end while true do table.concat(t) end",
    "local t = {} for i = 1, 1e6 do t[i] = i * 7919 % 1e6 end while true do table.sort(t) end",
    "local t = {} for i = 1, 1e6 do t[i] = i end while true do table.insert(t, 1, 0) end",
    "local t = {} for i = 1, 4e6 do t[i] = i end while true do table.maxn(t) end",
    "for i = 1, 100 do local t = {} for j = 1, 5000 do t[j] = i .. ' ' .. j end \
     redis.call('sadd', 's', unpack(t)) end \
     while true do redis.pcall('sdiffstore', 'd', 's', 's') end",
];

/// Returns the replies to scripts, each on an engine of its own.
fn replies(scripts: &[&'static str]) -> Vec<(&'static str, Reply)> {
    let mut replies = Vec::new();
    for scripts in scripts.chunks(AT_ONCE) {
        let (done, ends) = mpsc::channel();
        for script in scripts.iter().copied() {
            let done = done.clone();
            // A script that does not end would block the end of a runtime, but not that of the process.
            thread::spawn(move || {
                let mut session = Handle::in_memory().session();
                let args = [b"EVAL", script.as_bytes(), b"0"];
                let reply = session.run(&args).now_or_never();
                done.send((script, reply.expect("a script does not wait")))
                    .ok();
            });
        }
        for _ in scripts {
            let reply = ends.recv_timeout(BOUND);
            replies.push(reply.unwrap_or_else(|_| panic!("not all end: {scripts:#?}")));
        }
    }
    replies
}

#[test]
fn nothing_outlives_the_time_of_a_script() {
    for (script, reply) in replies(&ENDLESS) {
        let text = "ERR the script was stopped after 5 seconds";
        assert!(
            matches!(&reply, Reply::Error(error) if error.starts_with(text)),
            "{script}: {reply:?}"
        );
    }
}

/// Calls that Lua's own functions would not end in years.
const COMPLEX: [&str; 6] = [
    "return string.find(string.rep('a', 40), string.rep('a?', 40) .. string.rep('a', 40))",
    "return string.match(string.rep('a', 1e5), string.rep('a-', 20) .. 'b')",
    "for x in string.gmatch(string.rep('a', 1e5), '.-.-.-.-b') do end",
    "return string.gsub(string.rep('(', 1e6), '%b()', 'x')",
    "return (string.rep('a', 3e4)):find('(.-)%1b')",
    "return string.find(string.rep('a', 1e6), string.rep('[^b]-', 9) .. 'b')",
];

#[test]
fn a_pattern_of_too_many_steps_is_an_error_that_says_so() {
    for (script, reply) in replies(&COMPLEX) {
        let text = "ERR user_script:1: pattern too complex (more than 100000000 steps): use fewer of * + - ?";
        assert!(
            matches!(&reply, Reply::Error(error) if error.starts_with(text)),
            "{script}: {reply:?}"
        );
    }
}

/// Calls with a legitimate need for many steps, also after one with too many.
#[test]
fn a_pattern_on_a_long_source_is_not_too_complex() {
    let mut session = Handle::in_memory().session();
    for (script, expected) in [
        (
            "local ok, why = pcall(string.find, string.rep('a', 40), string.rep('a?', 40) .. string.rep('a', 40)) \
             return tostring(ok) .. why:match('%(.-%)') .. ('a1'):match('%d')",
            Reply::Bulk("false(more than 100000000 steps)1".into()),
        ),
        (
            "return #string.gsub(string.rep('ab ', 5e6), '(%a)(%a)%s', '%2%1'):match('^%a+$')",
            Reply::Int(10_000_000),
        ),
        (
            "local n = 0 for _ in string.rep('ab ', 1e6):gmatch('%a+') do n = n + 1 end return n",
            Reply::Int(1_000_000),
        ),
    ] {
        let args = [b"EVAL", script.as_bytes(), b"0"];
        let reply = session.run(&args).now_or_never();
        assert_eq!(reply, Some(expected), "{script}");
    }
}

#[test]
fn a_pattern_that_would_need_a_deep_stack_needs_none() {
    let mut session = Handle::in_memory().session();
    for (script, expected) in [
        (
            "return #string.match(string.rep('a', 300000), string.rep('a?', 300000))",
            Reply::Int(300_000),
        ),
        (
            "return select(2, pcall(string.find, string.rep('a', 2e6), string.rep('a?', 2e6)))",
            Reply::Bulk("pattern too complex (more than 1000000 items)".into()),
        ),
    ] {
        let args = [b"EVAL", script.as_bytes(), b"0"];
        let reply = session.run(&args).now_or_never();
        assert_eq!(reply, Some(expected), "{script}");
    }
}
