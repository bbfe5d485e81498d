//! Lua: scripts as Redis 7.0 runs them, in a sandbox, bounded in time and memory, each kept by the
//! SHA-1 of its text. What a script writes is one transaction of the log; what it had written
//! when an error ended it stays, as in Redis.

mod convert;
mod error;
mod library;
mod native;
mod random;
mod shebang;
mod watchdog;

use std::{
    cell::RefCell,
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use mlua::{
    Function, Lua, LuaOptions, MultiValue, RegistryKey, StdLib, Table, Value, chunk::ChunkMode,
};

use self::{error::Raised, library::host, shebang::Declared, watchdog::Watchdog};
use crate::{
    Protocol, Reply,
    command::{Flags, Outcome, Spec, Stop, find},
    engine::{Call, Origin},
};

/// Bytes that scripts may hold: a runaway one ends with an error, not with the process.
const MEMORY_MAX: usize = 512 * 1024 * 1024;

/// The scripts of an engine and the interpreter that runs them.
pub(crate) struct Scripts {
    lua: Lua,
    /// What scripts have for globals.
    env: Table,
    /// Runs a script: takes it, KEYS, ARGV, `redis.call` and `redis.pcall`.
    enter: Function,
    resp3: Arc<AtomicBool>,
    watchdog: Watchdog,
    known: HashMap<Sha, Arc<Script>>,
}

/// The SHA-1 of a script in hexadecimal, lower case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Sha([u8; 40]);

impl Sha {
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        text.to_ascii_lowercase().try_into().ok().map(Self)
    }

    fn of(text: &[u8]) -> Self {
        let hex = sha1_smol::Sha1::from(text).digest().to_string();
        Self(
            hex.into_bytes()
                .try_into()
                .expect("SHA-1 has 40 hexadecimal digits"),
        )
    }

    fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

/// A script that was loaded.
pub(crate) struct Script {
    sha: Sha,
    declared: Declared,
    function: RegistryKey,
}

impl Script {
    pub(crate) fn sha(&self) -> String {
        self.sha.as_str().to_owned()
    }
}

/// A script as a request names it.
pub(crate) enum Body<'a> {
    Text(&'a Bytes),
    Sha(Sha),
}

/// With what a script is run.
pub(crate) struct Invocation<'a> {
    pub(crate) keys: &'a [Bytes],
    pub(crate) argv: &'a [Bytes],
    /// Asked for by a command that promises to write nothing.
    pub(crate) read_only: bool,
}

impl Scripts {
    pub(crate) fn new() -> Result<Self, Stop> {
        Self::build().map_err(|error| stop(format!("the Lua interpreter does not start: {error}")))
    }

    fn build() -> mlua::Result<Self> {
        let libraries = StdLib::TABLE | StdLib::STRING | StdLib::MATH;
        let lua = Lua::new_with(libraries, LuaOptions::default())?;
        lua.set_memory_limit(MEMORY_MAX)?;
        let resp3 = Arc::new(AtomicBool::new(false));
        let sandbox = lua
            .load(include_str!("sandbox.lua"))
            .set_name(error::SANDBOX);
        let (env, enter) = sandbox.call(host(&lua, &resp3)?)?;
        let watchdog = Watchdog::new(&lua)?;
        Ok(Self {
            lua,
            env,
            enter,
            resp3,
            watchdog,
            known: HashMap::new(),
        })
    }

    pub(crate) fn find(&self, sha: &Sha) -> Option<Arc<Script>> {
        self.known.get(sha).cloned()
    }

    /// The script of this text, compiled if it is new.
    pub(crate) fn load(&mut self, text: &Bytes) -> Result<Arc<Script>, Stop> {
        let sha = Sha::of(text);
        if let Some(script) = self.known.get(&sha) {
            return Ok(script.clone());
        }
        let (declared, start) = shebang::parse(text).map_err(stop)?;
        let chunk = self.lua.load(&text[start..]).set_name("@user_script");
        let chunk = chunk
            .set_mode(ChunkMode::Text)
            .set_environment(self.env.clone());
        let function = chunk
            .into_function()
            .and_then(|f| self.lua.create_registry_value(f));
        let function = function.map_err(|error| {
            let text = match &error {
                mlua::Error::SyntaxError { message, .. } => message.clone(),
                other => other.to_string(),
            };
            stop(format!("Error compiling script (new function): {text}"))
        })?;
        let script = Arc::new(Script {
            sha,
            declared,
            function,
        });
        self.known.insert(sha, script.clone());
        Ok(script)
    }

    /// Runs a script. `call` is the call of EVAL itself.
    pub(crate) fn run(
        &self,
        script: &Script,
        call: &mut Call<'_>,
        with: &Invocation<'_>,
    ) -> Outcome {
        let Declared { any, no_writes } = script.declared;
        if any && !no_writes {
            if let Some(trouble) = &call.world.trouble {
                return Err(Stop::Error(trouble.clone()));
            }
            if with.read_only {
                return Err(stop(
                    "Can not execute a script with write flag using *_ro command.",
                ));
            }
        }
        let before = (call.db, call.protocol, call.origin);
        (call.protocol, call.origin) = (Protocol::Resp2, Origin::Script);
        self.resp3.store(false, Ordering::Relaxed);
        let frame = Frame {
            call,
            read_only: with.read_only || no_writes,
        };
        let outcome = self.enter(script, frame, with);
        (call.db, call.protocol, call.origin) = before;
        outcome.unwrap_or_else(|error| {
            let text: String = error.to_string().chars().take(100).collect();
            Err(stop(format!(
                "Error running script {}, {text}",
                script.sha.as_str()
            )))
        })
    }

    fn enter(
        &self,
        script: &Script,
        frame: Frame<'_, '_>,
        with: &Invocation<'_>,
    ) -> mlua::Result<Outcome> {
        let list = |items: &[Bytes]| {
            self.lua
                .create_sequence_from(items.iter().map(|item| Raw(item)))
        };
        let (keys, argv) = (list(with.keys)?, list(with.argv)?);
        let function: Function = self.lua.registry_value(&script.function)?;
        let frame = RefCell::new(frame);
        let request = |lua: &Lua, args: MultiValue, raise: bool| {
            let protocol = self.protocol();
            let reply = frame.borrow_mut().request(&args, protocol);
            let reply = match reply {
                Err(text) if raise => return Err(Raised::Reply(text).into()),
                Err(text) => Reply::Error(text),
                Ok(Reply::Error(text)) if raise => {
                    return Err(Raised::Reply(error::with_code(&text)).into());
                }
                Ok(Reply::Error(text)) => Reply::Error(error::with_code(&text)),
                Ok(reply) => reply,
            };
            convert::to_lua(lua, reply, protocol)
        };
        let running = self.watchdog.start(&self.lua);
        let (ok, value): (bool, Value) = self.lua.scope(|scope| {
            let call = scope.create_function(|lua, args| request(lua, args, true))?;
            let pcall = scope.create_function(|lua, args| request(lua, args, false))?;
            self.enter.call((function, keys, argv, call, pcall))
        })?;
        drop(running);
        Ok(match value {
            Value::Table(error) if !ok => {
                Err(Stop::Error(error::reply_text(&error, script.sha.as_str())?))
            }
            value => Ok(convert::to_reply(&value, self.protocol())?),
        })
    }

    /// The protocol that the running script has chosen.
    fn protocol(&self) -> Protocol {
        if self.resp3.load(Ordering::Relaxed) {
            Protocol::Resp3
        } else {
            Protocol::Resp2
        }
    }
}

fn stop(text: impl std::fmt::Display) -> Stop {
    Stop::Error(format!("ERR {text}"))
}

/// Bytes as a string of Lua.
struct Raw<'a>(&'a [u8]);

impl mlua::IntoLua for Raw<'_> {
    fn into_lua(self, lua: &Lua) -> mlua::Result<Value> {
        lua.create_string(self.0).map(Value::String)
    }
}

/// A script while it runs.
struct Frame<'a, 'c> {
    call: &'a mut Call<'c>,
    read_only: bool,
}

impl Frame<'_, '_> {
    /// Runs one command of the script. The error is that of the script, not of the command.
    fn request(&mut self, args: &MultiValue, protocol: Protocol) -> Result<Reply, String> {
        let args = arguments(args)?;
        let spec =
            find(&args).map_err(|_| "ERR Unknown Redis command called from script".to_owned())?;
        self.admit(spec, args.len())?;
        self.call.protocol = protocol;
        Ok(match self.call.run(spec, &args) {
            Ok(reply)
            | Err(Stop::Wait {
                otherwise: reply, ..
            }) => reply,
            Err(Stop::Error(text)) => Reply::Error(text),
        })
    }

    fn admit(&self, spec: &Spec, args: usize) -> Result<(), String> {
        if !spec.takes(args) {
            return Err("ERR Wrong number of args calling Redis command from script".to_owned());
        }
        if spec.flags.has(Flags::NOSCRIPT) {
            return Err("ERR This Redis command is not allowed from script".to_owned());
        }
        let writes = spec.flags.has(Flags::WRITE);
        if self.read_only && (writes || matches!(spec.name, "publish" | "spublish")) {
            return Err("ERR Write commands are not allowed from read-only scripts.".to_owned());
        }
        match &self.call.world.trouble {
            Some(trouble) if writes => Err(trouble.clone()),
            _ => Ok(()),
        }
    }
}

/// Above, a number has no place of its own for each integer, and is written with an exponent.
const EXACT_MAX: i64 = 100_000_000_000_000_000;

fn arguments(values: &MultiValue) -> Result<Vec<Bytes>, String> {
    if values.is_empty() {
        return Err("ERR Please specify at least one argument for this redis lib call".to_owned());
    }
    let argument = |value: &Value| match value {
        Value::String(text) => Some(Bytes::copy_from_slice(&text.as_bytes())),
        Value::Integer(value) if value.abs() < EXACT_MAX => Some(value.to_string().into()),
        #[allow(clippy::cast_precision_loss, reason = "it was a double before")]
        Value::Integer(value) => Some(crate::resp::double_text(*value as f64).into()),
        Value::Number(value) => Some(crate::resp::double_text(*value).into()),
        _ => None,
    };
    let arguments: Option<Vec<Bytes>> = values.iter().map(argument).collect();
    arguments
        .ok_or_else(|| "ERR Lua redis lib command arguments must be strings or integers".to_owned())
}
