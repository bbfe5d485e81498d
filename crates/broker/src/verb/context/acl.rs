//! Users of a server: reads which rules the server knows, and sets rules.

use meshwork_macros::boxed;
use meshwork_model::acl::AclServer;

use super::ContextStore;
use crate::error::Error;

impl ContextStore {
    /// Returns the server and its version, which decide about the rules for users.
    ///
    /// # Errors
    /// The call to the server fails.
    #[boxed]
    pub async fn acl_server(&self) -> Result<AclServer, Error> {
        let mut info = redis::cmd("INFO");
        let info = info.arg("server").query_async(&mut self.conn.clone()).await;
        let info: String = info.map_err(|source| Error::Call {
            verb: "info",
            source,
        })?;
        Ok(server_of(&info))
    }

    /// Sends `ACL` with these arguments.
    ///
    /// # Errors
    /// The server refuses the call: this user may not change users, or the server does not know a rule.
    #[boxed]
    pub async fn acl(&self, words: &[String]) -> Result<(), Error> {
        let acl = redis::cmd("ACL")
            .arg(words)
            .query_async::<redis::Value>(&mut self.conn.clone())
            .await;
        acl.map(drop).map_err(|source| Error::Call {
            verb: "acl",
            source,
        })
    }
}

/// Parses the answer to `INFO server`.
fn server_of(info: &str) -> AclServer {
    let field = |name: &str| {
        let mut lines = info.lines();
        lines.find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(':'))
    };
    let numbers = |version: &str| {
        let mut parts = version.split('.').map(|part| part.parse().unwrap_or(0));
        (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
    };
    if field("meshwork_version").is_some() {
        return AclServer::Embedded;
    }
    if let Some(version) = field("valkey_version") {
        let (major, minor) = numbers(version);
        return AclServer::Valkey { major, minor };
    }
    let (major, _) = numbers(field("redis_version").unwrap_or_default());
    AclServer::Redis { major }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_say_who_they_are() {
        let valkey =
            "# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.1.2\r\n";
        assert_eq!(server_of(valkey), AclServer::Valkey { major: 9, minor: 1 });
        let redis = "# Server\r\nredis_version:7.0.15\r\n";
        assert_eq!(server_of(redis), AclServer::Redis { major: 7 });
    }
}
