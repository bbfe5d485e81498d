//! Lua as Redis 7.0 runs it: conversions, errors and their texts, the sandbox, the limits.

use std::str;

use bytes::Bytes;
use meshwork_embedded::{Clock, Handle, Protocol, Reply, Session, encode_reply};

async fn call(session: &mut Session, args: &[&str]) -> Reply {
    let args: Vec<Bytes> = args
        .iter()
        .map(|arg| Bytes::copy_from_slice(arg.as_bytes()))
        .collect();
    session.call(&args).await
}

/// The reply of a script as RESP2, line breaks as `|`.
async fn eval(session: &mut Session, script: &str) -> String {
    let mut out = Vec::new();
    encode_reply(
        &call(session, &["EVAL", script, "0"]).await,
        Protocol::Resp2,
        &mut out,
    );
    String::from_utf8(out).unwrap().replace("\r\n", "|")
}

/// What redis-server 7.0.15 answers.
const REDIS: &[(&str, &str)] = &[
    ("return 1", ":1|"),
    ("return 3.99", ":3|"),
    ("return -3.99", ":-3|"),
    ("return 1e300", ":-9223372036854775808|"),
    ("return 0/0", ":-9223372036854775808|"),
    ("return true", ":1|"),
    ("return false", "$-1|"),
    ("return", "$-1|"),
    ("return {1,2,nil,3}", "*2|:1|:2|"),
    ("return {a=1}", "*0|"),
    ("return {{{}}}", "*1|*1|*0|"),
    ("return {ok='a'}", "+a|"),
    ("return {err='x y'}", "-x y|"),
    ("return {1,{2,{err='q'}}}", "*2|:1|*2|:2|-q|"),
    ("return {double=1.5}", "$3|1.5|"),
    ("return {map={a=1}}", "*2|$1|a|:1|"),
    ("return function() end", "$-1|"),
    ("return redis.status_reply('a')", "+a|"),
    ("return redis.error_reply('abc')", "-ERR abc|"),
    ("return redis.error_reply('-MY abc')", "-MY abc|"),
    (
        "return redis.sha1hex('')",
        "$40|da39a3ee5e6b4b0d3255bfef95601890afd80709|",
    ),
    ("return redis.call('set','a','b')", "+OK|"),
    ("return redis.call('get','none')", "$-1|"),
    ("return redis.call('get','a')", "$1|b|"),
    ("return loadstring('return 1')()", ":1|"),
    ("return load", "$-1|"),
    ("return pcall(rawset,_G,'x',1)", "$-1|"),
    ("return {unpack({1},1,7000)}", "*1|:1|"),
    (
        "return redis.pcall('foo')",
        "-ERR Unknown Redis command called from script|",
    ),
    ("return type(redis.pcall('foo').err)", "$6|string|"),
    (
        "local ok,e=pcall(redis.call,'foo') return {tostring(ok),type(e),e}",
        "*3|$5|false|$6|string|$44|ERR Unknown Redis command called from script|",
    ),
    (
        "local ok,e=pcall(function() error('foo') end) return {tostring(ok),e}",
        "*2|$5|false|$18|user_script:1: foo|",
    ),
    (
        "local ok,e=pcall(error,'foo') return {tostring(ok),e}",
        "*2|$5|false|$3|foo|",
    ),
    (
        "return {math.random()*1000000000, math.random(10), math.random(5,9)}",
        "*3|:396464773|:9|:6|",
    ),
    (
        "math.randomseed(7) return {math.random()*1000000000, math.random(10), math.random(5,9)}",
        "*3|:266444196|:7|:6|",
    ),
];

/// Scripts that end with an error, the text of it, and the line that it names.
const ERRORS: &[(&str, &str)] = &[
    (
        "x=1",
        "ERR user_script:1: Attempt to modify a readonly table",
    ),
    (
        "return x",
        "ERR user_script:1: Script attempted to access nonexistent global variable 'x'",
    ),
    (
        "redis.call=1",
        "ERR user_script:1: Attempt to modify a readonly table",
    ),
    (
        "string.x=1",
        "ERR user_script:1: Attempt to modify a readonly table",
    ),
    (
        "KEYS=1",
        "ERR user_script:1: Attempt to modify a readonly table",
    ),
    (
        "getmetatable('').__index=nil",
        "ERR user_script:1: Attempt to modify a readonly table",
    ),
    (
        "getmetatable(_G).__index=nil",
        "ERR user_script:1: Attempt to modify a readonly table",
    ),
    (
        "setmetatable(_G,{})",
        "ERR Attempt to modify a readonly table",
    ),
    (
        "rawset(_G,'x',1) return x",
        "ERR Attempt to modify a readonly table",
    ),
    (
        "return redis.call('get')",
        "ERR Wrong number of args calling Redis command from script",
    ),
    (
        "return redis.call('foo')",
        "ERR Unknown Redis command called from script",
    ),
    (
        "return redis.call()",
        "ERR Please specify at least one argument for this redis lib call",
    ),
    (
        "return redis.call('get',{})",
        "ERR Lua redis lib command arguments must be strings or integers",
    ),
    (
        "return redis.call('subscribe','a')",
        "ERR This Redis command is not allowed from script",
    ),
    (
        "return redis.call('blpop','nok',0)",
        "ERR This Redis command is not allowed from script",
    ),
    (
        "return redis.call('lpush','a',1)",
        "WRONGTYPE Operation against a key holding the wrong kind of value",
    ),
    ("error('a')", "ERR user_script:1: a"),
    ("error({err='x'})", "x"),
    ("error()", "ERR nil"),
    ("redis.setresp(4)", "ERR RESP version must be 2 or 3."),
    (
        "redis.setresp()",
        "ERR redis.setresp() requires one argument.",
    ),
    ("return redis.sha1hex()", "ERR wrong number of arguments"),
    (
        "redis.log('x')",
        "ERR redis.log() requires two arguments or more.",
    ),
    ("redis.log(9,'x')", "ERR Invalid debug level."),
    (
        "redis.foo()",
        "ERR user_script:1: attempt to call field 'foo' (a nil value)",
    ),
    (
        "local t={} return t.x.y",
        "ERR user_script:1: attempt to index field 'x' (a nil value)",
    ),
    (
        "return unpack({1},1,8000)",
        "ERR user_script:1: too many results to unpack",
    ),
    (
        "return print",
        "ERR user_script:1: Script attempted to access nonexistent global variable 'print'",
    ),
    (
        "math.random(0)",
        "ERR user_script:1: bad argument #1 to 'random' (interval is empty)",
    ),
];

#[tokio::test]
async fn replies_are_those_of_redis() {
    let mut session = Handle::in_memory().session();
    for (script, reply) in REDIS {
        assert_eq!(eval(&mut session, script).await, *reply, "{script}");
    }
}

#[tokio::test]
async fn errors_are_those_of_redis() {
    let mut session = Handle::in_memory().session();
    call(&mut session, &["SET", "a", "b"]).await;
    for (script, text) in ERRORS {
        let Reply::Bulk(sha) = call(&mut session, &["SCRIPT", "LOAD", script]).await else {
            panic!("{script} does not compile");
        };
        let sha = str::from_utf8(&sha).unwrap();
        let expected = format!("-{text} script: {sha}, on @user_script:1.|");
        assert_eq!(eval(&mut session, script).await, expected, "{script}");
    }
}

#[tokio::test]
async fn the_clock_stands_still_within_a_script() {
    let mut session = Handle::with_clock(Clock::manual(1_234_567)).session();
    let reply = eval(&mut session, "return redis.call('time')").await;
    assert_eq!(reply, "*2|$4|1234|$6|567000|");
}

#[tokio::test]
async fn no_script_runs_for_ever() {
    let handle = Handle::in_memory();
    let mut session = handle.session();
    for script in [
        "redis.call('incr', 'n') while true do end",
        "redis.call('incr', 'n') while true do pcall(function() while true do end end) end",
        "redis.call('incr', 'n') \
         while true do coroutine.wrap(function() pcall(function() while true do end end) end)() end",
    ] {
        let reply = eval(&mut session, script).await;
        let text = "-ERR the script was stopped after 5 seconds; its writes so far stay script: ";
        assert!(reply.starts_with(text), "{script}: {reply}");
    }
    assert_eq!(
        eval(&mut session, "return redis.call('get', 'n')").await,
        "$1|3|"
    );
}
