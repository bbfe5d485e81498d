//! Random scripts: calls with and without `pcall`, values of every type, errors.

use rand::{RngExt, rngs::StdRng};

use super::words::{self, TIMED, once_in, one_of};

/// Statements that use existing variables: `r` is the last result.
const STATEMENTS: &[&str] = &[
    "if type(r) == 'table' and r.err then r = r.err end",
    "if type(r) == 'table' then r = #r end",
    "r = tostring(r == false)",
    "r = {r, r}",
    "local ok, e = pcall(function() error('inner') end) r = e",
    "local ok, e = pcall(redis.call, 'nope') r = {tostring(ok), e}",
    "local ok, e = pcall(redis.call, 'lpush', 's1', 'x') r = {tostring(ok), tostring(e)}",
    "local ok, e = pcall(error, {err = 'ABC x'}) r = {tostring(ok), e}",
    "local ok, e = xpcall(function() error('y') end, function(m) return 'h:' .. m end) r = e",
    "for i = 1, 3 do r = redis.call('rpush', 'l1', i) end",
    "for i = 1, 3 do redis.call('hset', 'h1', 'f' .. i, i * 1.5) end",
    "r = redis.call('zadd', 'z1', 1.5, 'm')",
    "for i = 1, 7 do r = redis.call('xadd', 'x1', '9000000000000-*', 'f', i) end",
    "for i = 1, 120 do r = redis.call('xadd', 'x1', '9000000000000-*', 'f', i) end",
    "for i = 1, 40 do r = redis.call('xadd', 'x2', '9000000000000-*', 'f' .. i % 3, ('v'):rep(i * 7)) end",
    "for i = 1, 250 do r = redis.call('xadd', 'x2', 'maxlen', '~', 150, '9000000000000-*', 'f', i) end",
    "for i = 1, 200 do r = redis.call('xadd', 'x3', '9000000000000-*', 'f' .. i % 2, ('v'):rep(20 + i % 23)) end",
    "for i = 3, 90, 2 do r = redis.call('xdel', 'x1', '9000000000000-' .. i) end",
    "r = redis.call('set', 's1', 3.25)",
    "r = redis.call('set', 's1', 1e20)",
    "r = redis.call('set', 's1', 123456789012)",
    "r = redis.call('set', 's1', 1 / 3)",
    "r = redis.call('set', 's1', -0)",
    "redis.setresp(3)",
    "redis.setresp(2)",
    "redis.setresp(7)",
    "r = string.format('%5.2f %d %s', 1.5, 7, 'x')",
    "r = ('abc'):upper() .. #'abc' .. ('x'):rep(3)",
    "r = tonumber('12') + (tonumber('x') or 1)",
    "r = table.concat({1, 2, 'x'}, ',')",
    "local t = {3, 1, 2} table.sort(t) r = t",
    "r = {unpack({1, 2, 3})}",
    "r = select('#', 1, nil, 3)",
    "r = {math.floor(1.5), math.max(1, 2), math.huge}",
    "r = 10 % 3 .. '' .. 7 / 2",
    "r = redis.sha1hex('x')",
    "r = {pcall(rawset, _G, 'x', 1)}",
    "r = rawget(_G, 'nope')",
    "local f = loadstring('return 1 +') r = tostring(f)",
    "r = loadstring('return KEYS[1]')()",
    "local c = coroutine.wrap(function() coroutine.yield(1) end) r = c()",
    "r = {coroutine.resume(coroutine.create(function() redis.call('nope') end))}",
    "r = {string.find('hello', 'l+')}",
    "r = #KEYS + #ARGV",
    "KEYS[1] = 'changed' r = KEYS[1]",
    "r = redis.replicate_commands()",
    "redis.set_repl(redis.REPL_ALL)",
    "redis.log(redis.LOG_DEBUG, 'x')",
    "r = redis.REDIS_VERSION",
    "r = math.random(1)",
];

/// Last statements of scripts.
const ENDS: &[&str] = &[
    "return r",
    "return {r, 1, 'x'}",
    "return {KEYS[1], ARGV[1], ARGV[2]}",
    "return {1, 2, nil, 3}",
    "return {1, {2, {3, {}}}}",
    "return {ok = 'fine'}",
    "return {err = 'MY error'}",
    "return {err = 'bad'}",
    "return {1, {err = 'ERR nested'}, {ok = 'x'}}",
    "return {double = 3.5}",
    "return {map = {a = 1}}",
    "return {set = {x = true}}",
    "return {big_number = '123'}",
    "return {verbatim_string = {format = 'txt', string = 'abc'}}",
    "return {a = 1, 5}",
    "return 3.99",
    "return -3.99",
    "return 1e19",
    "return true",
    "return false",
    "return nil",
    "return",
    "return ''",
    "return redis.error_reply('My Err')",
    "return redis.error_reply('-X')",
    "return redis.error_reply(1)",
    "return redis.error_reply()",
    "return redis.status_reply('st')",
    "return redis.status_reply()",
    "error('boom')",
    "error({err = 'CODE boom'})",
    "error('no place', 0)",
    "error('above', 2)",
    "return undefined_name",
    "global = 1",
    "redis.call = 1",
    "string.x = 1",
    "return KEYS[9]",
    "return nothing.at.all",
    "return ('x')()",
    "return 1 + {}",
    "return {} .. 'x'",
    "return #5",
    "return {} < {}",
    "local t = nil t.x = 1",
    "return function() end",
    "return redis.call()",
    "return redis.call({})",
    "return redis.call('get', nil)",
    "return redis.call('get', true)",
    "return redis.pcall('get')",
    "return redis.call('get')",
    "return redis.call('NOPE', 'x')",
    "return redis.pcall('multi')",
    "return redis.call('subscribe', 'c')",
    "return redis.call('eval', 'return 1', 0)",
    "return redis.sha1hex()",
    "return redis.sha1hex(1, 2)",
    "redis.log('x')",
    "redis.setresp()",
    "return redis.nope()",
    "return string.rep()",
    "return ('x'):bad()",
    "return setmetatable(_G, {})",
    "return rawset(_G, 'x', 1)",
    "return tostring(nil) .. tostring(1.5) .. tostring(1e15) .. tostring(2^53)",
    "return unpack({1, 2})",
    "syntax error here",
    "return return",
    "return 'open",
    "if true then",
];

const SHEBANGS: &[&str] = &[
    "#!lua\n",
    "#!lua flags=no-writes\n",
    "#!lua flags=allow-oom\n",
    "#!lua flags=no-writes,allow-stale\n",
    "#!lua flags=allow-cross-slot-keys,no-cluster\n",
    "#!lua flags=\n",
    "#!lua flags=nope\n",
    "#!lua x=y\n",
    "#!lua  flags=no-writes  \n",
    "#!py\n",
    "#!\n",
    "#!lua",
    "#!lua\n\n\n",
];

/// Returns a script around some calls, each given as the arguments of a command.
pub(super) fn script(random: &mut StdRng, calls: &[Vec<Vec<u8>>]) -> Vec<u8> {
    let mut text = String::new();
    if once_in(random, 8) {
        text.push_str(one_of(random, SHEBANGS));
    }
    text.push_str("local r = 0 ");
    if once_in(random, 6) {
        text.push_str("redis.setresp(3) ");
    }
    for call in calls {
        // Mostly calls that continue after an error, so that most scripts reach their end.
        let calls = [
            "r = redis.call",
            "r = redis.pcall",
            "r = redis.pcall",
            "redis.pcall",
        ];
        let how = one_of(random, &calls);
        let timed = TIMED
            .iter()
            .any(|name| call[0].eq_ignore_ascii_case(name.as_bytes()));
        let args: Vec<String> = call
            .iter()
            .map(|arg| literal(random, arg, !timed))
            .collect();
        text.push_str(&format!("{how}({}) ", args.join(",")));
        if once_in(random, 3) {
            text.push_str(one_of(random, STATEMENTS));
        }
        text.push_str(one_of(random, &[" ", "\n", "; "]));
    }
    text.push_str(if once_in(random, 3) {
        "return r"
    } else {
        one_of(random, ENDS)
    });
    text.into_bytes()
}

/// Returns an argument as a Lua literal: sometimes KEYS or ARGV if any value is possible, sometimes a number.
fn literal(random: &mut StdRng, arg: &[u8], anything: bool) -> String {
    match random.random_range(0..16) {
        0 if anything => return "KEYS[1]".to_owned(),
        1 if anything => return "ARGV[1]".to_owned(),
        _ => {}
    }
    let number = std::str::from_utf8(arg)
        .ok()
        .filter(|text| text.parse::<i32>().is_ok());
    if let Some(number) = number.filter(|_| once_in(random, 2)) {
        return number.trim_start_matches('+').to_owned();
    }
    let escaped = |byte: &u8| match byte {
        b' '..=b'~' if !matches!(byte, b'\'' | b'\\') => char::from(*byte).to_string(),
        _ => format!("\\{byte:03}"),
    };
    format!("'{}'", arg.iter().map(escaped).collect::<String>())
}

/// Returns keys and further arguments of a script, after their number.
pub(super) fn keys_and_argv(random: &mut StdRng) -> Vec<Vec<u8>> {
    let keys = random.random_range(0..3);
    let more = random.random_range(0..3);
    let said = match random.random_range(0..30) {
        0 => words::word(random, 'N'),
        _ => keys.to_string().into_bytes(),
    };
    let mut args = vec![said];
    args.extend((0..keys).map(|_| words::key(random, 'k')));
    args.extend((0..more).map(|_| words::word(random, 'v')));
    args
}
