//! Functions of the table `table` that are slow on large tables. They call Lua's own functions after a check of the
//! time, because a hook counts such a call as one instruction.

use std::ffi::{CStr, c_int};

use mlua::ffi::{self, lua_State};

use super::{Host, raise_stopped};
use crate::script::{
    pattern::Effort as _,
    watchdog::{STEPS, Work},
};

/// The functions, by name.
pub(super) const FUNCTIONS: [(&CStr, ffi::lua_CFunction); 7] = [
    (c"concat", whole),
    (c"foreach", whole),
    (c"foreachi", whole),
    (c"insert", insert),
    (c"maxn", whole),
    (c"remove", remove),
    (c"sort", whole),
];

/// Number of upvalues: the host, and Lua's own function.
pub(super) const UPVALUES: c_int = 2;
const HOST: c_int = 1;
const ORIGINAL: c_int = 2;

/// Number of arguments of `insert` when it moves no items.
const APPENDED: c_int = 2;
/// Number of arguments of `remove` when it moves no items.
const POPPED: c_int = 1;

/// Scans a whole table.
unsafe extern "C-unwind" fn whole(state: *mut lua_State) -> c_int {
    unsafe { timed(state, STEPS) }
}

unsafe extern "C-unwind" fn insert(state: *mut lua_State) -> c_int {
    unsafe { timed(state, moved(state, APPENDED)) }
}

unsafe extern "C-unwind" fn remove(state: *mut lua_State) -> c_int {
    unsafe { timed(state, moved(state, POPPED)) }
}

/// Returns the greatest number of moved items.
unsafe fn moved(state: *mut lua_State, without: c_int) -> usize {
    unsafe {
        let moves = ffi::lua_gettop(state) > without;
        match moves && ffi::lua_type(state, 1) == ffi::LUA_TTABLE {
            true => ffi::lua_objlen(state, 1),
            false => 0,
        }
    }
}

/// Calls Lua's own function with the same arguments, unless the time is over.
unsafe fn timed(state: *mut lua_State, steps: usize) -> c_int {
    unsafe {
        let host: *mut Host = ffi::lua_touserdata(state, ffi::lua_upvalueindex(HOST)).cast();
        let work: &mut Work = &mut (*host).work;
        if work.spend(steps).is_err() {
            return raise_stopped(state, host);
        }
        match ffi::lua_tocfunction(state, ffi::lua_upvalueindex(ORIGINAL)) {
            // It has no upvalues, and finds its arguments on the stack.
            Some(original) => original(state),
            None => ffi::luaL_error(state, c"this function is not there".as_ptr()),
        }
    }
}
