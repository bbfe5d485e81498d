//! Replacements for functions of Lua's own library that are unsafe for scripts. They are not written in Lua: a Lua
//! function that is called as `return f()` replaces its caller, and an error could no longer name the line of the
//! script.

use mlua::{Lua, MultiValue, Result, Table, Value};

use super::{error::Raised, random::Random};

const READONLY: &str = "Attempt to modify a readonly table";

/// Returns whether a table belongs to the sandbox, which marks its tables.
fn is_guarded(table: &Table) -> Result<bool> {
    table
        .metatable()
        .map_or(Ok(false), |meta| meta.contains_key("__guarded"))
}

fn refuse<T>(text: &str) -> Result<T> {
    Err(Raised::Text(text.to_owned()).into())
}

/// Raises an error that begins with the calling line of the script.
fn refuse_here<T>(lua: &Lua, text: &str) -> Result<T> {
    let place = lua.inspect_stack(1, |debug| {
        let source = debug.source().short_src.map(std::borrow::Cow::into_owned);
        Some(format!("{}:{}: ", source?, debug.current_line()?))
    });
    refuse(&format!("{}{text}", place.flatten().unwrap_or_default()))
}

fn bad_argument<T>(lua: &Lua, at: usize, name: &str, why: &str) -> Result<T> {
    refuse_here(lua, &format!("bad argument #{at} to '{name}' ({why})"))
}

fn kind(value: Option<&Value>) -> &'static str {
    match value {
        None => "no value",
        Some(Value::Integer(_) | Value::Number(_)) => "number",
        Some(value) => value.type_name(),
    }
}

fn table<'a>(lua: &Lua, args: &'a MultiValue, name: &str) -> Result<&'a Table> {
    match args.front() {
        Some(Value::Table(table)) => Ok(table),
        other => {
            let why = format!("table expected, got {}", kind(other));
            bad_argument(lua, 1, name, &why)
        }
    }
}

pub(super) fn rawset(lua: &Lua, args: MultiValue) -> Result<Table> {
    let table = table(lua, &args, "rawset")?;
    if is_guarded(table)? {
        return refuse(READONLY);
    }
    match (args.get(1), args.get(2)) {
        (Some(Value::Nil), Some(_)) => refuse("index is nil"),
        (Some(Value::Number(key)), Some(_)) if key.is_nan() => refuse("index is NaN"),
        (Some(key), Some(value)) => {
            table.raw_set(key, value)?;
            Ok(table.clone())
        }
        (key, _) => {
            let at = if key.is_none() { 2 } else { 3 };
            bad_argument(lua, at, "rawset", "value expected")
        }
    }
}

pub(super) fn setmetatable(lua: &Lua, args: MultiValue) -> Result<Table> {
    let table = table(lua, &args, "setmetatable")?;
    let meta = match args.get(1) {
        Some(Value::Nil) => None,
        Some(Value::Table(meta)) => Some(meta.clone()),
        _ => return bad_argument(lua, 2, "setmetatable", "nil or table expected"),
    };
    if is_guarded(table)? {
        return refuse(READONLY);
    }
    if let Some(before) = table.metatable()
        && !before.raw_get::<Value>("__metatable")?.is_nil()
    {
        return refuse_here(lua, "cannot change a protected metatable");
    }
    table.set_metatable(meta)?;
    Ok(table.clone())
}

/// Returns an argument as C converts an integer.
#[allow(clippy::cast_possible_truncation, reason = "as C does it")]
fn integer(lua: &Lua, args: &MultiValue, at: usize, name: &str) -> Result<i32> {
    let value = args.get(at - 1);
    match lua.coerce_number(value.cloned().unwrap_or(Value::Nil))? {
        Some(number) => Ok(number as i32),
        None => {
            let why = format!("number expected, got {}", kind(value));
            bad_argument(lua, at, name, &why)
        }
    }
}

pub(super) fn random(lua: &Lua, args: &MultiValue, random: &Random) -> Result<f64> {
    let drawn = random.next();
    let (low, high) = match args.len() {
        0 => return Ok(drawn),
        1 => (1, integer(lua, args, 1, "random")?),
        2 => (
            integer(lua, args, 1, "random")?,
            integer(lua, args, 2, "random")?,
        ),
        _ => return refuse_here(lua, "wrong number of arguments"),
    };
    if low > high {
        return bad_argument(lua, args.len(), "random", "interval is empty");
    }
    Ok((drawn * (f64::from(high) - f64::from(low) + 1.0)).floor() + f64::from(low))
}

pub(super) fn randomseed(lua: &Lua, args: &MultiValue, random: &Random) -> Result<()> {
    random.seed(integer(lua, args, 1, "randomseed")?);
    Ok(())
}
