//! Rules of ACL users for a context: admin, reader, executor and runner, as arguments of `ACL SETUSER`.
//!
//! The rules name each command and no category. `+@read` has SCAN and RANDOMKEY, which list the keys of other
//! contexts. `+@admin` lets a user extend his own rights. Each right pairs keys with commands: a user who may write
//! jobs and pop queues cannot pop a job, or write a queue.

use std::fmt;

use data_encoding::HEXLOWER;

use crate::keys::context::{ContextKeys, ContextLayout, NodeKeys};

/// The purpose of an ACL user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AclUser {
    /// May do everything in the context, with any client.
    Admin,
    /// May read everything in the context.
    Reader,
    /// May claim jobs from queues and write them, as a plain runner.
    Executor,
    /// May do the work of Meshwork's worker, which also uses leases, prefetch lists and events.
    Runner,
}

impl AclUser {
    /// All kinds of users.
    pub const ALL: [Self; 4] = [Self::Admin, Self::Reader, Self::Executor, Self::Runner];

    /// The part of the user's name that names the kind.
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

/// The kind and version of the server that the rules are written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AclServer {
    /// Valkey, with its version.
    Valkey {
        /// The major version: 9 in 9.1.
        major: u32,
        /// The minor version: 1 in 9.1.
        minor: u32,
    },
    /// Redis, with its version.
    Redis {
        /// The major version: 7 in 7.0.
        major: u32,
    },
    /// The embedded engine.
    Embedded,
}

/// The first version of Valkey with databases in rules.
const VALKEY_WITH_DATABASES: (u32, u32) = (9, 1);
/// The first version of Redis with selectors, and with read-only keys, in rules.
const REDIS_WITH_PARTS: u32 = 7;

impl AclServer {
    /// Returns whether rules can name a database.
    const fn knows_databases(self) -> bool {
        let (first, then) = VALKEY_WITH_DATABASES;
        match self {
            Self::Valkey { major, minor } => major > first || (major == first && minor >= then),
            Self::Redis { .. } | Self::Embedded => false,
        }
    }
}

/// The reason why no rules can be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AclRefusal {
    /// The embedded engine has no users.
    #[error(
        "the embedded engine has no ACL: users who may open its data directory may do everything. Move the context to a \
         Redis or Valkey server"
    )]
    Embedded,
    /// Each node of a Cluster has users of its own.
    #[error(
        "each node of a Cluster has users of its own, and this call reaches one: send the rules of docs/permissions.md to \
         each node with ACL SETUSER"
    )]
    Cluster,
    /// Redis has no rules by database.
    #[error(
        "Redis has no ACL rule by database, so that no user can be kept in that of context {context}: create the context \
         in the layout `prefix`, or use Valkey 9.1 or newer"
    )]
    NoDatabases {
        /// Number of the context.
        context: u32,
    },
    /// This version of Valkey has no rules by database.
    #[error(
        "Valkey {major}.{minor} has no ACL rule by database, so that no user can be kept in that of context {context}: \
         use Valkey 9.1 or newer, or create the context in the layout `prefix`"
    )]
    OldValkey {
        /// Number of the context.
        context: u32,
        /// Major version of the server.
        major: u32,
        /// Minor version of the server.
        minor: u32,
    },
    /// This version of Redis has no selectors, which the rules need.
    #[error("Redis {major} has no ACL rules of several parts: use Redis 7.0 or newer")]
    OldRedis {
        /// Its version.
        major: u32,
    },
}

/// Commands without keys that any client sends.
const OF_CONNECTIONS: [&str; 3] = ["hello", "ping", "client|id"];

/// Commands that read a hash.
const OF_RECORDS: [&str; 7] = [
    "exists", "hexists", "hget", "hgetall", "hlen", "hmget", "type",
];

/// Commands that read a key of any type.
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

/// Commands of Meshwork's client and worker, inside and outside of scripts.
const OWN_NAMES: [&str; 64] = [
    "blmove",
    "blpop",
    "client|unblock",
    "cluster|slots",
    "del",
    "eval",
    "evalsha",
    "evalsha_ro",
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
    "persist",
    "pexpire",
    "role",
    "rpop",
    "rpush",
    "sadd",
    "scard",
    "script|load",
    "set",
    "sismember",
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

/// Patterns of all names except that of the audit trail: a glob excludes by one character at a time.
const BUT_THE_TRAIL: [&str; 5] = ["[^m]*", "m[^w]*", "mw[^:]*", "mw:[^a]*", "mw:a[^u]*"];
/// The audit trail, and the commands on it. DEL is none of them.
const TRAIL: &str = "mw:audit";
const OF_TRAIL: [&str; 7] = [
    "exists",
    "type",
    "xadd",
    "xlen",
    "xrange",
    "xread",
    "xrevrange",
];
/// Calls of scripts. Keys that a call declares have to be in one part together; its commands are checked one by one.
const OF_CALLS: [&str; 2] = ["evalsha", "evalsha_ro"];

/// Commands that pop elements of a queue, and count them.
const OF_POPS: [&str; 4] = ["blpop", "brpop", "llen", "rpop"];

/// Keys, and the commands that are permitted on them.
struct Part {
    /// Key patterns with their access: `~`, `%R~` or `%W~`.
    keys: Vec<String>,
    commands: Vec<&'static str>,
    database: u32,
}

impl Part {
    /// Returns the rules of this part, without parentheses.
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

/// Writes the rules of ACL users for one context.
struct Writer<'a> {
    keys: &'a ContextKeys,
    node: NodeKeys,
    /// True if rules can name databases.
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

    /// Returns the first part, which has no parentheses and adds the commands that every client sends.
    fn root(&self, mut part: Part, scans: bool) -> Part {
        part.commands.extend(OF_CONNECTIONS);
        if self.keys.layout() == ContextLayout::Db {
            part.commands.push("select");
            // In a database of its own, a scan lists no keys of other contexts.
            part.commands.extend(scans.then_some("scan"));
        }
        part
    }

    /// Returns the part for the public keys of actors, in database 0. Users of our programs also read the index of keys
    /// and the node's name, and call scripts there, which then select the context's database. The registry of contexts
    /// stays unread: it names all of them.
    fn actors(&self, user: AclUser) -> Part {
        let mut keys = vec![format!("%R~{}*", self.node.actor_prefix())];
        let mut commands = OF_RECORDS.to_vec();
        if matches!(user, AclUser::Admin | AclUser::Runner) {
            let shared = [self.node.actors(), self.node.identity()];
            keys.extend(shared.map(|key| format!("%R~{key}")));
            commands.push("evalsha_ro");
            if self.keys.layout() == ContextLayout::Db {
                commands.extend(["evalsha", "script|load", "time"]);
            }
        }
        if self.keys.layout() == ContextLayout::Db {
            commands.push("select");
        }
        Part {
            keys,
            commands,
            database: NodeKeys::DATABASE,
        }
    }

    fn parts(&self, user: AclUser) -> Vec<Part> {
        let own = format!("context:{}", self.keys.context());
        let looks = [("%R", own.as_str()), ("%R", "flow:*"), ("%R", "runner:*")];
        match user {
            AclUser::Admin => vec![
                self.root(
                    self.part(&BUT_THE_TRAIL.map(|name| ("", name)), &OWN_NAMES),
                    true,
                ),
                self.part(&[("", TRAIL)], &OF_TRAIL),
                self.part(&[("", "*")], &OF_CALLS),
            ],
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
                // The runner's scripts update flows too. They may not change the context's permissions, nor the
                // runners.
                let works = ["job:*", "queue:*", "flow:*", "message:*", "msg_*"];
                let own = [BUT_THE_TRAIL[3], BUT_THE_TRAIL[4]];
                let with = |more: &[&'static str]| -> Vec<(&'static str, &'static str)> {
                    let all = works.iter().chain(more).copied();
                    all.map(|name| ("", name)).collect()
                };
                let reads = [&OF_RECORDS[..], &["evalsha_ro"]].concat();
                vec![
                    self.root(self.part(&with(&own), &OWN_NAMES), true),
                    self.part(&[("", TRAIL)], &OF_TRAIL),
                    self.part(&with(&["mw:*"]), &OF_CALLS),
                    self.part(&looks, &reads),
                ]
            }
        }
    }
}

/// Returns the arguments of `ACL SETUSER` after the user's name, without a password. They first remove all rights
/// that the user had before.
///
/// # Errors
/// [`AclRefusal`] if this server cannot restrict the user to the context.
pub fn rules(
    user: AclUser,
    keys: &ContextKeys,
    node: NodeKeys,
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
        node,
        databases: server.knows_databases(),
    };
    let mut words: Vec<_> = ["clearselectors", "resetkeys", "resetchannels", "-@all"]
        .map(str::to_owned)
        .into();
    if writer.databases {
        words.push("resetdbs".to_owned());
    }
    let parts = writer.parts(user);
    for (at, part) in parts.iter().chain([&writer.actors(user)]).enumerate() {
        let part = part.words(writer.databases);
        match at {
            0 => words.extend(part),
            _ => words.push(format!("({})", part.join(" "))),
        }
    }
    Ok(words)
}

/// Returns the name of a context's ACL user: `mw-ctx7-reader`.
#[must_use]
pub fn user_name(user: AclUser, keys: &ContextKeys) -> String {
    format!("mw-ctx{}-{user}", keys.context())
}

/// Returns the arguments after `ACL` that create the user, or change an existing one to these rules. The server
/// receives the SHA-256 of the password, never the password.
///
/// # Errors
/// As for [`rules`].
pub fn set_user(
    user: AclUser,
    keys: &ContextKeys,
    node: NodeKeys,
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
    let rules = rules(user, keys, node, server)?;
    Ok(head.into_iter().chain(rules).collect())
}

#[cfg(test)]
mod tests;
