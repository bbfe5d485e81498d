//! Whether a server may keep jobs: its version, and that it does not throw keys away.

use super::{Conn, ConnectError, Target};

/// The oldest major version: scripts with flags and `BLMPOP` came with Redis 7.
const OLDEST: u64 = 7;

/// Why a server is not fit to keep jobs, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unfit {
    /// Too old.
    #[error(
        "it runs Redis {0}, and {OLDEST}.0 is the oldest that works: upgrade it, or take Valkey"
    )]
    TooOld(String),
    /// It deletes keys when memory runs out, and with them jobs.
    #[error(
        "its maxmemory-policy is `{0}`, which deletes jobs when memory runs out: \
         run `CONFIG SET maxmemory-policy noeviction` on it, and set the same in its configuration file"
    )]
    Evicts(String),
    /// It does not say what it is.
    #[error(
        "it does not answer INFO as a Redis server does ({0}): is it one, and may this user run INFO?"
    )]
    NoInfo(String),
}

/// Refuses a server that would lose jobs.
pub(super) async fn fit(conn: &Conn, target: &Target) -> Result<(), ConnectError> {
    let place = target.place();
    let info: String = match redis::cmd("INFO").query_async(&mut conn.clone()).await {
        Ok(info) => info,
        Err(error) if error.is_io_error() => {
            return Err(ConnectError::Unreachable {
                place,
                source: error,
            });
        }
        Err(error) if matches!(error.code(), Some("NOAUTH" | "WRONGPASS")) => {
            return Err(ConnectError::Refused {
                place,
                reason: error.to_string(),
            });
        }
        Err(error) => {
            return Err(ConnectError::Unfit {
                place,
                reason: Unfit::NoInfo(error.to_string()),
            });
        }
    };
    judge(&info).map_err(|reason| ConnectError::Unfit { place, reason })
}

fn judge(info: &str) -> Result<(), Unfit> {
    let field = |name: &str| {
        info.lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
            .map(str::trim)
    };
    let version = field("redis_version").ok_or(Unfit::NoInfo("no redis_version".to_owned()))?;
    let major = version
        .split('.')
        .next()
        .and_then(|major| major.parse::<u64>().ok());
    if major.is_none_or(|major| major < OLDEST) {
        return Err(Unfit::TooOld(version.to_owned()));
    }
    match field("maxmemory_policy") {
        Some(policy) if policy != "noeviction" => Err(Unfit::Evicts(policy.to_owned())),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_info_says_decides() {
        let info = |version: &str, policy: &str| {
            judge(&format!(
                "# Server\r\nredis_version:{version}\r\nmaxmemory_policy:{policy}\r\n"
            ))
        };
        assert_eq!(info("7.0.15", "noeviction"), Ok(()));
        assert_eq!(info("10.1.0", "noeviction"), Ok(()));
        assert_eq!(
            info("6.2.14", "noeviction"),
            Err(Unfit::TooOld("6.2.14".into()))
        );
        assert_eq!(
            info("7.2.4", "allkeys-lru"),
            Err(Unfit::Evicts("allkeys-lru".into()))
        );
        assert!(matches!(judge("hello"), Err(Unfit::NoInfo(_))));
    }
}
