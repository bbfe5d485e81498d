//! Lua as in Redis 7.0: conversions, errors with their texts, the sandbox, the limits.

use crate::common::{run, shown};
use bytes::Bytes;
use futures_util::FutureExt as _;
use meshwork_embedded::{Clock, Handle, Reply, Session};

fn call(session: &mut Session, args: &[&str]) -> Reply {
    let args: Vec<Bytes> = args
        .iter()
        .map(|arg| Bytes::copy_from_slice(arg.as_bytes()))
        .collect();
    let reply = session.call(&args).now_or_never();
    reply.expect("scripts do not wait")
}

/// Returns the reply of a script as RESP2, line breaks as `|`.
fn eval(session: &mut Session, script: &str) -> String {
    shown(&call(session, &["EVAL", script, "0"]))
}

/// Replies of redis-server 7.0.15.
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
    (
        "redis.call('rpush','n',1,-0,3.5,1e-17,-1e15,1e17) return redis.call('lrange','n','0',-1)",
        "*6|$1|1|$2|-0|$3|3.5|$22|1.0000000000000001e-17|$17|-1000000000000000|$5|1e+17|",
    ),
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
        "redis.call('set','y','v') redis.setresp(3) return #redis.call('mget','x','y')",
        ":0|",
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

#[test]
fn replies_are_those_of_redis() {
    let mut session = Handle::in_memory().session();
    for (script, reply) in REDIS {
        assert_eq!(eval(&mut session, script), *reply, "{script}");
    }
}

fn sha_of(session: &mut Session, script: &str) -> String {
    match call(session, &["SCRIPT", "LOAD", script]) {
        Reply::Bulk(sha) => String::from_utf8_lossy(&sha).into_owned(),
        other => panic!("{script}: {other:?}"),
    }
}

#[test]
fn errors_are_those_of_redis() {
    let mut session = Handle::in_memory().session();
    run(&mut session, "SET a b");
    for (script, text) in ERRORS {
        let sha = sha_of(&mut session, script);
        let expected = format!("-{text} script: {sha}, on @user_script:1.|");
        assert_eq!(eval(&mut session, script), expected, "{script}");
    }
}

#[test]
fn a_script_is_known_by_its_sha_until_the_flush() {
    let mut session = Handle::in_memory().session();
    let sha = sha_of(&mut session, "return ARGV[1]");
    assert_eq!(run(&mut session, &format!("EVALSHA {sha} 0 x")), "$1|x|");
    assert_eq!(
        run(&mut session, &format!("EVALSHA {} 0 x", sha.to_uppercase())),
        "$1|x|"
    );
    assert_eq!(
        run(&mut session, &format!("SCRIPT EXISTS {sha} nope")),
        "*2|:1|:0|"
    );
    assert_eq!(run(&mut session, "SCRIPT FLUSH"), "+OK|");
    assert_eq!(
        run(&mut session, &format!("EVALSHA {sha} 0 x")),
        "-NOSCRIPT No matching script. Please use EVAL.|"
    );
}

#[test]
fn the_first_line_says_what_a_script_may_do() {
    let mut session = Handle::in_memory().session();
    let write = "\nreturn redis.call('incr', 'n')";
    assert_eq!(
        eval(&mut session, &format!("#!lua flags=allow-oom{write}")),
        ":1|"
    );
    let reply = eval(&mut session, &format!("#!lua flags=no-writes{write}"));
    assert!(reply.starts_with("-ERR Write commands are not allowed from read-only scripts."));
    let script = format!("#!lua{write}");
    assert_eq!(
        shown(&call(&mut session, &["EVAL_RO", &script, "0"])),
        "-ERR Can not execute a script with write flag using *_ro command.|"
    );
    for (script, error) in [
        (
            "#!lua flags=bad\n",
            "Unexpected flag in script shebang: bad",
        ),
        ("#!py\n", "Unexpected engine in script shebang: #!py"),
        ("#!lua x=1\n", "Unknown lua shebang option: x=1"),
        ("#!lua", "Invalid script shebang"),
    ] {
        assert_eq!(eval(&mut session, script), format!("-ERR {error}|"));
    }
    assert_eq!(run(&mut session, "GET n"), "$1|1|");
}

#[test]
fn the_clock_stands_still_within_a_script() {
    let mut session = Handle::with_clock(Clock::manual(1_234_567)).session();
    let reply = eval(&mut session, "return redis.call('time')");
    assert_eq!(reply, "*2|$4|1234|$6|567000|");
    let mut session = Handle::in_memory().session();
    let script = "local t = redis.call('time') for i = 1, 1e5 do end \
                  local u = redis.call('time') return {t[1] == u[1], t[2] == u[2]}";
    assert_eq!(eval(&mut session, script), "*2|:1|:1|");
}

#[test]
fn select_in_a_script_ends_with_it() {
    let mut session = Handle::in_memory().session();
    let script = "redis.call('select', 3) return redis.call('set', 'k', 'v')";
    assert_eq!(eval(&mut session, script), "+OK|");
    assert_eq!(run(&mut session, "GET k"), "$-1|");
    run(&mut session, "SELECT 3");
    assert_eq!(run(&mut session, "GET k"), "$1|v|");
}

#[test]
fn scripts_leave_nothing_behind_for_each_other() {
    let mut session = Handle::in_memory().session();
    for script in [
        "getmetatable('').__index.upper = nil",
        "string.upper = nil",
        "rawset(string, 'upper', nil)",
        "setmetatable(string, nil)",
        "_G.string = nil",
        "rawset(_G, 'string', nil)",
        "KEYS.x = 1 ARGV.x = 1",
        "for name in pairs(string) do string[name] = nil end",
        "getmetatable(redis).__index.call = nil",
        "setmetatable(KEYS, {__index = function() return 'x' end})",
        "coroutine.wrap(function() redis.call = nil end)()",
        "loadstring('string = nil')()",
    ] {
        eval(&mut session, script);
        let intact =
            "return {('x'):upper(), string.upper('y'), KEYS.x or 1, redis.call('ping').ok}";
        let reply = eval(&mut session, intact);
        assert_eq!(reply, "*4|$1|X|$1|Y|:1|$4|PONG|", "{script}");
    }
    for name in [
        "os", "io", "require", "dofile", "loadfile", "debug", "package", "newproxy",
    ] {
        assert_eq!(
            eval(&mut session, &format!("return rawget(_G, '{name}')")),
            "$-1|"
        );
    }
    let bytecode = "return tostring(loadstring(string.dump(function() end)))";
    assert_eq!(eval(&mut session, bytecode), "$3|nil|");
}

#[test]
fn a_table_that_holds_itself_is_an_error_and_not_the_end() {
    let mut session = Handle::in_memory().session();
    let reply = eval(&mut session, "local t = {} t[1] = t return t");
    assert!(reply.ends_with("-ERR reached lua stack limit|"), "{reply}");
}

#[test]
fn a_script_that_hoards_memory_ends_with_an_error() {
    let mut session = Handle::in_memory().session();
    let reply = eval(&mut session, "return #string.rep('x', 2^30)");
    assert!(
        reply.starts_with('-') && reply.contains("not enough memory"),
        "{reply}"
    );
    assert_eq!(
        eval(&mut session, "return #string.rep('x', 2^20)"),
        ":1048576|"
    );
}

/// Neither `pcall` nor a coroutine survives the time limit.
#[test]
fn no_script_runs_for_ever() {
    let mut session = Handle::in_memory().session();
    let script = "redis.call('incr', 'n') while true do \
                  coroutine.wrap(function() pcall(function() while true do end end) end)() end";
    let reply = eval(&mut session, script);
    let text = "-ERR the script was stopped after 5 seconds; its writes so far stay script: ";
    assert!(reply.starts_with(text), "{reply}");
    assert_eq!(eval(&mut session, "return redis.call('get', 'n')"), "$1|1|");
}

/// The text of an error comes from its metatable, after the script.
#[test]
fn an_error_with_code_of_its_own_is_an_error() {
    let mut session = Handle::in_memory().session();
    for code in ["redis.call('incr', 'n')", "while true do end"] {
        let reply = eval(
            &mut session,
            &format!("error(setmetatable({{}}, {{__index = function() {code} end}}))"),
        );
        assert!(reply.starts_with("-ERR Error running script"), "{reply}");
        assert_eq!(eval(&mut session, "return redis.call('get', 'n')"), "$-1|");
    }
}
