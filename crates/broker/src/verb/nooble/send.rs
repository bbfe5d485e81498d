//! send and notify: messages that go out.

use std::time::Duration;

use meshwork_model::keys::nooble::Dialect;

use super::Nooble;
use crate::error::Error;

/// A record of what was asked for, kept until its callback comes.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// Its key.
    pub key: &'a str,
    /// What is in it.
    pub record: &'a str,
    /// For how long it stays.
    pub stays: Duration,
}

impl Nooble {
    /// Puts an action into a queue as Nooble4's clients do; with a record of what was asked for, that is there first.
    ///
    /// # Errors
    /// If the server does not take the call. Whether the action was sent is not known then: it may be sent again
    /// under the same id.
    pub async fn send(
        &self,
        queue: &str,
        message: &str,
        asked: Option<Asked<'_>>,
    ) -> Result<(), Error> {
        let mut all = redis::pipe();
        if let Some(asked) = asked {
            all.cmd("SET").arg(asked.key).arg(asked.record);
            all.arg("PX").arg(asked.stays.as_millis() as u64).ignore();
        }
        match self.names.dialect() {
            Dialect::Streams => all.cmd("XADD").arg(queue).arg("*").arg("data").arg(message),
            Dialect::Lists => all.cmd("LPUSH").arg(queue).arg(message),
        };
        let sent = all.ignore().query_async(&mut self.conn.clone()).await;
        sent.map_err(|source| Error::Call {
            verb: "send",
            source,
        })
    }

    /// Keeps a record of what was asked for.
    ///
    /// # Errors
    /// If the server does not take the call; repeat it then.
    pub async fn keep_asked(&self, asked: Asked<'_>) -> Result<(), Error> {
        let mut cmd = redis::cmd("SET");
        cmd.arg(asked.key).arg(asked.record);
        cmd.arg("PX").arg(asked.stays.as_millis() as u64);
        self.ask("keep_asked", &cmd).await
    }

    /// Publishes a message. Returns how many heard it.
    ///
    /// # Errors
    /// If the server does not take the call.
    pub async fn notify(&self, channel: &str, message: &str) -> Result<usize, Error> {
        let mut cmd = redis::cmd("PUBLISH");
        self.ask("notify", cmd.arg(channel).arg(message)).await
    }

    /// The record of what was asked for, if there is one.
    ///
    /// # Errors
    /// If the server does not take the call.
    pub async fn asked(&self, key: &str) -> Result<Option<String>, Error> {
        self.ask("asked", redis::cmd("GET").arg(key)).await
    }
}
