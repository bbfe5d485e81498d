//! Errors in scripts: raised by the engine, caught by `pcall`, or the end of the script.

use mlua::{Lua, Result, Table, Value};

/// An error that a function of the engine raises.
#[derive(Debug, thiserror::Error)]
pub(super) enum Raised {
    /// An error of `redis.call` and similar functions, a table for scripts: its text with the code.
    #[error("{0}")]
    Reply(String),
    /// An error like those of Lua's own functions, a string for scripts.
    #[error("{0}")]
    Text(String),
}

impl From<Raised> for mlua::Error {
    fn from(raised: Raised) -> Self {
        Self::external(raised)
    }
}

/// Chunk name of the code between the engine and scripts.
pub(super) const SANDBOX: &str = "=sandbox";

/// Number of frames that are searched for the script's line of an error.
const FRAMES_MAX: usize = 16;

/// Returns an error reply as a table, as `redis.pcall` returns it.
pub(super) fn error_table(lua: &Lua, text: &str) -> Result<Table> {
    let table = lua.create_table_with_capacity(0, 2)?;
    table.raw_set("err", text)?;
    table.raw_set("ignore_error_stats_update", true)?;
    Ok(table)
}

/// Returns the text of an error with its code: a word, then the rest. Without two words it gets `ERR`.
pub(super) fn with_code(text: &str) -> String {
    let (code, message) = text.split_once(' ').unwrap_or(("ERR", text));
    format!("{code} {}", message.trim_matches(['\r', '\n']))
}

/// Returns the text of an error, and `true` if the text is an error reply.
fn describe(error: &mlua::Error) -> (String, bool) {
    match error.downcast_ref::<Raised>() {
        Some(Raised::Reply(text)) => (text.clone(), true),
        Some(Raised::Text(text)) => (text.clone(), false),
        None => (
            error
                .to_string()
                .lines()
                .next()
                .unwrap_or_default()
                .to_owned(),
            false,
        ),
    }
}

/// Returns an error as a handler of `xpcall` and `coroutine.resume` gets it: one that `redis.call` raised is a table
/// with the field `err`.
pub(super) fn tabled(lua: &Lua, error: Value) -> Result<Value> {
    let Value::Error(error) = error else {
        return Ok(error);
    };
    let (text, is_reply) = describe(&error);
    Ok(if is_reply {
        Value::Table(error_table(lua, &text)?)
    } else {
        Value::String(lua.create_string(text)?)
    })
}

/// Returns an error as `pcall` returns it: the text only.
pub(super) fn plain(lua: &Lua, error: Value) -> Result<Value> {
    match tabled(lua, error)? {
        Value::Table(table) => match table.get::<Value>("err")? {
            text @ (Value::String(_) | Value::Integer(_) | Value::Number(_)) => Ok(text),
            _ => Ok(Value::Table(table)),
        },
        other => Ok(other),
    }
}

/// Handles uncaught errors of a script: returns a table with the position of the error.
pub(super) fn located(lua: &Lua, error: Value) -> Result<Value> {
    let table = match tabled(lua, error)? {
        Value::Table(table) => table,
        other => {
            let text = other
                .to_string()
                .unwrap_or_else(|_| other.type_name().to_owned());
            error_table(lua, &format!("ERR {text}"))?
        }
    };
    if let Some((source, line)) = place(lua) {
        table.raw_set("source", source)?;
        table.raw_set("line", line)?;
    }
    Ok(Value::Table(table))
}

/// Returns the source and line for an error: those of the function that raised it, or of its caller if that was not
/// written in Lua.
fn place(lua: &Lua) -> Option<(String, i64)> {
    let frame = |level| {
        lua.inspect_stack(level, |debug| {
            let source = debug.source();
            let name = source
                .source
                .map(|name| name.into_owned())
                .unwrap_or_default();
            let line = debug
                .current_line()
                .and_then(|line| i64::try_from(line).ok());
            (source.what == "C", name, line.unwrap_or(-1))
        })
    };
    let mut level = 1;
    if frame(level)?.0 {
        level += 1;
    }
    for level in level..FRAMES_MAX {
        let (_, source, line) = frame(level)?;
        if source != SANDBOX {
            return Some((source, line));
        }
    }
    None
}

/// Returns the error reply of a script that ended with `error`, a table of [`located`].
pub(super) fn reply_text(error: &Table, sha: &str) -> Result<String> {
    let field = |name: &str| -> Result<Option<String>> {
        Ok(match error.get::<Value>(name)? {
            Value::String(text) => Some(text.to_string_lossy()),
            Value::Integer(value) => Some(value.to_string()),
            Value::Number(value) => Some(value.to_string()),
            _ => None,
        })
    };
    let text = field("err")?.unwrap_or_else(|| "ERR a table without the field 'err'".to_owned());
    let text = text.trim_end_matches(['\r', '\n']);
    Ok(match (field("source")?, field("line")?) {
        (Some(source), Some(line)) => format!("{text} script: {sha}, on {source}:{line}."),
        _ => text.to_owned(),
    })
}
