//! send and notify: send messages.

use meshwork_macros::boxed;
use std::time::Duration;

use meshwork_model::keys::nooble::Dialect;

use super::{Nooble, room_for};
use crate::error::Error;

/// The record of a pending callback, kept until the callback arrives.
#[derive(Debug, Clone, Copy)]
pub struct PendingCallback<'a> {
    /// Its key.
    pub key: &'a str,
    /// Content of the record.
    pub record: &'a str,
    /// Time to live.
    pub stays: Duration,
}

impl Nooble {
    /// Pushes an action to a queue like Nooble4's clients. The record of a pending callback is stored first, if there
    /// is one.
    ///
    /// # Errors
    /// The server refuses the call. It is then unknown whether the action was sent; it may be sent again under the
    /// same id.
    #[boxed]
    pub async fn send(
        &self,
        queue: &str,
        message: &str,
        pending: Option<PendingCallback<'_>>,
    ) -> Result<(), Error> {
        let mut send = room_for(queue.len() + message.len());
        match self.keys.dialect() {
            Dialect::Streams => send.arg("XADD").arg(queue).arg("*").arg("data"),
            Dialect::Lists => send.arg("LPUSH").arg(queue),
        };
        send.arg(message);
        let Some(pending) = pending else {
            return self.ask("send", &send).await;
        };
        let mut both = redis::pipe();
        both.add_command(keep(pending)).ignore();
        both.add_command(send).ignore();
        let sent = both.query_async(&mut self.conn.clone()).await;
        sent.map_err(|source| Error::of_pipeline("send", &both, source))
    }

    /// Returns true if a service has a key: its queue, its workers, its delayed actions or its dead letters. Creates
    /// none.
    ///
    /// A stream remains, so a service that started once stays known. A list exists only while an action waits in it,
    /// so in that dialect an idle foreign service is unknown.
    ///
    /// # Errors
    /// The server refuses the call; repeat it then.
    #[boxed]
    pub async fn has_service(&self, service: &str) -> Result<bool, Error> {
        let keys = self.keys.action_keys(service, None);
        let mut cmd = redis::cmd("EXISTS");
        cmd.arg(&keys.queue).arg(&keys.workers);
        cmd.arg(&keys.delayed).arg(&keys.dead);
        Ok(self.ask::<usize>("has_service", &cmd).await? > 0)
    }

    /// Stores the record of a pending callback.
    ///
    /// # Errors
    /// The server refuses the call; repeat it then.
    #[boxed]
    pub async fn store_pending_callback(&self, pending: PendingCallback<'_>) -> Result<(), Error> {
        self.ask("store_pending_callback", &keep(pending)).await
    }

    /// Publishes a message. Returns the number of its receivers.
    ///
    /// # Errors
    /// The server refuses the call.
    #[boxed]
    pub async fn notify(&self, channel: &str, message: &str) -> Result<usize, Error> {
        let mut cmd = redis::cmd("PUBLISH");
        self.ask("notify", cmd.arg(channel).arg(message)).await
    }

    /// Returns the record of a pending callback, if there is one.
    ///
    /// # Errors
    /// The server refuses the call.
    #[boxed]
    pub async fn pending_callback(&self, key: &str) -> Result<Option<String>, Error> {
        self.ask("pending_callback", redis::cmd("GET").arg(key))
            .await
    }
}

fn keep(pending: PendingCallback<'_>) -> redis::Cmd {
    let mut cmd = redis::cmd("SET");
    cmd.arg(pending.key).arg(pending.record);
    cmd.arg("PX").arg(pending.stays.as_millis() as u64);
    cmd
}
