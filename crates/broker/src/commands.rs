//! Commands that Meshwork sends to a server, as examples, and the question to the server which of them a user may send.

use std::collections::BTreeSet;

use redis::RedisResult;

use crate::conn::Conn;

/// Beginning of the error of a script whose user lacks rights; their names follow.
pub(crate) const LACKS: &str = "missing rights: ";

/// Every command that Meshwork sends, inside and outside of scripts, as an example for a key `K`. The tests run all
/// verbs as a user with exactly these rights.
pub(crate) const COMMANDS: [&str; 69] = [
    "blmove K K LEFT RIGHT 1",
    "blpop K 1",
    "client|id",
    "client|tracking ON",
    "client|unblock 1",
    "cluster|slots",
    "del K",
    "eval s 1 K",
    "evalsha s 1 K",
    "evalsha_ro s 1 K",
    "exists K",
    "get K",
    "hdel K f",
    "hello",
    "hexists K f",
    "hget K f",
    "hgetall K",
    "hincrby K f 1",
    "hlen K",
    "hmget K f",
    "hset K f v",
    "hsetnx K f v",
    "hstrlen K f",
    "incr K",
    "info",
    "llen K",
    "lmove K K LEFT RIGHT",
    "lmpop 1 K RIGHT",
    "lpop K",
    "lpos K v",
    "lpush K v",
    "lrange K 0 1",
    "lrem K 0 v",
    "ltrim K 0 1",
    "persist K",
    "pexpire K 1",
    "ping",
    "role",
    "rpop K",
    "rpush K v",
    "sadd K v",
    "scan 0",
    "scard K",
    "script|exists s",
    "script|load s",
    "select 0",
    "set K v",
    "sismember K v",
    "srem K v",
    "sscan K 0",
    "time",
    "type K",
    "wait 1 1",
    "xadd K * f v",
    "xrange K - +",
    "xread STREAMS K 0",
    "xrevrange K + -",
    "zadd K 1 v",
    "zcard K",
    "zpopmin K",
    "zrange K 0 1",
    "zrangebyscore K 0 1",
    "zrank K v",
    "zrem K v",
    "zremrangebyscore K 0 1",
    "zrevrangebyscore K 1 0",
    "zscan K 0",
    "zscore K v",
    "acl|whoami",
];

/// Additional commands for jobs of Bananas.
pub(crate) const BANANAS_COMMANDS: [&str; 4] = [
    "getrange K 0 1",
    "publish c m",
    "subscribe c",
    "unsubscribe c",
];

/// Additional commands for actions of Nooble4, as examples for a key or a channel `K`.
pub(crate) const NOOBLE_COMMANDS: [&str; 13] = [
    "blmpop 1 1 K RIGHT",
    "persist K",
    "pttl K",
    "publish K m",
    "subscribe K",
    "xack K g 1-1",
    "xclaim K g c 0 1-1",
    "xdel K 1-1",
    "xgroup CREATE K g 0",
    "xinfo STREAM K",
    "xpending K g",
    "xreadgroup GROUP g c STREAMS K >",
    "xtrim K MAXLEN 1",
];

/// A script that returns the commands of ARGV that this user may not send.
const MAY_NOT: &str = "\
local denied = {}
for at, command in ipairs(ARGV) do
  local words = {}
  for word in string.gmatch(command, '%S+') do words[#words + 1] = word end
  local known, may = pcall(redis.acl_check_cmd, unpack(words))
  if known and not may then denied[#denied + 1] = at end
end
return denied";

pub(crate) fn name(command: &str) -> &str {
    command.split(' ').next().unwrap_or(command)
}

/// Returns the example of a command among those that every script may send and `besides`.
pub(crate) fn example(besides: &[&'static str], command: &str) -> Option<&'static str> {
    let mut all = COMMANDS.iter().chain(besides);
    all.find(|it| name(it).eq_ignore_ascii_case(command))
        .copied()
}

/// Returns the names of commands that a script or a call lacked, by the server's error. `None` if it names none.
pub(crate) fn lacked(detail: &str) -> Option<Vec<&'static str>> {
    let names = match detail.split_once(LACKS) {
        Some((_, names)) => names,
        // The server's text for a command outside of scripts.
        None => {
            let (_, rest) = detail.split_once("permissions to run the '")?;
            rest.split('\'').next()?
        }
    };
    let all = || {
        COMMANDS
            .iter()
            .chain(&BANANAS_COMMANDS)
            .chain(&NOOBLE_COMMANDS)
    };
    let known = |word: &str| all().map(|it| name(it)).find(|it| *it == word);
    let lacked: Vec<_> = names.split_whitespace().filter_map(known).collect();
    (!lacked.is_empty()).then_some(lacked)
}

/// Returns the commands that the server does not have, since its configuration renames them. Empty if it cannot answer.
pub(crate) async fn missing(conn: &Conn) -> Vec<String> {
    let whole = |command: &&'static str| name(command).split('|').next().unwrap_or_default();
    let names: BTreeSet<_> = COMMANDS.iter().map(whole).collect();
    let mut about = redis::cmd("COMMAND");
    about.arg("INFO");
    for name in &names {
        about.arg(*name);
    }
    let about: Result<Vec<redis::Value>, _> = about.query_async(&mut conn.clone()).await;
    let pairs = names.into_iter().zip(about.unwrap_or_default());
    let unknown = pairs.filter(|(_, about)| *about == redis::Value::Nil);
    unknown.map(|(name, _)| name.to_uppercase()).collect()
}

/// Returns the commands among these that this user may not send for a key.
pub(crate) async fn may_not_say(
    conn: &Conn,
    key: &str,
    commands: &[&'static str],
) -> RedisResult<Vec<&'static str>> {
    let mut script = redis::cmd("EVAL");
    script.arg(MAY_NOT).arg(0);
    for command in commands {
        script.arg(command.replace('|', " ").replace(" K", &format!(" {key}")));
    }
    let denied: Vec<usize> = script.query_async(&mut conn.clone()).await?;
    let name = |at: usize| Some(name(commands.get(at.checked_sub(1)?)?));
    Ok(denied.into_iter().filter_map(name).collect())
}

/// Returns the commands of a script, with the call itself, that this user may not send for a key. `None` if the
/// server cannot answer.
pub(crate) async fn may_not(
    conn: &Conn,
    key: &str,
    needed: &BTreeSet<&'static str>,
) -> Option<Vec<&'static str>> {
    let call = COMMANDS.into_iter().filter(|it| name(it) == "evalsha");
    let all: Vec<_> = call.chain(needed.iter().copied()).collect();
    may_not_say(conn, key, &all).await.ok()
}
