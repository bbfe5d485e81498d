//! The call of one script: its keys and arguments, and its transmission.

use redis::{
    Arg, Cmd, ErrorKind, FromRedisValue, RedisError, RedisResult, Script, ServerErrorKind,
    ToRedisArgs,
};

use super::answer::Answer;
use super::{Layout, Made, Named, Protocol, Verb, rights};
use crate::commands;
use crate::conn::Conn;
use crate::error::Error;
use crate::error::{MOST_NAMED, is_denied};

/// Initial capacity for keys and arguments, in number and bytes.
const KEYS: (usize, usize) = (8, 256);
const ARGS: (usize, usize) = (16, 1024);

/// Capacity for the rest of the command.
const HEAD: usize = "EVALSHA_RO".len() + 40 + 8;

/// A call of one script.
pub(crate) struct Call<'a> {
    verb: Verb,
    script: &'a Script,
    // Commands store each text behind the other, which needs far fewer allocations than a string for each.
    keys: Cmd,
    args: Cmd,
    /// True for `EVALSHA_RO`: the caller needs only the right to read the keys.
    reads: bool,
    /// False if the keys follow the arguments, since they are in another database than that of the connection.
    declares: bool,
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
        let Made { script, reads } = self.get(verb);
        Call {
            verb,
            script,
            keys: Cmd::with_capacity(KEYS.0, KEYS.1),
            args: Cmd::with_capacity(ARGS.0, ARGS.1),
            reads: *reads,
            declares: true,
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

    /// Sends the keys behind the arguments, for `lua/lib/enter_database.lua`.
    pub(crate) fn undeclared(mut self) -> Self {
        self.declares = false;
        self
    }

    pub(crate) async fn run<T: FromRedisValue>(self, conn: &Conn) -> Result<T, Error> {
        let mut conn = self.led(conn);
        match self.answered(&mut conn).await {
            Ok(answer) => Ok(answer),
            Err(source) => Err(self.failed(&conn, source).await),
        }
    }

    /// Returns the connection for the call. Those for contexts and the node go to any slot of a cluster.
    fn led(&self, conn: &Conn) -> Conn {
        let (Protocol::Context, Some(Arg::Simple(first))) =
            (self.verb.protocol(), self.keys.args_iter().next())
        else {
            return conn.clone();
        };
        std::str::from_utf8(first).map_or_else(|_| conn.clone(), |key| conn.of_key(key))
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
            let lacks = match source.detail().and_then(commands::lacked) {
                Some(lacks) => lacks,
                // Without a key, each command would seem to be missing.
                None if first.is_empty() => Vec::new(),
                None => {
                    let needed = Layout::ALL.map(|layout| rights::needed(self.verb, layout));
                    let needed = needed.into_iter().flatten().collect();
                    let lacks = commands::may_not(conn, first, &needed).await;
                    lacks.unwrap_or_default()
                }
            };
            return Error::Denied {
                verb,
                keys: keys.join(", "),
                lacks,
                source,
            };
        }
        if source.code() != Some("WRONGTYPE") {
            return Error::Call { verb, source };
        }
        keys = kinds(conn, keys).await;
        // Scripts also build keys from arguments and stored data.
        keys.push(match self.verb.protocol() {
            Protocol::Hero => "one that all calls share (`meshwork doctor` names it)".to_owned(),
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
        let cmd = self.command();
        match cmd.query_async(conn).await {
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                self.script.load_async(conn).await?;
                cmd.query_async(conn).await
            }
            answer => answer,
        }
    }

    /// Returns the command, for a pipeline. The server refuses it if the script is not loaded.
    pub(crate) fn command(&self) -> Cmd {
        let (keys, args) = (self.keys.args_iter(), self.args.args_iter());
        let (many, keys_given) = (keys.len() + args.len(), keys.len());
        let long = |part: Arg<&[u8]>| match part {
            Arg::Simple(part) => part.len(),
            _ => 0,
        };
        let long = keys.clone().chain(args.clone()).map(long).sum::<usize>();
        let mut cmd = Cmd::with_capacity(4 + many, HEAD + long);
        cmd.arg(if self.reads { "EVALSHA_RO" } else { "EVALSHA" });
        cmd.arg(self.script.get_hash());
        if self.declares {
            cmd.arg(keys_given);
            add(&mut cmd, keys.chain(args));
        } else {
            cmd.arg(0);
            add(&mut cmd, args.chain(keys));
            cmd.arg(keys_given);
        }
        cmd
    }
}

fn add<'a>(cmd: &mut Cmd, parts: impl Iterator<Item = Arg<&'a [u8]>>) {
    for part in parts {
        if let Arg::Simple(part) = part {
            cmd.arg(part);
        }
    }
}
