//! Values on the stack of Lua: arguments of commands, replies for scripts, and results of scripts as replies, by the
//! rules of Redis 7.0. Numbers lose their fraction, an array ends at the first nil, `{ok=…}` and `{err=…}` are
//! special replies.

use std::{ffi::c_int, slice};

use bytes::Bytes;
use mlua::ffi::{self, lua_State};

use crate::{Protocol, Reply, resp::double_text};

/// Greatest nesting of tables: no reader of a reply accepts more, and a table may contain itself.
const DEPTH_MAX: usize = 128;

/// Stack slots for one level of a value: the table, a key, a value, and a nested table.
const LEVEL_SLOTS: c_int = 6;

/// Above this, doubles do not represent each integer, and are written with an exponent.
const EXACT_MAX: f64 = 1e17;

/// Returns the arguments of a command: those of the running function.
pub(super) unsafe fn arguments(state: *mut lua_State) -> Result<Vec<Bytes>, String> {
    let count = unsafe { ffi::lua_gettop(state) };
    if count == 0 {
        return Err("ERR Please specify at least one argument for this redis lib call".to_owned());
    }
    let mut arguments = Vec::with_capacity(usize::try_from(count).unwrap_or(0));
    for at in 1..=count {
        // SAFETY: the position is one of the arguments.
        arguments.push(match unsafe { ffi::lua_type(state, at) } {
            ffi::LUA_TSTRING => Bytes::copy_from_slice(unsafe { string(state, at) }),
            ffi::LUA_TNUMBER => number_text(unsafe { ffi::lua_tonumber(state, at) }).into(),
            _ => {
                let text = "ERR Lua redis lib command arguments must be strings or integers";
                return Err(text.to_owned());
            }
        });
    }
    Ok(arguments)
}

/// Formats a number as an argument.
#[allow(
    clippy::cast_possible_truncation,
    reason = "checked to be an integer in range"
)]
fn number_text(number: f64) -> String {
    if number.abs() < EXACT_MAX
        && number.trunc() == number
        && (number != 0.0 || number.is_sign_positive())
    {
        (number as i64).to_string()
    } else {
        double_text(number)
    }
}

/// Returns the string at a position of the stack, valid as long as it is there.
unsafe fn string<'a>(state: *mut lua_State, at: c_int) -> &'a [u8] {
    let mut len = 0;
    // SAFETY: the caller has checked that it is a string, and keeps it on the stack.
    unsafe {
        let text = ffi::lua_tolstring(state, at, &raw mut len);
        slice::from_raw_parts(text.cast(), len)
    }
}

/// Returns the text at a position of the stack, if it is a string.
pub(super) unsafe fn text(state: *mut lua_State, at: c_int) -> Option<String> {
    unsafe {
        let is_string = ffi::lua_type(state, at) == ffi::LUA_TSTRING;
        is_string.then(|| String::from_utf8_lossy(string(state, at)).into_owned())
    }
}

unsafe fn push_string(state: *mut lua_State, text: &[u8]) {
    unsafe { ffi::lua_pushlstring(state, text.as_ptr().cast(), text.len()) };
}

/// Pushes an array of strings.
pub(super) unsafe fn push_list(state: *mut lua_State, items: &[Bytes]) {
    unsafe {
        ffi::lua_createtable(state, c_int::try_from(items.len()).unwrap_or(0), 0);
        for (at, item) in (1..).zip(items) {
            push_string(state, item);
            ffi::lua_rawseti(state, -2, at);
        }
    }
}

/// Pushes a reply in the form for scripts.
pub(super) unsafe fn push(state: *mut lua_State, reply: &Reply, protocol: Protocol) {
    let resp3 = protocol == Protocol::Resp3;
    unsafe {
        if ffi::lua_checkstack(state, LEVEL_SLOTS) == 0 {
            // Replies of commands are never nested so deeply.
            return ffi::lua_pushnil(state);
        }
        match reply {
            Reply::Nil | Reply::NilArray if resp3 => ffi::lua_pushnil(state),
            Reply::Nil | Reply::NilArray | Reply::Nothing => ffi::lua_pushboolean(state, 0),
            Reply::Status(text) => {
                push_field(state, "ok", |state| push_string(state, text.as_bytes()));
            }
            Reply::Error(text) => {
                push_field(state, "err", |state| push_string(state, text.as_bytes()));
                push_string(state, b"ignore_error_stats_update");
                ffi::lua_pushboolean(state, 1);
                ffi::lua_rawset(state, -3);
            }
            #[allow(clippy::cast_precision_loss, reason = "Lua has no other numbers")]
            Reply::Int(value) => ffi::lua_pushnumber(state, *value as f64),
            Reply::Bulk(bytes) => push_string(state, bytes),
            Reply::Set(items) if resp3 => push_field(state, "set", |state| {
                push_keyed(state, items.iter().map(|item| (item, &Reply::Bool(true))));
            }),
            Reply::Array(items) | Reply::Push(items) | Reply::Set(items) => {
                push_array(state, items.iter(), items.len(), protocol);
            }
            Reply::Map(pairs) if resp3 => push_field(state, "map", |state| {
                push_keyed(state, pairs.iter().map(|(key, value)| (key, value)));
            }),
            Reply::Map(pairs) => {
                let items = pairs.iter().flat_map(|(key, value)| [key, value]);
                push_array(state, items, pairs.len() * 2, protocol);
            }
            Reply::Double(value) if resp3 => {
                push_field(state, "double", |state| ffi::lua_pushnumber(state, *value));
            }
            Reply::Double(value) => push_string(state, double_text(*value).as_bytes()),
            Reply::Bool(value) if resp3 => ffi::lua_pushboolean(state, (*value).into()),
            Reply::Bool(value) => ffi::lua_pushnumber(state, f64::from(u8::from(*value))),
            Reply::BigNumber(digits) if resp3 => {
                push_field(state, "big_number", |state| {
                    push_string(state, digits.as_bytes());
                });
            }
            Reply::Verbatim(text) if resp3 => push_field(state, "verbatim_string", |state| {
                push_field(state, "string", |state| push_string(state, text.as_bytes()));
                push_string(state, b"format");
                push_string(state, b"txt");
                ffi::lua_rawset(state, -3);
            }),
            Reply::BigNumber(text) | Reply::Verbatim(text) => push_string(state, text.as_bytes()),
        }
    }
}

/// Pushes a table with one field; `push` pushes its value.
unsafe fn push_field(state: *mut lua_State, name: &str, push: impl FnOnce(*mut lua_State)) {
    unsafe {
        ffi::lua_createtable(state, 0, 2);
        push_string(state, name.as_bytes());
        push(state);
        ffi::lua_rawset(state, -3);
    }
}

unsafe fn push_array<'a>(
    state: *mut lua_State,
    items: impl Iterator<Item = &'a Reply>,
    len: usize,
    protocol: Protocol,
) {
    // Reserved capacity would change the result of `#` for an array with nils, which only RESP3 has.
    let room = if protocol == Protocol::Resp3 { 0 } else { len };
    unsafe {
        ffi::lua_createtable(state, c_int::try_from(room).unwrap_or(0), 0);
        for (at, item) in (1..).zip(items) {
            push(state, item, protocol);
            ffi::lua_rawseti(state, -2, at);
        }
    }
}

/// Pushes a table of RESP3, without values that cannot be keys.
unsafe fn push_keyed<'a>(
    state: *mut lua_State,
    pairs: impl Iterator<Item = (&'a Reply, &'a Reply)>,
) {
    unsafe {
        ffi::lua_createtable(state, 0, 0);
        for (key, value) in pairs {
            let number_or_nil = matches!(key, Reply::Nil | Reply::NilArray | Reply::Double(_));
            if !number_or_nil {
                push(state, key, Protocol::Resp3);
                push(state, value, Protocol::Resp3);
                ffi::lua_rawset(state, -3);
            }
        }
    }
}

/// Reads the result of a script, at the top of the stack, as a reply. `protocol` is the script's choice.
pub(super) unsafe fn read(state: *mut lua_State, protocol: Protocol) -> Reply {
    unsafe { nested(state, protocol, 0) }
}

unsafe fn nested(state: *mut lua_State, protocol: Protocol, depth: usize) -> Reply {
    unsafe {
        if depth > DEPTH_MAX || ffi::lua_checkstack(state, LEVEL_SLOTS) == 0 {
            return Reply::Error("ERR reached lua stack limit".to_owned());
        }
        match ffi::lua_type(state, -1) {
            ffi::LUA_TSTRING => Reply::Bulk(Bytes::copy_from_slice(string(state, -1))),
            ffi::LUA_TBOOLEAN => match ffi::lua_toboolean(state, -1) != 0 {
                value if protocol == Protocol::Resp3 => Reply::Bool(value),
                true => Reply::Int(1),
                false => Reply::Nil,
            },
            ffi::LUA_TNUMBER => Reply::Int(truncated(ffi::lua_tonumber(state, -1))),
            ffi::LUA_TTABLE => table(state, protocol, depth + 1),
            _ => Reply::Nil,
        }
    }
}

/// Converts like C on the machines that Redis runs on: values out of range become the least integer.
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

/// Reads the table at the top of the stack.
unsafe fn table(state: *mut lua_State, protocol: Protocol, depth: usize) -> Reply {
    unsafe {
        let a_text = || text(state, -1);
        if let Some(text) = field(state, "err", a_text) {
            return Reply::Error(text.trim_end_matches(['\r', '\n']).to_owned());
        }
        if let Some(text) = field(state, "ok", a_text) {
            return Reply::Status(one_line(&text));
        }
        let a_number = || {
            let is_number = ffi::lua_type(state, -1) == ffi::LUA_TNUMBER;
            is_number.then(|| ffi::lua_tonumber(state, -1))
        };
        if let Some(number) = field(state, "double", a_number) {
            return Reply::Double(number);
        }
        if let Some(digits) = field(state, "big_number", a_text) {
            return Reply::BigNumber(one_line(&digits));
        }
        if let Some(text) = field(state, "verbatim_string", || verbatim(state)) {
            return Reply::Verbatim(text);
        }
        if let Some(pairs) = field(state, "map", || pairs(state, protocol, depth)) {
            return Reply::Map(pairs);
        }
        if let Some(pairs) = field(state, "set", || pairs(state, protocol, depth)) {
            return Reply::Set(pairs.into_iter().map(|(key, _)| key).collect());
        }
        let mut items = Vec::with_capacity(ffi::lua_objlen(state, -1));
        for at in 1.. {
            if ffi::lua_rawgeti(state, -1, at) == ffi::LUA_TNIL {
                ffi::lua_pop(state, 1);
                break;
            }
            items.push(nested(state, protocol, depth));
            ffi::lua_pop(state, 1);
        }
        Reply::Array(items)
    }
}

/// Applies `read` to a field of the table at the top of the stack, while the field is on the top.
unsafe fn field<T>(
    state: *mut lua_State,
    name: &str,
    read: impl FnOnce() -> Option<T>,
) -> Option<T> {
    unsafe {
        push_string(state, name.as_bytes());
        ffi::lua_rawget(state, -2);
        let value = read();
        ffi::lua_pop(state, 1);
        value
    }
}

unsafe fn verbatim(state: *mut lua_State) -> Option<String> {
    unsafe {
        if ffi::lua_type(state, -1) != ffi::LUA_TTABLE {
            return None;
        }
        field(state, "format", || text(state, -1))?;
        field(state, "string", || text(state, -1))
    }
}

/// Returns the keys and values of the table at the top of the stack.
unsafe fn pairs(
    state: *mut lua_State,
    protocol: Protocol,
    depth: usize,
) -> Option<Vec<(Reply, Reply)>> {
    unsafe {
        if ffi::lua_type(state, -1) != ffi::LUA_TTABLE {
            return None;
        }
        let mut pairs = Vec::new();
        ffi::lua_pushnil(state);
        while ffi::lua_next(state, -2) != 0 {
            let value = nested(state, protocol, depth);
            ffi::lua_pop(state, 1);
            pairs.push((nested(state, protocol, depth), value));
        }
        Some(pairs)
    }
}

fn one_line(text: &str) -> String {
    text.replace(['\r', '\n'], " ")
}
