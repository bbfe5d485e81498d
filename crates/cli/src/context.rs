//! What every command is given: the way to the data, and the way to stdout.

use meshwork::model::keys::hero::Hero;
use meshwork::model::name::Namespace;
use meshwork::{Client, Error as MeshworkError, Target, local_name};
use meshwork_broker::conn::ConnectError;
use meshwork_broker::{Backoff, Broker};
use tokio::time::Instant;

use crate::error::CommandError;
use crate::out::{Out, note};
use crate::target::Place;

/// The settings that all commands share.
pub(crate) struct Context {
    pub(crate) place: Place,
    pub(crate) namespace: Namespace,
    pub(crate) out: Out,
    /// The whole command line, for completions.
    pub(crate) command_line: fn() -> clap::Command,
}

impl Context {
    /// The names of all keys.
    pub(crate) fn keys(&self) -> Hero {
        Hero::new(self.namespace.clone())
    }

    /// A client, connected.
    pub(crate) async fn client(&self) -> Result<Client, CommandError> {
        let connect = async |target: &Target| Broker::connect(target, self.keys()).await;
        let broker = self.connected(connect).await?;
        Ok(Client::new(broker.acting_as(&local_name("cli"))))
    }

    /// Repeats `connect` with growing pauses for `--connect-timeout` while its errors are temporary. The first of them is
    /// told on stderr.
    pub(crate) async fn connected<T>(
        &self,
        connect: impl AsyncFn(&Target) -> Result<T, ConnectError>,
    ) -> Result<T, CommandError> {
        let (target, patience) = (self.place.target()?, self.place.connect_timeout);
        let (until, mut backoff, mut said) = (Instant::now() + patience, Backoff::new(), false);
        loop {
            let error = match connect(&target).await {
                Ok(connected) => return Ok(connected),
                Err(error) => error,
            };
            let left = until.saturating_duration_since(Instant::now());
            if !error.is_temporary() || left.is_zero() {
                return Err(MeshworkError::from(error).into());
            }
            if !std::mem::replace(&mut said, true) {
                let seconds = patience.as_secs_f64();
                note(format_args!("retrying for up to {seconds} s: {error}"));
            }
            // The last try begins when the time is over.
            let _ = tokio::time::timeout(left, backoff.wait()).await;
        }
    }
}
