//! The call of one script: its keys and arguments, and its transmission.

use redis::{
    Arg, Cmd, ErrorKind, FromRedisValue, RedisError, RedisResult, Script, ServerErrorKind,
    ToRedisArgs,
};

use super::answer::Answer;
use super::{Layout, Made, Named, Protocol, Verb, rights};
use meshwork_model::keys::table::KeyTable;

use crate::commands;
use crate::conn::Conn;
use crate::error::{Error, MOST_NAMED, is_denied, lacks_command};

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
    /// Types of the keys that scripts use without receiving them.
    table: Option<&'a KeyTable>,
}

/// Returns the error of a script with the names of the commands that the server does not have, as the server's own error for
/// one of them.
async fn named(conn: &Conn, source: RedisError) -> RedisError {
    let missing = commands::missing(conn).await;
    if missing.is_empty() {
        return source;
    }
    let words = format!("unknown command '{}'", missing.join(", "));
    (source.kind(), "ResponseError", words).into()
}

/// Returns the types of keys; none, if the server does not answer.
async fn types(conn: &Conn, keys: &[String]) -> Vec<String> {
    let mut types = redis::pipe();
    for key in keys {
        types.cmd("TYPE").arg(key);
    }
    types
        .query_async(&mut conn.clone())
        .await
        .unwrap_or_default()
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
            table: self.0.table.as_ref(),
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
        if lacks_command(&source) {
            let source = named(conn, source).await;
            return Error::Call { verb, source };
        }
        if source.code() != Some("WRONGTYPE") {
            return Error::Call { verb, source };
        }
        // Scripts of contexts name it themselves.
        let named = source.detail().and_then(|text| text.split_once(" holds "));
        let named = named.map(|(key, _)| key.to_owned());
        let named = named.filter(|key| keys.contains(key));
        let found = match named {
            Some(key) => Some(key),
            None if self.table.is_none() && keys.len() == 1 => keys.first().cloned(),
            None => self.of_wrong_type(conn, &keys).await,
        };
        if let Some(key) = found {
            return Error::WrongType { verb, key };
        }
        let both = keys.iter().zip(types(conn, &keys).await);
        let named: Vec<_> = both
            .filter(|(_, kind)| kind != "none")
            .map(|(key, kind)| format!("{key} (now a {kind})"))
            .collect();
        if !named.is_empty() {
            keys = named;
        }
        // Scripts also build keys from arguments and stored data.
        keys.push(match self.table {
            Some(_) => {
                "one of a job or queue that it found (`meshwork doctor` names it)".to_owned()
            }
            None => "one whose name begins like these".to_owned(),
        });
        let keys = keys.join(", ");
        Error::WrongKind { verb, keys }
    }

    /// Returns the first key with a wrong type among those of the call, those that all calls share, and those with related
    /// names.
    async fn of_wrong_type(&self, conn: &Conn, keys: &[String]) -> Option<String> {
        let table = self.table?;
        let mut all = keys.to_vec();
        all.extend(table.fixed().map(str::to_owned));
        all.extend(table.related(keys.iter().map(String::as_str)));
        let types = types(conn, &all).await;
        let mut both = all.into_iter().zip(types);
        both.find_map(|(key, kind)| table.expected(&key, &kind).is_some().then_some(key))
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
