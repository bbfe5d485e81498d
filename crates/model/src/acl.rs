//! ACL users of a server for a context: admin, reader, executor and runner, as the words of `ACL SETUSER`.
//!
//! Commands are named one by one. A category is never among them: `+@read` has SCAN and RANDOMKEY, which name the keys of
//! all others, and `+@admin` lets a user widen himself. A right is a pair of keys and commands: whoever may write jobs
//! and pop queues cannot pop a job, or write a queue.

use std::fmt;

use data_encoding::HEXLOWER;

use crate::keys::context::{ContextKeys, ContextLayout, NodeKeys};

/// What an ACL user is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AclUser {
    /// Does everything in the context, with any client.
    Admin,
    /// Reads everything in the context.
    Reader,
    /// Is a plain runner: takes jobs off queues and writes them.
    Executor,
    /// Is a worker of ours, which has leases, feeds and events besides.
    Runner,
}

impl AclUser {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Admin, Self::Reader, Self::Executor, Self::Runner];

    /// The word in the user's name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Reader => "reader",
            Self::Executor => "executor",
            Self::Runner => "runner",
        }
    }
}

impl fmt::Display for AclUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The store for which rules are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AclServer {
    /// Valkey, with its version.
    Valkey {
        /// As the 9 in 9.1.
        major: u32,
        /// As the 1 in 9.1.
        minor: u32,
    },
    /// Redis, with its version.
    Redis {
        /// As the 7 in 7.0.
        major: u32,
    },
    /// The embedded engine.
    Embedded,
}

/// The first Valkey that knows databases in rules.
const VALKEY_WITH_DATABASES: (u32, u32) = (9, 1);
/// The first Redis with several parts in a rule, and with keys that may be read only.
const REDIS_WITH_PARTS: u32 = 7;

impl AclServer {
    /// Whether rules can name a database.
    const fn knows_databases(self) -> bool {
        let (first, then) = VALKEY_WITH_DATABASES;
        match self {
            Self::Valkey { major, minor } => major > first || (major == first && minor >= then),
            Self::Redis { .. } | Self::Embedded => false,
        }
    }
}

/// Why no rules are written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AclRefusal {
    /// The engine has no users at all.
    #[error(
        "the embedded engine has no ACL: whoever may open its data directory may do everything. Move the context to a \
         Redis or Valkey server"
    )]
    Embedded,
    /// Redis cannot tell databases apart.
    #[error(
        "Redis has no ACL rule by database, so that no user can be kept in that of context {context}: create the context \
         in the layout `prefix`, or use Valkey 9.1 or newer"
    )]
    NoDatabases {
        /// The context.
        context: u32,
    },
    /// This Valkey cannot either.
    #[error(
        "Valkey {major}.{minor} has no ACL rule by database, so that no user can be kept in that of context {context}: \
         use Valkey 9.1 or newer, or create the context in the layout `prefix`"
    )]
    OldValkey {
        /// The context.
        context: u32,
        /// Its version.
        major: u32,
        /// Its version.
        minor: u32,
    },
    /// Rules of one part cannot say what is needed.
    #[error("Redis {major} has no ACL rules of several parts: use Redis 7.0 or newer")]
    OldRedis {
        /// Its version.
        major: u32,
    },
}

/// Any client says these; they have no keys.
const OF_CONNECTIONS: [&str; 3] = ["hello", "ping", "client|id"];

/// What looks at a hash.
const OF_RECORDS: [&str; 7] = [
    "exists", "hexists", "hget", "hgetall", "hlen", "hmget", "type",
];

/// What looks at anything.
const OF_READERS: [&str; 24] = [
    "exists",
    "get",
    "hexists",
    "hget",
    "hgetall",
    "hlen",
    "hmget",
    "hstrlen",
    "llen",
    "lpos",
    "lrange",
    "scard",
    "smembers",
    "sscan",
    "type",
    "xlen",
    "xrange",
    "xread",
    "xrevrange",
    "zcard",
    "zrange",
    "zrangebyscore",
    "zscan",
    "zscore",
];

/// What our client and our worker say, in scripts and outside.
const OF_OURS: [&str; 61] = [
    "blmove",
    "blpop",
    "client|unblock",
    "cluster|slots",
    "del",
    "eval",
    "evalsha",
    "exists",
    "get",
    "hdel",
    "hexists",
    "hget",
    "hgetall",
    "hincrby",
    "hlen",
    "hmget",
    "hset",
    "hsetnx",
    "hstrlen",
    "incr",
    "info",
    "llen",
    "lmove",
    "lmpop",
    "lpop",
    "lpos",
    "lpush",
    "lrange",
    "lrem",
    "ltrim",
    "pexpire",
    "role",
    "rpop",
    "rpush",
    "sadd",
    "scard",
    "script|load",
    "set",
    "smembers",
    "srem",
    "sscan",
    "time",
    "type",
    "wait",
    "xadd",
    "xlen",
    "xrange",
    "xread",
    "xrevrange",
    "zadd",
    "zcard",
    "zpopmin",
    "zrange",
    "zrangebyscore",
    "zrank",
    "zrem",
    "zremrangebyscore",
    "zrevrangebyscore",
    "zscan",
    "zscore",
    "acl|whoami",
];

/// What takes elements off a queue, and counts them.
const OF_POPS: [&str; 4] = ["blpop", "brpop", "llen", "rpop"];

/// Keys, and the commands that may be said of them.
struct Part {
    /// Each with what may be done: `~`, `%R~` or `%W~`.
    keys: Vec<String>,
    commands: Vec<&'static str>,
    database: u32,
}

impl Part {
    /// The words of the part, without parentheses.
    fn words(&self, databases: bool) -> Vec<String> {
        let database = databases.then(|| format!("db={}", self.database));
        let commands = self.commands.iter().map(|command| format!("+{command}"));
        database
            .into_iter()
            .chain(self.keys.iter().cloned())
            .chain(commands)
            .collect()
    }
}

/// Which words an ACL user is made of.
struct Writer<'a> {
    keys: &'a ContextKeys,
    /// Whether rules name databases.
    databases: bool,
}

impl Writer<'_> {
    fn part(&self, keys: &[(&str, &str)], commands: &[&'static str]) -> Part {
        let prefix = self.keys.prefix();
        let keys = keys
            .iter()
            .map(|(right, name)| format!("{right}~{prefix}{name}"));
        Part {
            keys: keys.collect(),
            commands: commands.to_vec(),
            database: self.keys.database(),
        }
    }

    /// The first part has no parentheses, and what every client says.
    fn root(&self, mut part: Part, scans: bool) -> Part {
        part.commands.extend(OF_CONNECTIONS);
        if self.keys.layout() == ContextLayout::Db {
            part.commands.push("select");
            // In a database of its own a scan names no other context's keys.
            part.commands.extend(scans.then_some("scan"));
        }
        part
    }

    /// The public keys of actors, in database 0.
    fn actors(&self) -> Part {
        let mut commands = OF_RECORDS.to_vec();
        if self.keys.layout() == ContextLayout::Db {
            commands.push("select");
        }
        Part {
            keys: vec![format!("%R~{}*", NodeKeys.actor_prefix())],
            commands,
            database: NodeKeys::DATABASE,
        }
    }

    fn parts(&self, user: AclUser) -> Vec<Part> {
        let own = format!("context:{}", self.keys.context());
        let looks = [("%R", own.as_str()), ("%R", "flow:*"), ("%R", "runner:*")];
        match user {
            AclUser::Admin => vec![self.root(self.part(&[("", "*")], &OF_OURS), true)],
            AclUser::Reader => vec![self.root(self.part(&[("%R", "*")], &OF_READERS), true)],
            AclUser::Executor => {
                let jobs = [&OF_RECORDS[..], &["hset"]].concat();
                vec![
                    self.root(self.part(&[("", "job:*")], &jobs), false),
                    self.part(&[("", "queue:*")], &OF_POPS),
                    self.part(&looks, &OF_RECORDS),
                ]
            }
            AclUser::Runner => {
                // Its scripts keep flows too; the context's permissions and the runners are not its to change.
                let works = ["job:*", "queue:*", "flow:*", "message:*", "msg_*", "mw:*"];
                let works = works.map(|name| ("", name));
                vec![
                    self.root(self.part(&works, &OF_OURS), true),
                    self.part(&looks, &OF_RECORDS),
                ]
            }
        }
    }
}

/// The rules of a user: what follows the name in `ACL SETUSER`, without password. They take away all rights that the
/// user had before.
///
/// # Errors
/// Why this server cannot keep the user in the context.
pub fn rules(
    user: AclUser,
    keys: &ContextKeys,
    server: AclServer,
) -> Result<Vec<String>, AclRefusal> {
    let context = keys.context().get();
    match server {
        AclServer::Embedded => return Err(AclRefusal::Embedded),
        AclServer::Redis { major } if major < REDIS_WITH_PARTS => {
            return Err(AclRefusal::OldRedis { major });
        }
        AclServer::Redis { .. } if keys.layout() == ContextLayout::Db => {
            return Err(AclRefusal::NoDatabases { context });
        }
        AclServer::Valkey { major, minor }
            if keys.layout() == ContextLayout::Db && !server.knows_databases() =>
        {
            return Err(AclRefusal::OldValkey {
                context,
                major,
                minor,
            });
        }
        AclServer::Redis { .. } | AclServer::Valkey { .. } => {}
    }
    let writer = Writer {
        keys,
        databases: server.knows_databases(),
    };
    let mut words: Vec<_> = ["clearselectors", "resetkeys", "resetchannels", "-@all"]
        .map(str::to_owned)
        .into();
    if writer.databases {
        words.push("resetdbs".to_owned());
    }
    let parts = writer.parts(user);
    for (at, part) in parts.iter().chain([&writer.actors()]).enumerate() {
        let part = part.words(writer.databases);
        match at {
            0 => words.extend(part),
            _ => words.push(format!("({})", part.join(" "))),
        }
    }
    Ok(words)
}

/// The name of a context's ACL user: `mw-ctx7-reader`.
#[must_use]
pub fn user_name(user: AclUser, keys: &ContextKeys) -> String {
    format!("mw-ctx{}-{user}", keys.context())
}

/// The words after `ACL` that make such a user, or change him to these rules. The server is given the SHA-256 of the
/// password, never the password.
///
/// # Errors
/// As for [`rules`].
pub fn set_user(
    user: AclUser,
    keys: &ContextKeys,
    server: AclServer,
    password_sha256: &[u8; 32],
) -> Result<Vec<String>, AclRefusal> {
    let head = [
        "SETUSER".to_owned(),
        user_name(user, keys),
        "reset".to_owned(),
        "on".to_owned(),
        format!("#{}", HEXLOWER.encode(password_sha256)),
    ];
    let rules = rules(user, keys, server)?;
    Ok(head.into_iter().chain(rules).collect())
}

#[cfg(test)]
mod tests;
