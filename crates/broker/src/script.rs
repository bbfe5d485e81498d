//! The Lua scripts: one per verb, each with the common beginning `lib.lua`. What they do stands in their
//! headers; how each is called, in the file of its verb.

use redis::Script;

use crate::Error;
use crate::conn::Conn;

/// A script's name; the same word names the Rust function, the file and the conformance cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each is described by the function of its name")]
pub enum Verb {
    Enqueue,
    Claim,
    Renew,
    Finish,
    Fail,
    Release,
    Reclaim,
    Leave,
    Cancel,
    Retry,
    Delete,
}

const LIB: &str = include_str!("lua/lib.lua");

/// Verbs that must work although memory has run out, since they free it, take what waits, hand it back, or
/// keep what runs from being run twice.
const ALLOW_OOM: &str = "#!lua flags=allow-oom\n";

impl Verb {
    /// All verbs, in the order of a job's life.
    pub const ALL: [Self; 11] = [
        Self::Enqueue,
        Self::Claim,
        Self::Renew,
        Self::Finish,
        Self::Fail,
        Self::Release,
        Self::Reclaim,
        Self::Leave,
        Self::Cancel,
        Self::Retry,
        Self::Delete,
    ];

    /// The verb as a word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.parts().0
    }

    const fn parts(self) -> (&'static str, &'static str) {
        match self {
            Self::Enqueue => ("enqueue", include_str!("lua/enqueue.lua")),
            Self::Claim => ("claim", include_str!("lua/claim.lua")),
            Self::Renew => ("renew", include_str!("lua/renew.lua")),
            Self::Finish => ("finish", include_str!("lua/finish.lua")),
            Self::Fail => ("fail", include_str!("lua/fail.lua")),
            Self::Release => ("release", include_str!("lua/release.lua")),
            Self::Reclaim => ("reclaim", include_str!("lua/reclaim.lua")),
            Self::Leave => ("leave", include_str!("lua/leave.lua")),
            Self::Cancel => ("cancel", include_str!("lua/cancel.lua")),
            Self::Retry => ("retry", include_str!("lua/retry.lua")),
            Self::Delete => ("delete", include_str!("lua/delete.lua")),
        }
    }

    /// The whole script as it is sent.
    #[must_use]
    pub fn source(self) -> String {
        let flags = match self {
            Self::Enqueue | Self::Retry => "",
            _ => ALLOW_OOM,
        };
        format!("{flags}{LIB}{}", self.parts().1)
    }
}

/// All scripts, ready to be sent by their digest.
#[derive(Debug, Clone)]
pub struct Scripts(Vec<(Verb, Script)>);

impl Default for Scripts {
    fn default() -> Self {
        Self::altered(|_, source| source)
    }
}

impl Scripts {
    /// The scripts, each as `alter` makes it: tests break them on purpose and expect to be told.
    #[must_use]
    pub fn altered(alter: impl Fn(Verb, String) -> String) -> Self {
        Self(
            Verb::ALL
                .map(|verb| (verb, Script::new(&alter(verb, verb.source()))))
                .into(),
        )
    }

    /// Gives all scripts to the server, so that none has to be sent when it is first needed.
    pub(crate) async fn load(&self, conn: &Conn) -> Result<(), Error> {
        for (_, script) in &self.0 {
            let loaded = script.load_async(&mut conn.clone()).await;
            loaded.map_err(|source| Error::Call {
                verb: "load",
                source,
            })?;
        }
        Ok(())
    }

    fn get(&self, verb: Verb) -> &Script {
        &self.0[verb as usize].1
    }
}

/// A call of one script.
pub(crate) struct Call<'a> {
    verb: Verb,
    invocation: redis::ScriptInvocation<'a>,
}

impl Scripts {
    pub(crate) fn call(&self, verb: Verb) -> Call<'_> {
        Call {
            verb,
            invocation: self.get(verb).prepare_invoke(),
        }
    }
}

impl Call<'_> {
    pub(crate) fn key(mut self, key: impl redis::ToRedisArgs) -> Self {
        self.invocation.key(key);
        self
    }

    pub(crate) fn arg(mut self, arg: impl redis::ToRedisArgs) -> Self {
        self.invocation.arg(arg);
        self
    }

    pub(crate) fn push_key(&mut self, key: impl redis::ToRedisArgs) {
        self.invocation.key(key);
    }

    pub(crate) fn push_arg(&mut self, arg: impl redis::ToRedisArgs) {
        self.invocation.arg(arg);
    }

    pub(crate) async fn run<T: redis::FromRedisValue>(self, conn: &Conn) -> Result<T, Error> {
        let Self { verb, invocation } = self;
        invocation
            .invoke_async(&mut conn.clone())
            .await
            .map_err(|source| Error::Call {
                verb: verb.name(),
                source,
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_verb_finds_its_own_script() {
        let scripts = Scripts::default();
        for (at, verb) in Verb::ALL.into_iter().enumerate() {
            assert_eq!(verb as usize, at, "{verb:?}");
            assert_eq!(
                scripts.get(verb).get_hash(),
                Script::new(&verb.source()).get_hash(),
                "{verb:?}"
            );
        }
    }

    #[test]
    fn each_script_states_its_contract() {
        for verb in Verb::ALL {
            let (name, text) = verb.parts();
            for part in ["-- KEYS", "-- ARGV", "-- Returns"] {
                assert!(text.contains(part), "{name}.lua says nothing of `{part}`");
            }
        }
    }
}
