//! Requirements of a server: its version, and that it does not evict keys.

use redis::aio::ConnectionLike;
use redis::{ConnectionAddr, ErrorKind, RedisResult};

use super::{CALL_TIMEOUT, Conn, ConnectError, in_time, tls};
use crate::error::{passes, words};

/// Oldest supported major version: scripts with flags and `BLMPOP` need Redis 7.
const OLDEST: u64 = 7;

/// The reason why a server is not suitable for jobs, with a remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unsuitable {
    /// The version is too old.
    #[error(
        "it runs Redis {0}, and {OLDEST}.0 is the oldest that works: upgrade it, or take Valkey"
    )]
    TooOld(String),
    /// The server evicts keys when memory runs out, and jobs with them.
    #[error(
        "its maxmemory-policy is `{0}`, which deletes jobs when memory runs out: \
         run `CONFIG SET maxmemory-policy noeviction` on it, and set the same in its configuration file"
    )]
    Evicts(String),
    /// The server does not answer `INFO`.
    #[error(
        "it does not answer INFO as a Redis server does ({0}): is it one, and may this user run INFO?"
    )]
    NoInfo(String),
}

impl Unsuitable {
    /// Returns whether a version of Redis is too old.
    pub(crate) fn is_too_old(version: &str) -> bool {
        let major = version.split('.').next();
        let major = major.and_then(|major| major.parse::<u64>().ok());
        major.is_none_or(|major| major < OLDEST)
    }
}

/// The server's answer to `INFO`.
pub(super) struct ServerInfo(String);

/// Reads a server's version and settings.
pub(super) async fn read_info(
    connection: &mut (impl ConnectionLike + Send),
    place: &str,
) -> Result<ServerInfo, ConnectError> {
    let place = place.to_owned();
    let info = redis::cmd("INFO");
    let info = in_time(Some(CALL_TIMEOUT), info.query_async(connection)).await;
    info.map(ServerInfo).map_err(|error| {
        if let Some(reason) = tls::reason(&error) {
            return ConnectError::Tls { place, reason };
        }
        if error.is_io_error() || passes(&error) {
            return ConnectError::Unreachable {
                place,
                source: error,
            };
        }
        let reason = words(&error);
        if matches!(error.code(), Some("NOAUTH" | "WRONGPASS")) {
            return ConnectError::Refused { place, reason };
        }
        let reason = Unsuitable::NoInfo(reason);
        ConnectError::Unsuitable { place, reason }
    })
}

/// Checks a further node of a cluster.
///
/// # Errors
/// The node does not answer, or is not suitable for jobs.
pub(super) async fn check_node(
    connection: &mut (impl ConnectionLike + Send),
    node: &ConnectionAddr,
) -> RedisResult<()> {
    let info = redis::cmd("INFO");
    let info = in_time(Some(CALL_TIMEOUT), info.query_async(connection)).await?;
    let unsuitable = ServerInfo(info).check_version_and_policy().err();
    let refused = unsuitable.map(|reason| {
        let what = "a node of the cluster cannot be used";
        (
            ErrorKind::InvalidClientConfig,
            what,
            format!("{node}: {reason}"),
        )
    });
    refused.map_or(Ok(()), |error| Err(error.into()))
}

/// Returns [`Unsuitable::Evicts`] if the server's current settings let it evict keys.
///
/// # Errors
/// The call to the server fails.
pub(crate) async fn evicts(connection: &mut Conn) -> RedisResult<Option<Unsuitable>> {
    let mut info = redis::cmd("INFO");
    let info = ServerInfo(info.arg("memory").query_async(connection).await?);
    Ok(info.evicts())
}

impl ServerInfo {
    /// Returns true if the server is a node of a cluster.
    pub(super) fn is_cluster(&self) -> bool {
        self.field("cluster_enabled") == Some("1")
    }

    /// Returns an error for a server that does not meet the requirements, or that is still loading its data.
    pub(super) fn check(&self, place: &str) -> Result<(), ConnectError> {
        let place = place.to_owned();
        if self.field("loading") == Some("1") {
            return Err(ConnectError::Loading { place });
        }
        self.check_version_and_policy()
            .map_err(|reason| ConnectError::Unsuitable { place, reason })
    }

    /// Returns the value of a line of `INFO`.
    fn field(&self, name: &str) -> Option<&str> {
        self.0
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
            .map(str::trim)
    }

    fn check_version_and_policy(&self) -> Result<(), Unsuitable> {
        let unknown = || Unsuitable::NoInfo("no redis_version".to_owned());
        let version = self.field("redis_version").ok_or_else(unknown)?;
        if Unsuitable::is_too_old(version) {
            return Err(Unsuitable::TooOld(version.to_owned()));
        }
        self.evicts().map_or(Ok(()), Err)
    }

    fn evicts(&self) -> Option<Unsuitable> {
        let policy = self.field("maxmemory_policy")?;
        (policy != "noeviction").then(|| Unsuitable::Evicts(policy.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_and_eviction_policy_decide() {
        let info = |version: &str, policy: &str| {
            ServerInfo(format!(
                "# Server\r\nredis_version:{version}\r\nmaxmemory_policy:{policy}\r\n"
            ))
            .check_version_and_policy()
        };
        assert_eq!(info("7.0.15", "noeviction"), Ok(()));
        assert_eq!(info("10.1.0", "noeviction"), Ok(()));
        assert_eq!(
            info("6.2.14", "noeviction"),
            Err(Unsuitable::TooOld("6.2.14".into()))
        );
        assert_eq!(
            info("7.2.4", "allkeys-lru"),
            Err(Unsuitable::Evicts("allkeys-lru".into()))
        );
        assert!(matches!(
            ServerInfo("hello".to_owned()).check_version_and_policy(),
            Err(Unsuitable::NoInfo(_))
        ));
    }
}
