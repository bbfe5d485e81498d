//! Lua: scripts like in Redis 7.0, in a sandbox, with limits of time and memory, stored by the SHA-1 of their text.
//! The writes of a script are one transaction of the log. If an error ends it, its earlier writes stay, as in Redis.

mod bridge;
mod error;
mod library;
mod native;
mod pattern;
mod random;
mod shebang;
mod watchdog;

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use data_encoding::HEXLOWER;
use mlua::{Lua, LuaOptions, StdLib, Table, chunk::ChunkMode};
use sha1::{Digest, Sha1};

use self::{
    bridge::{Bridge, Ended, Kept},
    library::host,
    shebang::Declared,
    watchdog::{Time, Watchdog},
};
use crate::{
    Protocol, Reply,
    command::{Outcome, Stop},
};

/// Runs the commands that scripts call.
pub(crate) trait Server {
    /// Runs one command of the script. The error is that of the script, not of the command.
    fn request(&mut self, args: &[Bytes], protocol: Protocol) -> Result<Reply, String>;
}

/// The scripts of an engine and the interpreter that runs them.
pub(crate) struct Scripts {
    /// Globals of scripts.
    env: Table,
    /// Runs a script: takes the script, KEYS and ARGV.
    enter: Kept,
    resp3: Arc<AtomicBool>,
    watchdog: Watchdog,
    known: HashMap<Sha, Arc<Script>>,
    bridge: Bridge,
}

/// The SHA-1 of a script in hexadecimal, lower case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Sha([u8; 40]);

impl Sha {
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        text.to_ascii_lowercase().try_into().ok().map(Self)
    }

    fn of(text: &[u8]) -> Self {
        let hex = HEXLOWER.encode(&Sha1::digest(text));
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
    function: Kept,
}

impl Script {
    pub(crate) fn sha(&self) -> String {
        self.sha.as_str().to_owned()
    }

    /// Returns true if its first line permits writes, `None` if that line has no flags.
    pub(crate) fn may_write(&self) -> Option<bool> {
        let Declared { any, no_writes } = self.declared;
        any.then_some(!no_writes)
    }
}

/// Keys and arguments of a script.
pub(crate) struct Invocation<'a> {
    pub(crate) keys: &'a [Bytes],
    pub(crate) argv: &'a [Bytes],
}

impl Scripts {
    pub(crate) fn new() -> Result<Self, Stop> {
        Self::build().map_err(|error| stop(format!("the Lua interpreter does not start: {error}")))
    }

    fn build() -> mlua::Result<Self> {
        let libraries = StdLib::TABLE | StdLib::STRING | StdLib::MATH;
        let lua = Lua::new_with(libraries, LuaOptions::default())?;
        let resp3 = Arc::new(AtomicBool::new(false));
        let time = Time::default();
        let bridge = Bridge::new(lua, resp3.clone(), &time)?;
        let (lua, functions) = (bridge.lua(), bridge.functions()?);
        let sandbox = lua
            .load(include_str!("sandbox.lua"))
            .set_name(error::SANDBOX);
        let host = host(lua, &resp3, functions)?;
        host.set("text", bridge.text_functions()?)?;
        host.set("tables", bridge.table_functions()?)?;
        let (env, enter) = sandbox.call(host)?;
        let enter = bridge.keep(enter)?;
        let watchdog = Watchdog::new(lua, time)?;
        Ok(Self {
            env,
            enter,
            resp3,
            watchdog,
            known: HashMap::new(),
            bridge,
        })
    }

    pub(crate) fn find(&self, sha: &Sha) -> Option<Arc<Script>> {
        self.known.get(sha).cloned()
    }

    /// Returns the script of this text, compiled if it is new.
    pub(crate) fn load(&mut self, text: &Bytes) -> Result<Arc<Script>, Stop> {
        let sha = Sha::of(text);
        if let Some(script) = self.known.get(&sha) {
            return Ok(script.clone());
        }
        let (declared, start) = shebang::parse(text).map_err(stop)?;
        let chunk = self
            .bridge
            .lua()
            .load(&text[start..])
            .set_name("@user_script");
        let chunk = chunk
            .set_mode(ChunkMode::Text)
            .set_environment(self.env.clone());
        let function = self.bridge.limited(|| chunk.into_function());
        let function = function.and_then(|function| self.bridge.keep(function));
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

    /// Runs a script.
    pub(crate) fn run(
        &self,
        script: &Script,
        server: &mut dyn Server,
        with: &Invocation<'_>,
    ) -> Outcome {
        self.resp3.store(false, Ordering::Relaxed);
        let outcome = self.enter(script, server, with);
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
        server: &mut dyn Server,
        with: &Invocation<'_>,
    ) -> mlua::Result<Outcome> {
        let running = self.watchdog.start(self.bridge.lua());
        let functions = (&self.enter, &script.function);
        let outcome = match self.bridge.run(functions, server, with)? {
            Ended::Returned(reply) => Ok(reply),
            Ended::Stopped => {
                let sha = script.sha.as_str();
                Err(Stop::Error(format!(
                    "{} script: {sha}.",
                    watchdog::stopped()
                )))
            }
            Ended::Failed(error) => {
                // An error with a metatable runs code of its own, with the same limits as the script.
                let text = || error::reply_text(&error, script.sha.as_str());
                Err(Stop::Error(self.bridge.limited(text)?))
            }
        };
        drop(running);
        Ok(outcome)
    }
}

fn stop(text: impl std::fmt::Display) -> Stop {
    Stop::Error(format!("ERR {text}"))
}
