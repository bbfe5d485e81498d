//! Keys of the node that a single server had, on a Cluster: they are moved once under the hash tag of the node.
//!
//! | `{mw}:mw:moving` | state |
//! |---|---|
//! | missing | not begun, or done: there are keys with the tag |
//! | `copy` | each key is copied, unless its copy exists; no program uses a copy yet |
//! | `delete` | all copies exist; the originals are deleted, those that name the others last |
//!
//! Every step may be repeated, by several processes at once: a copy is written in a transaction that fails if the state is
//! another one.

use std::collections::BTreeSet;

use meshwork_model::context::NodeId;
use meshwork_model::keys::context::{ActorId, NodeKeys};
use redis::aio::ConnectionLike;
use redis::{Cmd, FromRedisValue, RedisError, Value};

use super::ContextStore;
use crate::conn::Conn;
use crate::error::Error;
use crate::error::is_denied;

const VERB: &str = "read keys of the node";
/// Field of the state.
const STEP: &str = "step";
const COPY: &str = "copy";
const DELETE: &str = "delete";
/// Greatest number of actors without a key in the index that are looked for.
const MAX_UNINDEXED: u32 = 10_000;
/// Bound of the state changes that one process sees. Two are its own.
const MAX_STATES: usize = 16;

const PLAIN: NodeKeys = NodeKeys::PLAIN;
const TAGGED: NodeKeys = NodeKeys::TAGGED;

fn failed(source: RedisError) -> Error {
    match is_denied(&source) {
        true => Error::NotMoved(source),
        false => Error::Call { verb: VERB, source },
    }
}

/// Sends a command to the node of a key.
async fn at<T: FromRedisValue>(conn: &Conn, key: &str, cmd: &Cmd) -> Result<T, RedisError> {
    cmd.query_async(&mut conn.of_key(key)).await
}

fn of_key(name: &str, key: &str) -> Cmd {
    let mut cmd = redis::cmd(name);
    cmd.arg(key);
    cmd
}

/// Keys without which nothing else of a node exists.
fn heads(keys: NodeKeys) -> [String; 4] {
    [
        keys.contexts(),
        keys.actors(),
        keys.identity(),
        keys.peers(),
    ]
}

/// Keys that name the others.
fn sources() -> [String; 3] {
    [PLAIN.actors(), PLAIN.next_actor(), PLAIN.peers()]
}

impl ContextStore {
    /// Returns the connection for a call with this key. The first call with a key of the node moves those that a single
    /// server had.
    pub(super) async fn conn_for(&self, key: &str) -> Result<&Conn, Error> {
        if self.conn.is_cluster() && key.starts_with(TAGGED.prefix()) {
            let moved = async || move_all(&self.conn).await;
            self.conn.node_keys().get_or_try_init(moved).await?;
        }
        Ok(&self.conn)
    }

    /// Returns the keys of a single server among the first keys of a Cluster's node, and true if its own ones exist too.
    pub(crate) async fn unmoved(&self) -> Result<(Vec<String>, bool), Error> {
        match self.conn.is_cluster() {
            true => {
                let plain = existing(&self.conn, &heads(PLAIN)).await?;
                let tagged = existing(&self.conn, &heads(TAGGED)).await?;
                Ok((plain, !tagged.is_empty()))
            }
            false => Ok((Vec::new(), false)),
        }
    }
}

async fn existing(conn: &Conn, keys: &[String]) -> Result<Vec<String>, Error> {
    let mut found = Vec::new();
    for key in keys {
        let exists = at::<bool>(conn, key, &of_key("EXISTS", key)).await;
        if exists.map_err(failed)? {
            found.push(key.clone());
        }
    }
    Ok(found)
}

async fn move_all(conn: &Conn) -> Result<(), Error> {
    let moving = TAGGED.moving();
    let mut read = of_key("HGET", &moving);
    read.arg(STEP);
    for _ in 0..MAX_STATES {
        let state = match at::<Option<String>>(conn, &moving, &read).await {
            // A user of one context may not read it, and moves nothing.
            Err(error) if is_denied(&error) => return Ok(()),
            state => state.map_err(failed)?,
        };
        match state.as_deref() {
            Some(COPY) => {
                let keys = plain_keys(conn).await?;
                if copy(conn, &keys).await? {
                    change(conn, Some(COPY), Some(DELETE)).await?;
                }
            }
            Some(_) => {
                let keys = plain_keys(conn).await?;
                for key in &keys {
                    let delete = of_key("UNLINK", key);
                    at::<u64>(conn, key, &delete).await.map_err(failed)?;
                }
                if change(conn, Some(DELETE), None).await? {
                    tracing::warn!(
                        keys = keys.len(),
                        "actors and registry of contexts moved: on a Cluster their keys begin with {{mw}}:"
                    );
                }
            }
            None => {
                if !existing(conn, &heads(TAGGED)).await?.is_empty() {
                    return Ok(());
                }
                if existing(conn, &heads(PLAIN)).await?.is_empty() {
                    return Ok(());
                }
                change(conn, None, Some(COPY)).await?;
            }
        }
    }
    let source = (redis::ErrorKind::Io, "other processes move them too").into();
    Err(Error::Call { verb: VERB, source })
}

/// Returns the keys of a single server, those that name others last. Keys that do not exist may be among them.
async fn plain_keys(conn: &Conn) -> Result<Vec<String>, Error> {
    let [actors, next, peers] = sources();
    let values = async |key: &str| {
        let found = at::<Vec<Vec<u8>>>(conn, key, &of_key("HVALS", key)).await;
        let texts = found.map_err(failed)?.into_iter();
        Ok::<Vec<_>, Error>(texts.filter_map(|it| String::from_utf8(it).ok()).collect())
    };
    let counter = at::<Option<u32>>(conn, &next, &of_key("GET", &next)).await;
    let counter = counter.map_err(failed)?.unwrap_or_default();
    let mut ids: BTreeSet<ActorId> = (1..=counter.min(MAX_UNINDEXED)).map(ActorId).collect();
    ids.extend(
        values(&actors)
            .await?
            .iter()
            .filter_map(|it| it.parse::<ActorId>().ok()),
    );
    let mut keys: Vec<_> = ids.into_iter().map(|id| PLAIN.actor(id)).collect();
    for node in values(&peers).await? {
        if let Ok(node) = node.parse::<NodeId>() {
            keys.extend([
                PLAIN.peer(node),
                PLAIN.peer_outbox(node),
                PLAIN.peer_held(node),
            ]);
        }
    }
    keys.extend([
        PLAIN.contexts(),
        PLAIN.identity(),
        PLAIN.mesh_refused(),
        PLAIN.mesh(),
        PLAIN.audit(),
        PLAIN.refused(),
    ]);
    keys.extend(sources());
    Ok(keys)
}

/// Copies keys, and returns false if the state has changed.
async fn copy(conn: &Conn, keys: &[String]) -> Result<bool, Error> {
    for key in keys {
        let dump = at::<Option<Vec<u8>>>(conn, key, &of_key("DUMP", key)).await;
        let Some(dump) = dump.map_err(failed)? else {
            continue;
        };
        let expires = at::<i64>(conn, key, &of_key("PTTL", key)).await;
        let expires = expires.map_err(failed)?;
        let mut restore = redis::cmd("RESTORE");
        restore.arg(TAGGED.moved(key)).arg(expires.max(0)).arg(dump);
        match in_state(conn, Some(COPY), restore).await {
            // Another process has copied it.
            Err(error) if error.code() == Some("BUSYKEY") => {}
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(true)
}

/// Changes the state, unless it is not `from` any more.
async fn change(conn: &Conn, from: Option<&str>, to: Option<&str>) -> Result<bool, Error> {
    let moving = TAGGED.moving();
    let cmd = match to {
        Some(to) => {
            let mut set = of_key("HSET", &moving);
            set.arg(STEP).arg(to);
            set
        }
        None => of_key("DEL", &moving),
    };
    in_state(conn, from, cmd).await.map_err(failed)
}

/// Sends a command for a key with the tag if the state is this one.
async fn in_state(conn: &Conn, state: Option<&str>, cmd: Cmd) -> Result<bool, RedisError> {
    let moving = TAGGED.moving();
    let mut conn = conn.of_key(&moving).dedicated().await?;
    let watch = of_key("WATCH", &moving);
    watch.query_async::<()>(&mut conn).await?;
    let mut read = of_key("HGET", &moving);
    let now: Option<String> = read.arg(STEP).query_async(&mut conn).await?;
    if now.as_deref() != state {
        return Ok(false);
    }
    redis::cmd("MULTI").query_async::<()>(&mut conn).await?;
    cmd.query_async::<()>(&mut conn).await?;
    let done = conn.req_packed_command(&redis::cmd("EXEC")).await?;
    match done.extract_error()? {
        Value::Array(replies) => {
            for reply in replies {
                reply.extract_error()?;
            }
            Ok(true)
        }
        _ => Ok(false),
    }
}
