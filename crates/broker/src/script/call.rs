//! A call of one script: what it is given, and how it is sent.

use redis::{
    Arg, Cmd, ErrorKind, FromRedisValue, RedisResult, Script, ServerErrorKind, ToRedisArgs,
};

use super::{Named, Verb};
use crate::Error;
use crate::conn::Conn;

/// Room for the keys and the arguments that scripts usually have, and their bytes.
const KEYS: (usize, usize) = (8, 256);
const ARGS: (usize, usize) = (16, 1024);

/// Room for what is no key and no argument.
const HEAD: usize = "EVALSHA".len() + 40 + 4;

/// A call of one script.
pub(crate) struct Call<'a> {
    verb: Verb,
    script: &'a Script,
    // What commands are made of, each text after the other: far less than a piece of memory for each of them.
    keys: Cmd,
    args: Cmd,
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
        let verb = self.verb.name();
        let answer = self.answered(&mut conn.clone()).await;
        answer.map_err(|source| Error::Call { verb, source })
    }

    /// What the script answers; one that the server does not know is given to it.
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
