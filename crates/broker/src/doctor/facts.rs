//! Facts about a server, collected once for all checks. Nothing is judged here.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use meshwork_model::keys::hero::JobKeys;
use meshwork_model::name::Namespace;
use redis::{Cmd, FromRedisValue, RedisResult};
use tokio::time::Instant;

use crate::conn::{Conn, ConnectError, Security, Target};
use crate::{acl, commands};

/// Settings that the checks need. None of them is a secret.
const SETTINGS: [&str; 9] = [
    "appendfsync",
    "appendonly",
    "hash-max-listpack-value",
    "maxclients",
    "maxmemory",
    "maxmemory-policy",
    "min-replicas-to-write",
    "no-appendfsync-on-rewrite",
    "save",
];

/// Number of measured round trips. The shortest one is that of the network; the others include the server's load.
const ROUND_TRIPS: usize = 5;

/// Facts for the checks.
pub(super) struct Facts {
    /// True for the embedded engine.
    pub(super) embedded: bool,
    pub(super) namespace: Namespace,
    /// Number of replicas that confirm each enqueued job, by the URL.
    pub(super) confirmations: Option<u32>,
    /// Security of the connection; `None` for a data directory.
    pub(super) security: Option<Security>,
    info: HashMap<String, String>,
    /// Settings; `None` if this user may not read them.
    settings: Option<HashMap<String, String>>,
    /// Commands of scripts that this user may not send; `None` if unknown.
    pub(super) denied: Option<Vec<&'static str>>,
    /// Commands that Meshwork sends and the server does not have: it renames them, or has switched them off.
    pub(super) missing: Vec<String>,
    /// Name of this user on the server.
    pub(super) user: Option<String>,
    pub(super) round_trip: Duration,
    /// Milliseconds by which the server's clock is ahead of this host's.
    pub(super) ahead_ms: Option<i64>,
}

impl Facts {
    pub(super) async fn gather(
        conn: &Conn,
        target: &Target,
        namespace: &Namespace,
    ) -> Result<Self, ConnectError> {
        let unreachable = |source| ConnectError::Unreachable {
            place: target.place(),
            source,
        };
        let mut round_trip = Duration::MAX;
        for _ in 0..ROUND_TRIPS {
            let begun = Instant::now();
            // A user without the right to PING still measures the round trip.
            if let Err(error) = ask::<String>(conn, &redis::cmd("PING")).await
                && error.is_io_error()
            {
                return Err(unreachable(error));
            }
            round_trip = round_trip.min(begun.elapsed());
        }
        let info = info(conn).await.map_err(unreachable)?;
        let mut who = redis::cmd("ACL");
        who.arg("WHOAMI");
        Ok(Self {
            embedded: info.contains_key("meshwork_version"),
            namespace: namespace.clone(),
            confirmations: target.acknowledge().map(|rule| rule.replicas),
            security: target.security(),
            info,
            settings: settings(conn).await,
            denied: acl::denied(conn, &JobKeys::new(namespace.clone())).await,
            missing: commands::missing(conn).await,
            user: ask(conn, &who).await.ok(),
            round_trip,
            ahead_ms: ahead(conn).await,
        })
    }

    /// Returns the facts of another node of the Cluster, without those of the user and of the connection.
    pub(super) async fn of_node(&self, node: &Conn) -> RedisResult<Self> {
        Ok(Self {
            embedded: false,
            namespace: self.namespace.clone(),
            confirmations: self.confirmations,
            security: None,
            info: info(node).await?,
            settings: settings(node).await,
            denied: None,
            missing: Vec::new(),
            user: None,
            round_trip: self.round_trip,
            ahead_ms: ahead(node).await,
        })
    }

    /// Returns a line of `INFO`.
    pub(super) fn info(&self, name: &str) -> Option<&str> {
        self.info.get(name).map(String::as_str)
    }

    /// Returns a line of `INFO` as a number.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.info(name)?.parse().ok()
    }

    /// Returns a setting.
    pub(super) fn setting(&self, name: &str) -> Option<&str> {
        self.settings.as_ref()?.get(name).map(String::as_str)
    }

    /// Returns whether this user may read the settings.
    pub(super) fn knows_settings(&self) -> bool {
        self.settings.is_some()
    }
}

/// Returns the lines of `INFO`. A missing right is reported by the finding about rights.
async fn info(conn: &Conn) -> RedisResult<HashMap<String, String>> {
    let info = match ask::<String>(conn, &redis::cmd("INFO")).await {
        Err(error) if error.is_io_error() => return Err(error),
        info => info.unwrap_or_default(),
    };
    let pair = |line: &str| {
        let (name, value) = line.split_once(':')?;
        Some((name.to_owned(), value.trim().to_owned()))
    };
    Ok(info.lines().filter_map(pair).collect())
}

async fn settings(conn: &Conn) -> Option<HashMap<String, String>> {
    let mut get = redis::cmd("CONFIG");
    ask(conn, get.arg("GET").arg(&SETTINGS)).await.ok()
}

/// Sends one command.
pub(super) async fn ask<T: FromRedisValue>(conn: &Conn, cmd: &Cmd) -> RedisResult<T> {
    cmd.query_async(&mut conn.clone()).await
}

/// Returns the milliseconds by which the server's clock is ahead of this host's, corrected by half a round trip.
async fn ahead(conn: &Conn) -> Option<i64> {
    let before = now()?;
    let (seconds, micros): (u64, u64) = ask(conn, &redis::cmd("TIME")).await.ok()?;
    let after = now()?;
    let theirs = Duration::from_secs(seconds) + Duration::from_micros(micros);
    let ours = before + after.saturating_sub(before) / 2;
    let apart = theirs.abs_diff(ours).as_millis();
    let apart = i64::try_from(apart).unwrap_or(i64::MAX);
    Some(if theirs < ours { -apart } else { apart })
}

#[allow(
    clippy::disallowed_methods,
    reason = "the host's clock is what is looked at"
)]
fn now() -> Option<Duration> {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .ok()
}
