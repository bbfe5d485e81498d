//! The way between scripts and the engine, by the C interface of Lua: `redis.call` and `redis.pcall`, entering
//! a script, and what it returns. Every script goes this way a dozen times; through the values that `mlua`
//! makes safe to keep, each time costs several times what the command does. All else goes through `mlua`.
//!
//! Why it is sound: an error of Lua leaves a function by a jump that runs no destructors, so nothing here may
//! raise one while there is something to drop. Pushing a value raises one only for want of memory, of which
//! there is no limit but in the scripts' own code ([`Memory`]); room on the stack is asked for first.
#![allow(
    unsafe_code,
    reason = "the C interface of Lua: through safe values each crossing costs more than its command"
)]

mod memory;
mod tables;
mod text;
mod value;

use std::{
    any::Any,
    ffi::{c_int, c_void},
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    ptr::{NonNull, null_mut},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use mlua::{
    Function, Lua, Table,
    ffi::{self, lua_State},
};

use super::{
    Invocation, Server, error,
    pattern::{Effort as _, Try},
    watchdog::{STEPS, Time, Work, stopped},
};
use crate::{Protocol, Reply};
use memory::{MEMORY_MAX, Memory};

/// Room on the stack that entering a script takes: the function of the sandbox, the script, KEYS and ARGV.
const ENTER_SLOTS: c_int = 8;

/// Garbage is collected when scripts hold so many percent of what was left the last time. What is left is the
/// scripts themselves, some MB; to collect half as often as by default spares a twentieth of each call.
const GC_PAUSE: c_int = 400;

/// Alternatives of patterns whose memory is kept between two scripts: 32 KB.
const TRIES_KEPT: usize = 1024;

/// Steps that a command counts for: most take a microsecond, one on a large key takes a second, so the clock is
/// looked at every eight of them.
const COMMAND_STEPS: usize = STEPS / 8;

/// An interpreter, and the way in and out of its scripts.
pub(super) struct Bridge {
    /// Ends before the host does.
    lua: Lua,
    state: *mut lua_State,
    host: Hosted,
}

// SAFETY: the pointers lead to what belongs to this interpreter alone, and the lock of the engine lets one
// thread at a time have it.
unsafe impl Send for Bridge {}

/// What `redis.call` finds the engine by.
struct Host {
    /// Runs the commands of the script; None while no script runs.
    server: Option<NonNull<dyn Server>>,
    /// Whether it has chosen RESP3.
    resp3: Arc<AtomicBool>,
    memory: Memory,
    /// Counts the steps of functions that no hook counts.
    work: Work,
    /// The alternatives of the pattern that is matched.
    tries: Vec<Try>,
    /// What a command panicked with. It goes on once Lua has left the script.
    panic: Option<Box<dyn Any + Send>>,
}

/// The host, which Lua reaches by the same pointer.
struct Hosted(*mut Host);

impl Drop for Hosted {
    fn drop(&mut self) {
        // SAFETY: made from a box; the interpreter has ended.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

impl Host {
    fn protocol(&self) -> Protocol {
        if self.resp3.load(Ordering::Relaxed) {
            Protocol::Resp3
        } else {
            Protocol::Resp2
        }
    }
}

/// A function that the interpreter keeps for as long as it lives.
pub(super) struct Kept(c_int);

/// How a script ended.
pub(super) enum Ended {
    Returned(Reply),
    /// With this error, as the sandbox made it.
    Failed(Table),
    /// Its time was over, and it was given no more memory.
    Stopped,
}

impl Bridge {
    /// With this interpreter.
    pub(super) fn new(lua: Lua, resp3: Arc<AtomicBool>, time: &Time) -> mlua::Result<Self> {
        let host = Host {
            server: None,
            resp3,
            memory: Memory::new(time.clone()),
            work: Work::new(time.clone()),
            tries: Vec::new(),
            panic: None,
        };
        // From here on the library expects every allocation to fail, which in scripts' own code it may.
        lua.set_memory_limit(MEMORY_MAX)?;
        let mut bridge = Self {
            lua,
            state: null_mut(),
            host: Hosted(Box::into_raw(Box::new(host))),
        };
        // SAFETY: the host stays where it is, and outlives the interpreter.
        unsafe {
            let (running, host) = (&mut bridge.state, bridge.host.0);
            bridge.lua.exec_raw::<()>((), |state| {
                *running = state;
                (*host).memory.serve(state);
                ffi::lua_gc(state, ffi::LUA_GCSETPAUSE, GC_PAUSE);
            })?;
        }
        Ok(bridge)
    }

    /// The interpreter.
    pub(super) fn lua(&self) -> &Lua {
        &self.lua
    }

    /// `redis.call` and `redis.pcall`.
    pub(super) fn functions(&self) -> mlua::Result<(Function, Function)> {
        let host = self.host.0.cast::<c_void>();
        // SAFETY: as above.
        unsafe {
            self.lua.exec_raw((), |state| {
                for function in [call as ffi::lua_CFunction, pcall] {
                    ffi::lua_pushlightuserdata(state, host);
                    ffi::lua_pushcclosure(state, function, 1);
                }
            })
        }
    }

    /// The functions of the table `string` that are not Lua's own.
    pub(super) fn text_functions(&self) -> mlua::Result<Table> {
        let host = self.host.0.cast::<c_void>();
        // SAFETY: as above.
        unsafe {
            self.lua.exec_raw((), |state| {
                ffi::lua_createtable(state, 0, 0);
                for (name, function) in text::FUNCTIONS {
                    ffi::lua_pushlightuserdata(state, host);
                    ffi::lua_pushcclosure(state, function, 1);
                    ffi::lua_setfield(state, -2, name.as_ptr());
                }
            })
        }
    }

    /// The functions of the table `table` that look at the time.
    pub(super) fn table_functions(&self) -> mlua::Result<Table> {
        let host = self.host.0.cast::<c_void>();
        let originals: Table = self.lua.globals().get("table")?;
        // SAFETY: as above; the table of Lua's own functions is on the stack.
        unsafe {
            self.lua.exec_raw(originals, |state| {
                ffi::lua_createtable(state, 0, 0);
                for (name, function) in tables::FUNCTIONS {
                    ffi::lua_pushlightuserdata(state, host);
                    ffi::lua_getfield(state, 1, name.as_ptr());
                    ffi::lua_pushcclosure(state, function, tables::UPVALUES);
                    ffi::lua_setfield(state, 2, name.as_ptr());
                }
                ffi::lua_remove(state, 1);
            })
        }
    }

    /// Does something that runs scripts' own code, with a limit of memory.
    pub(super) fn limited<T>(&self, work: impl FnOnce() -> T) -> T {
        // SAFETY: the host is there, and nobody else is at it before the work and after it.
        unsafe { (*self.host.0).memory.limit(true) };
        let done = work();
        unsafe { (*self.host.0).memory.limit(false) };
        done
    }

    /// Keeps a function.
    pub(super) fn keep(&self, function: Function) -> mlua::Result<Kept> {
        let mut place = 0;
        // SAFETY: the function is on the stack, and is taken off it.
        unsafe {
            self.lua.exec_raw::<()>(function, |state| {
                place = ffi::luaL_ref(state, ffi::LUA_REGISTRYINDEX);
            })?;
        }
        Ok(Kept(place))
    }

    /// Runs a script: `enter` gets it, KEYS and ARGV, and returns whether it went well, and a value.
    pub(super) fn run(
        &self,
        (enter, script): (&Kept, &Kept),
        server: &mut dyn Server,
        with: &Invocation<'_>,
    ) -> mlua::Result<Ended> {
        let (state, host) = (self.state, self.host.0);
        // SAFETY: the server is there until the script has ended, and taken off then; the stack is left as it was.
        unsafe {
            let server: NonNull<dyn Server + 'static> = std::mem::transmute(NonNull::from(server));
            let top = ffi::lua_gettop(state);
            if ffi::lua_checkstack(state, ENTER_SLOTS) == 0 {
                return Err(mlua::Error::StackError);
            }
            ffi::lua_rawgeti(state, ffi::LUA_REGISTRYINDEX, enter.0.into());
            ffi::lua_rawgeti(state, ffi::LUA_REGISTRYINDEX, script.0.into());
            value::push_list(state, with.keys);
            value::push_list(state, with.argv);
            (*host).server = Some(server);
            (*host).tries.clear();
            (*host).tries.shrink_to(TRIES_KEPT);
            (*host).work.begin();
            (*host).memory.begin();
            (*host).memory.limit(true);
            let status = ffi::lua_pcall(state, 3, 2, 0);
            (*host).memory.limit(false);
            (*host).server = None;
            let ended = self.ended(status);
            ffi::lua_settop(state, top);
            if let Some(panic) = (*host).panic.take() {
                resume_unwind(panic);
            }
            ended
        }
    }

    /// What stands on the stack after a script.
    unsafe fn ended(&self, status: c_int) -> mlua::Result<Ended> {
        let state = self.state;
        unsafe {
            if (*self.host.0).memory.is_late() {
                return Ok(Ended::Stopped);
            }
            if status != ffi::LUA_OK {
                let text = value::text(state, -1).unwrap_or_default();
                return Err(mlua::Error::RuntimeError(text));
            }
            let failed = ffi::lua_toboolean(state, -2) == 0;
            if failed && ffi::lua_type(state, -1) == ffi::LUA_TTABLE {
                let place = ffi::luaL_ref(state, ffi::LUA_REGISTRYINDEX);
                let error = self.lua.exec_raw((), |state| {
                    ffi::lua_rawgeti(state, ffi::LUA_REGISTRYINDEX, place.into());
                });
                ffi::luaL_unref(state, ffi::LUA_REGISTRYINDEX, place);
                return error.map(Ended::Failed);
            }
            if failed {
                // Lua's own, without a table to say it in: no memory.
                let text = value::text(state, -1).unwrap_or_default();
                return Err(mlua::Error::RuntimeError(text));
            }
            let protocol = (*self.host.0).protocol();
            Ok(Ended::Returned(value::read(state, protocol)))
        }
    }
}

/// Raises the error of a script whose time is over. Nothing is left to drop where it is called.
unsafe fn raise_stopped(state: *mut lua_State, host: *mut Host) -> c_int {
    unsafe {
        (*host).memory.limit(false);
        value::push(state, &Reply::Error(stopped()), Protocol::Resp2);
        (*host).memory.limit(true);
        ffi::lua_error(state)
    }
}

unsafe extern "C-unwind" fn call(state: *mut lua_State) -> c_int {
    unsafe {
        if !request(state, true) {
            ffi::lua_error(state);
        }
    }
    1
}

unsafe extern "C-unwind" fn pcall(state: *mut lua_State) -> c_int {
    unsafe { request(state, false) };
    1
}

/// Runs the command whose arguments are on the stack, and pushes its reply. When that is an error to be
/// raised, it is what was pushed, and the answer is false. Nothing is left to drop then.
///
/// Without a server, the script has ended in an error that runs code of its own where it is looked at.
unsafe fn request(state: *mut lua_State, raise: bool) -> bool {
    unsafe {
        let host = ffi::lua_touserdata(state, ffi::lua_upvalueindex(1)).cast::<Host>();
        (*host).memory.limit(false);
        let Some(mut server) = (*host).server else {
            let text = "ERR the script has ended";
            value::push(state, &Reply::Error(text.to_owned()), Protocol::Resp2);
            (*host).memory.limit(true);
            return false;
        };
        if (*host).work.spend(COMMAND_STEPS).is_err() {
            value::push(state, &Reply::Error(stopped()), Protocol::Resp2);
            (*host).memory.limit(true);
            return false;
        }
        let protocol = (*host).protocol();
        let ran = catch_unwind(AssertUnwindSafe(|| {
            let args = value::arguments(state);
            let reply = match args.and_then(|args| server.as_mut().request(&args, protocol)) {
                Err(text) => Reply::Error(text),
                Ok(Reply::Error(text)) => Reply::Error(error::with_code(&text)),
                Ok(reply) => reply,
            };
            ffi::lua_settop(state, 0);
            value::push(state, &reply, protocol);
            !(raise && matches!(reply, Reply::Error(_)))
        }));
        let went_well = ran.unwrap_or_else(|panic| {
            (*host).panic = Some(panic);
            value::push(
                state,
                &Reply::Error("ERR panic".to_owned()),
                Protocol::Resp2,
            );
            false
        });
        (*host).memory.limit(true);
        went_well
    }
}
