//! The interface between scripts and the engine, by Lua's C interface: `redis.call` and `redis.pcall`, the start of a
//! script, and its result. Every script uses it a dozen times. With `mlua`'s safe values, each use costs several
//! times as much as the command. Everything else uses `mlua`.
//!
//! Soundness: an error of Lua leaves a function by a jump that runs no destructors, so nothing here may raise one
//! while a value needs a drop. Pushing a value raises one only without memory, which is limited only in the scripts'
//! own code ([`Memory`]); space on the stack is reserved first.
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

/// Stack slots for starting a script: the sandbox's function, the script, KEYS and ARGV.
const ENTER_SLOTS: c_int = 8;

/// Percentage of the remaining memory after a collection at which garbage is collected again. The rest is the scripts
/// themselves, some MB. Half of the default frequency saves a twentieth of each call.
const GC_PAUSE: c_int = 400;

/// Number of pattern alternatives whose memory is kept between two scripts: 32 KB.
const TRIES_KEPT: usize = 1024;

/// Steps of a command. Most commands take a microsecond, one on a large key takes a second, so the clock is checked
/// every eight of them.
const COMMAND_STEPS: usize = STEPS / 8;

/// An interpreter, and the interface to its scripts.
pub(super) struct Bridge {
    /// Ends before the host.
    lua: Lua,
    state: *mut lua_State,
    host: Hosted,
}

// SAFETY: the pointers belong to this interpreter only, and the engine's lock admits one thread at a time.
unsafe impl Send for Bridge {}

/// The state through which `redis.call` reaches the engine.
struct Host {
    /// Runs the commands of the script; `None` while no script runs.
    server: Option<NonNull<dyn Server>>,
    /// True if the script has chosen RESP3.
    resp3: Arc<AtomicBool>,
    memory: Memory,
    /// Counts the steps of functions without a hook.
    work: Work,
    /// Alternatives of the current pattern.
    tries: Vec<Try>,
    /// Panic of a command, resumed after Lua has left the script.
    panic: Option<Box<dyn Any + Send>>,
}

/// The host, which Lua reaches by the same pointer.
struct Hosted(*mut Host);

impl Drop for Hosted {
    fn drop(&mut self) {
        // SAFETY: created from a box; the interpreter has ended.
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

/// A function that the interpreter keeps for its lifetime.
pub(super) struct Kept(c_int);

/// The outcome of a script.
pub(super) enum Ended {
    Returned(Reply),
    /// An error, as the sandbox created it.
    Failed(Table),
    /// The time limit was over, and memory was refused.
    Stopped,
}

impl Bridge {
    /// Creates the interface of this interpreter.
    pub(super) fn new(lua: Lua, resp3: Arc<AtomicBool>, time: &Time) -> mlua::Result<Self> {
        let host = Host {
            server: None,
            resp3,
            memory: Memory::new(time.clone()),
            work: Work::new(time.clone()),
            tries: Vec::new(),
            panic: None,
        };
        // From now on the library expects every allocation to fail, which is possible in scripts' own code.
        lua.set_memory_limit(MEMORY_MAX)?;
        let mut bridge = Self {
            lua,
            state: null_mut(),
            host: Hosted(Box::into_raw(Box::new(host))),
        };
        // SAFETY: the host does not move, and outlives the interpreter.
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

    /// Returns the interpreter.
    pub(super) fn lua(&self) -> &Lua {
        &self.lua
    }

    /// Returns `redis.call` and `redis.pcall`.
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

    /// Returns the functions of the table `string` that replace Lua's own.
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

    /// Returns the functions of the table `table` that check the time.
    pub(super) fn table_functions(&self) -> mlua::Result<Table> {
        let host = self.host.0.cast::<c_void>();
        let originals: Table = self.lua.globals().get("table")?;
        // SAFETY: as above; the table with Lua's own functions is on the stack.
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

    /// Runs work that runs scripts' own code, with the memory limit.
    pub(super) fn limited<T>(&self, work: impl FnOnce() -> T) -> T {
        // SAFETY: the host exists, and is used by no other code before and after the work.
        unsafe { (*self.host.0).memory.limit(true) };
        let done = work();
        unsafe { (*self.host.0).memory.limit(false) };
        done
    }

    /// Keeps a function.
    pub(super) fn keep(&self, function: Function) -> mlua::Result<Kept> {
        let mut place = 0;
        // SAFETY: the function is on the stack, and is removed from it.
        unsafe {
            self.lua.exec_raw::<()>(function, |state| {
                place = ffi::luaL_ref(state, ffi::LUA_REGISTRYINDEX);
            })?;
        }
        Ok(Kept(place))
    }

    /// Runs a script: `enter` gets the script, KEYS and ARGV, and returns whether it succeeded, and a value.
    pub(super) fn run(
        &self,
        (enter, script): (&Kept, &Kept),
        server: &mut dyn Server,
        with: &Invocation<'_>,
    ) -> mlua::Result<Ended> {
        let (state, host) = (self.state, self.host.0);
        // SAFETY: the server outlives the script, and is removed then; the stack is restored.
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

    /// Reads the stack after a script.
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
                // An error of Lua itself, without a table: no memory.
                let text = value::text(state, -1).unwrap_or_default();
                return Err(mlua::Error::RuntimeError(text));
            }
            let protocol = (*self.host.0).protocol();
            Ok(Ended::Returned(value::read(state, protocol)))
        }
    }
}

/// Raises the error of a script whose time is over. The caller must have nothing to drop.
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

/// Runs the command whose arguments are on the stack, and pushes its reply. Returns false if the reply is an error to
/// raise; then nothing is left to drop.
///
/// Without a server, the script has ended with an error whose metatable runs code when it is read.
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
