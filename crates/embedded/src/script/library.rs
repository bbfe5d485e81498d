//! Contents of the table `redis`, and further functions for the sandbox. [`super::bridge`] has `redis.call` and
//! `redis.pcall`.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use mlua::{Function, Lua, MultiValue, Table, Value};

use super::{
    Sha,
    error::{self, Raised},
    native,
    random::Random,
};

/// Returns the functions from which the sandbox is built.
pub(super) fn host(
    lua: &Lua,
    resp3: &Arc<AtomicBool>,
    (call, pcall): (Function, Function),
) -> mlua::Result<Table> {
    let host = lua.create_table()?;
    let redis = redis_library(lua, resp3)?;
    redis.set("call", call)?;
    redis.set("pcall", pcall)?;
    host.set("redis", redis)?;
    host.set("plain", lua.create_function(error::plain)?)?;
    host.set("tabled", lua.create_function(error::tabled)?)?;
    host.set("located", lua.create_function(error::located)?)?;
    host.set("rawset", lua.create_function(native::rawset)?)?;
    host.set("setmetatable", lua.create_function(native::setmetatable)?)?;
    let random = Arc::new(Random::default());
    let seeded = random.clone();
    let draw = move |lua: &Lua, args| native::random(lua, &args, &random);
    host.set("random", lua.create_function(draw)?)?;
    let seed = move |lua: &Lua, args| native::randomseed(lua, &args, &seeded);
    host.set("randomseed", lua.create_function(seed)?)?;
    Ok(host)
}

fn redis_library(lua: &Lua, resp3: &Arc<AtomicBool>) -> mlua::Result<Table> {
    let redis = lua.create_table()?;
    redis.set("REDIS_VERSION", crate::REDIS_VERSION)?;
    redis.set("REDIS_VERSION_NUM", 0x0007_000F)?;
    for (at, name) in ["LOG_DEBUG", "LOG_VERBOSE", "LOG_NOTICE", "LOG_WARNING"]
        .iter()
        .enumerate()
    {
        redis.set(*name, at)?;
    }
    for (name, bits) in [
        ("NONE", 0),
        ("AOF", 1),
        ("SLAVE", 2),
        ("REPLICA", 2),
        ("ALL", 3),
    ] {
        redis.set(format!("REPL_{name}"), bits)?;
    }
    redis.set("sha1hex", lua.create_function(sha1hex)?)?;
    redis.set("log", lua.create_function(log)?)?;
    redis.set("error_reply", lua.create_function(error_reply)?)?;
    redis.set("status_reply", lua.create_function(status_reply)?)?;
    redis.set("replicate_commands", lua.create_function(|_, ()| Ok(true))?)?;
    redis.set("breakpoint", lua.create_function(|_, ()| Ok(false))?)?;
    redis.set("debug", lua.create_function(|_, _: MultiValue| Ok(()))?)?;
    redis.set("set_repl", lua.create_function(set_repl)?)?;
    let resp3 = resp3.clone();
    redis.set(
        "setresp",
        lua.create_function(move |lua, args| set_protocol(lua, &resp3, &args))?,
    )?;
    Ok(redis)
}

fn sha1hex(lua: &Lua, args: MultiValue) -> mlua::Result<mlua::LuaString> {
    let [value] = args.iter().collect::<Vec<_>>()[..] else {
        return Err(Raised::Reply("ERR wrong number of arguments".to_owned()).into());
    };
    let sha = match lua.coerce_string(value.clone())? {
        Some(text) => Sha::of(&text.as_bytes()),
        None => Sha::of(b""),
    };
    lua.create_string(sha.0)
}

fn log(lua: &Lua, args: MultiValue) -> mlua::Result<()> {
    let raise = |text: &str| Err(Raised::Reply(format!("ERR {text}")).into());
    if args.len() < 2 {
        return raise("redis.log() requires two arguments or more.");
    }
    let mut args = args.into_iter();
    let Some(level) = lua.coerce_number(args.next().unwrap_or_default())? else {
        return raise("First argument must be a number (log level).");
    };
    if !(0.0..4.0).contains(&level.trunc()) {
        return raise("Invalid debug level.");
    }
    let texts = args.filter_map(|arg| lua.coerce_string(arg).ok().flatten());
    let text = texts
        .map(|text| text.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ");
    match level {
        ..1.0 => tracing::trace!("script: {text}"),
        1.0..2.0 => tracing::debug!("script: {text}"),
        2.0..3.0 => tracing::info!("script: {text}"),
        _ => tracing::warn!("script: {text}"),
    }
    Ok(())
}

fn error_reply(lua: &Lua, args: MultiValue) -> mlua::Result<Table> {
    let text = match one_string(&args) {
        Some(text) => error::with_code(text.strip_prefix('-').unwrap_or(&text)),
        None => "ERR wrong number or type of arguments".to_owned(),
    };
    let table = lua.create_table()?;
    table.raw_set("err", text)?;
    Ok(table)
}

fn status_reply(lua: &Lua, args: MultiValue) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    match one_string(&args) {
        Some(text) => table.raw_set("ok", text)?,
        None => table.raw_set("err", "ERR wrong number or type of arguments")?,
    }
    Ok(table)
}

fn one_string(args: &MultiValue) -> Option<String> {
    match args.iter().collect::<Vec<_>>()[..] {
        [Value::String(text)] => Some(text.to_string_lossy()),
        _ => None,
    }
}

/// There are no replicas, and the log gets every write: the choice is checked and ignored.
fn set_repl(lua: &Lua, args: MultiValue) -> mlua::Result<()> {
    if args.len() != 1 {
        return Err(
            Raised::Reply("ERR redis.set_repl() requires two arguments.".to_owned()).into(),
        );
    }
    let flags = lua.coerce_integer(args.into_iter().next().unwrap_or_default())?;
    if !(0..=3).contains(&flags.unwrap_or(0)) {
        let text = "Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.";
        return Err(Raised::Reply(format!("ERR {text}")).into());
    }
    Ok(())
}

fn set_protocol(lua: &Lua, resp3: &AtomicBool, args: &MultiValue) -> mlua::Result<()> {
    let [version] = args.iter().collect::<Vec<_>>()[..] else {
        return Err(Raised::Reply("ERR redis.setresp() requires one argument.".to_owned()).into());
    };
    let version = lua.coerce_number(version.clone())?;
    match version.map(f64::trunc) {
        Some(2.0) => resp3.store(false, Ordering::Relaxed),
        Some(3.0) => resp3.store(true, Ordering::Relaxed),
        _ => return Err(Raised::Reply("ERR RESP version must be 2 or 3.".to_owned()).into()),
    }
    Ok(())
}
