//! Replies as values of Lua and back, by the rules of Redis 7.0: numbers lose their fraction, an
//! array ends at the first nil, `{ok=…}` and `{err=…}` are replies of their own.

use bytes::Bytes;
use mlua::{Lua, Result, Table, Value};

use super::error::error_table;
use crate::{Protocol, Reply, resp::double_text};

/// Tables nested deeper are refused: no reader of a reply goes as deep, and a table may hold
/// itself.
const DEPTH_MAX: usize = 128;

/// The fields by which a table says what kind of reply it is.
const KINDS: [&str; 6] = [
    "err",
    "ok",
    "double",
    "big_number",
    "verbatim_string",
    "map",
];

/// A reply as a script gets it.
pub(super) fn to_lua(lua: &Lua, reply: Reply, protocol: Protocol) -> Result<Value> {
    let resp3 = protocol == Protocol::Resp3;
    Ok(match reply {
        Reply::Nil | Reply::NilArray if resp3 => Value::Nil,
        Reply::Nil | Reply::NilArray | Reply::Nothing => Value::Boolean(false),
        Reply::Status(text) => single(lua, "ok", lua.create_string(text)?)?,
        Reply::Error(text) => Value::Table(error_table(lua, &text)?),
        Reply::Int(value) => Value::Integer(value),
        Reply::Bulk(bytes) => Value::String(lua.create_string(&bytes)?),
        Reply::Array(items) | Reply::Push(items) => array(lua, items, protocol)?,
        Reply::Set(items) if resp3 => {
            let set = lua.create_table()?;
            for item in items {
                set.raw_set(to_lua(lua, item, protocol)?, true)?;
            }
            single(lua, "set", set)?
        }
        Reply::Set(items) => array(lua, items, protocol)?,
        Reply::Map(pairs) if resp3 => {
            let map = lua.create_table()?;
            for (key, value) in pairs {
                map.raw_set(to_lua(lua, key, protocol)?, to_lua(lua, value, protocol)?)?;
            }
            single(lua, "map", map)?
        }
        Reply::Map(pairs) => {
            let items = pairs
                .into_iter()
                .flat_map(|(key, value)| [key, value])
                .collect();
            array(lua, items, protocol)?
        }
        Reply::Double(value) if resp3 => single(lua, "double", value)?,
        Reply::Double(value) => Value::String(lua.create_string(double_text(value))?),
        Reply::Bool(value) if resp3 => Value::Boolean(value),
        Reply::Bool(value) => Value::Integer(value.into()),
        Reply::BigNumber(digits) if resp3 => single(lua, "big_number", digits)?,
        Reply::BigNumber(digits) => Value::String(lua.create_string(digits)?),
        Reply::Verbatim(text) if resp3 => {
            let verbatim = lua.create_table()?;
            verbatim.raw_set("string", text)?;
            verbatim.raw_set("format", "txt")?;
            single(lua, "verbatim_string", verbatim)?
        }
        Reply::Verbatim(text) => Value::String(lua.create_string(text)?),
    })
}

fn single(lua: &Lua, field: &str, value: impl mlua::IntoLua) -> Result<Value> {
    let table = lua.create_table_with_capacity(0, 1)?;
    table.raw_set(field, value)?;
    Ok(Value::Table(table))
}

fn array(lua: &Lua, items: Vec<Reply>, protocol: Protocol) -> Result<Value> {
    // Room made in advance would change what `#` says of an array with nils in it, which only
    // RESP3 brings.
    let room = if protocol == Protocol::Resp3 {
        0
    } else {
        items.len()
    };
    let table = lua.create_table_with_capacity(room, 0)?;
    for (at, item) in items.into_iter().enumerate() {
        table.raw_set(at + 1, to_lua(lua, item, protocol)?)?;
    }
    Ok(Value::Table(table))
}

/// What a script returned as a reply. `protocol` is the one that the script has chosen.
pub(super) fn to_reply(value: &Value, protocol: Protocol) -> Result<Reply> {
    nested(value, protocol, 0)
}

fn nested(value: &Value, protocol: Protocol, depth: usize) -> Result<Reply> {
    if depth > DEPTH_MAX {
        return Ok(Reply::Error("ERR reached lua stack limit".to_owned()));
    }
    Ok(match value {
        Value::String(text) => Reply::Bulk(Bytes::copy_from_slice(&text.as_bytes())),
        Value::Boolean(value) if protocol == Protocol::Resp3 => Reply::Bool(*value),
        Value::Boolean(true) => Reply::Int(1),
        Value::Integer(value) => Reply::Int(*value),
        Value::Number(value) => Reply::Int(truncated(*value)),
        Value::Table(table) => table_reply(table, protocol, depth + 1)?,
        _ => Reply::Nil,
    })
}

/// C's conversion on the machines that Redis runs on: what does not fit is the least integer.
#[allow(
    clippy::cast_possible_truncation,
    reason = "checked to be within the integers"
)]
fn truncated(value: f64) -> i64 {
    let limit = 2_f64.powi(63);
    if value >= -limit && value < limit {
        value as i64
    } else {
        i64::MIN
    }
}

fn table_reply(table: &Table, protocol: Protocol, depth: usize) -> Result<Reply> {
    for kind in KINDS {
        let reply = match (kind, table.raw_get::<Value>(kind)?) {
            ("err", Value::String(text)) => {
                let text = text.to_string_lossy();
                Reply::Error(text.trim_end_matches(['\r', '\n']).to_owned())
            }
            ("ok", Value::String(text)) => {
                Reply::Status(text.to_string_lossy().replace(['\r', '\n'], " "))
            }
            ("double", Value::Number(value)) => Reply::Double(value),
            #[allow(clippy::cast_precision_loss, reason = "it was a double before")]
            ("double", Value::Integer(value)) => Reply::Double(value as f64),
            ("big_number", Value::String(text)) => {
                Reply::BigNumber(text.to_string_lossy().replace(['\r', '\n'], " "))
            }
            ("verbatim_string", Value::Table(verbatim)) => {
                match (verbatim.raw_get("format")?, verbatim.raw_get("string")?) {
                    (Value::String(_), Value::String(text)) => {
                        Reply::Verbatim(text.to_string_lossy())
                    }
                    _ => continue,
                }
            }
            ("map", Value::Table(map)) => {
                let mut pairs = Vec::new();
                for pair in map.pairs::<Value, Value>() {
                    let (key, value) = pair?;
                    pairs.push((
                        nested(&key, protocol, depth)?,
                        nested(&value, protocol, depth)?,
                    ));
                }
                Reply::Map(pairs)
            }
            _ => continue,
        };
        return Ok(reply);
    }
    if let Value::Table(set) = table.raw_get::<Value>("set")? {
        let keys = set
            .pairs::<Value, Value>()
            .map(|pair| nested(&pair?.0, protocol, depth));
        return Ok(Reply::Set(keys.collect::<Result<_>>()?));
    }
    let mut items = Vec::with_capacity(table.raw_len());
    for at in 1.. {
        match table.raw_get::<Value>(at)? {
            Value::Nil => break,
            item => items.push(nested(&item, protocol, depth)?),
        }
    }
    Ok(Reply::Array(items))
}
