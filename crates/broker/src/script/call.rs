//! The call of one script: its keys and arguments, and its transmission.

use redis::{
    Arg, Cmd, ErrorKind, FromRedisValue, RedisError, RedisResult, Script, ServerErrorKind,
    ToRedisArgs,
};

use super::answer::Answer;
use super::{Layout, Named, Schema, Verb};
use crate::Error;
use crate::acl;
use crate::conn::Conn;
use crate::error::{MOST_NAMED, is_denied};

/// Initial capacity for keys and arguments, in number and bytes.
const KEYS: (usize, usize) = (8, 256);
const ARGS: (usize, usize) = (16, 1024);

/// Capacity for the rest of the command.
const HEAD: usize = "EVALSHA".len() + 40 + 4;

/// A call of one script.
pub(crate) struct Call<'a> {
    verb: Verb,
    script: &'a Script,
    // Commands store each text behind the other, which needs far fewer allocations than a string for each.
    keys: Cmd,
    args: Cmd,
}

/// Returns the existing keys, each with the type of its value; all keys, if the server does not answer.
async fn kinds(conn: &Conn, keys: Vec<String>) -> Vec<String> {
    let mut types = redis::pipe();
    for key in &keys {
        types.cmd("TYPE").arg(key);
    }
    let kinds = types.query_async(&mut conn.clone()).await;
    let Ok(kinds): RedisResult<Vec<String>> = kinds else {
        return keys;
    };
    let both = keys.iter().zip(kinds).filter(|(_, kind)| kind != "none");
    let named: Vec<_> = both
        .map(|(key, kind)| format!("{key} (now a {kind})"))
        .collect();
    if named.is_empty() { keys } else { named }
}

impl Named {
    pub(crate) fn call(&self, verb: Verb) -> Call<'_> {
        Call {
            verb,
            script: self.get(verb),
            keys: Cmd::with_capacity(KEYS.0, KEYS.1),
            args: Cmd::with_capacity(ARGS.0, ARGS.1),
        }
    }
}

impl Call<'_> {
    pub(crate) fn key(mut self, key: impl ToRedisArgs) -> Self {
        self.keys.arg(key);
        self
    }

    pub(crate) fn arg(mut self, arg: impl ToRedisArgs) -> Self {
        self.args.arg(arg);
        self
    }

    pub(crate) fn push_key(&mut self, key: impl ToRedisArgs) {
        self.keys.arg(key);
    }

    pub(crate) fn push_arg(&mut self, arg: impl ToRedisArgs) {
        self.args.arg(arg);
    }

    pub(crate) async fn run<T: FromRedisValue>(self, conn: &Conn) -> Result<T, Error> {
        match self.answered(&mut conn.clone()).await {
            Ok(answer) => Ok(answer),
            Err(source) => Err(self.failed(conn, source).await),
        }
    }

    /// Returns the answer of a script that returns an array.
    pub(crate) async fn answer(self, conn: &Conn) -> Result<Answer, Error> {
        let verb = self.verb.name();
        Answer::new(verb, self.run(conn).await?)
    }

    /// Returns the error of a refused call. For a script, the server names neither the key nor the command, so they
    /// are searched for.
    async fn failed(&self, conn: &Conn, source: RedisError) -> Error {
        let (verb, mut keys) = (self.verb.name(), self.keys());
        if is_denied(&source) {
            let first = keys.first().map_or("", String::as_str);
            let scripts = Layout::ALL.map(|layout| self.verb.source(layout)).concat();
            let lacks = acl::may_not(conn, first, &scripts).await;
            return Error::Denied {
                verb,
                keys: keys.join(", "),
                lacks: lacks.unwrap_or_default(),
                source,
            };
        }
        if source.code() != Some("WRONGTYPE") {
            return Error::Call { verb, source };
        }
        keys = kinds(conn, keys).await;
        // Scripts also build keys from arguments and stored data.
        keys.push(match self.verb.schema() {
            Schema::Hero => "one that all calls share (`meshwork doctor` names it)".to_owned(),
            _ => "one whose name begins like these".to_owned(),
        });
        let keys = keys.join(", ");
        Error::WrongKind { verb, keys }
    }

    /// Returns the keys of the call, each once.
    fn keys(&self) -> Vec<String> {
        let mut keys: Vec<String> = Vec::new();
        for part in self.keys.args_iter() {
            let Arg::Simple(key) = part else { continue };
            let key = String::from_utf8_lossy(key).into_owned();
            if keys.len() < MOST_NAMED && !key.is_empty() && !keys.contains(&key) {
                keys.push(key);
            }
        }
        keys
    }

    /// Returns the answer of the script, which is loaded first if the server does not know it.
    async fn answered<T: FromRedisValue>(&self, conn: &mut Conn) -> RedisResult<T> {
        let cmd = self.cmd();
        match cmd.query_async(conn).await {
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                self.script.load_async(conn).await?;
                cmd.query_async(conn).await
            }
            answer => answer,
        }
    }

    fn cmd(&self) -> Cmd {
        let (keys, args) = (self.keys.args_iter(), self.args.args_iter());
        let (many, keys_given) = (keys.len() + args.len(), keys.len());
        let parts = keys.chain(args).filter_map(|part| match part {
            Arg::Simple(part) => Some(part),
            _ => None,
        });
        let long = parts.clone().map(<[u8]>::len).sum::<usize>();
        let mut cmd = Cmd::with_capacity(3 + many, HEAD + long);
        cmd.arg("EVALSHA").arg(self.script.get_hash());
        cmd.arg(keys_given);
        for part in parts {
            cmd.arg(part);
        }
        cmd
    }
}
