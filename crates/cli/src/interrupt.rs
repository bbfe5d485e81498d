//! SIGINT and SIGTERM: the first asks the command to end in order, the second ends it at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::error::Error;
use crate::exit::Exit;
use crate::out::note;

const SIGINT: u8 = 2;
const SIGTERM: u8 = 15;

/// Tells when somebody wants the command to end; all clones tell the same.
#[derive(Debug, Clone)]
pub(crate) struct Interrupt {
    token: CancellationToken,
    number: Arc<AtomicU8>,
}

/// The command was interrupted.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("interrupted")]
pub(crate) struct Interrupted(u8);

impl Interrupted {
    /// As a shell says it.
    pub(crate) fn exit(self) -> Exit {
        Exit::signal(self.0)
    }
}

impl Interrupt {
    /// Listens from now on.
    pub(crate) fn listen() -> Result<Self, Error> {
        let handler = |kind| {
            signal(kind).map_err(|source| Error::System {
                what: "signal handler",
                source,
            })
        };
        let signals = (
            handler(SignalKind::interrupt())?,
            handler(SignalKind::terminate())?,
        );
        let interrupt = Self {
            token: CancellationToken::new(),
            number: Arc::default(),
        };
        tokio::spawn(interrupt.clone().heed(signals));
        Ok(interrupt)
    }

    async fn heed(self, mut signals: (Signal, Signal)) {
        loop {
            let number = tokio::select! {
                _ = signals.0.recv() => SIGINT,
                _ = signals.1.recv() => SIGTERM,
            };
            if self.token.is_cancelled() {
                std::process::exit(Exit::signal(number).code().into());
            }
            self.number.store(number, Ordering::SeqCst);
            note("stopping; once more to stop at once");
            self.token.cancel();
        }
    }

    /// Returns when the command is to end.
    pub(crate) async fn heard(&self) -> Interrupted {
        self.token.cancelled().await;
        Interrupted(self.number.load(Ordering::SeqCst))
    }

    /// An error if the command is to end.
    pub(crate) fn check(&self) -> Result<(), Interrupted> {
        if self.token.is_cancelled() {
            return Err(Interrupted(self.number.load(Ordering::SeqCst)));
        }
        Ok(())
    }

    /// The result of `call`, unless the command is to end before.
    pub(crate) async fn or<T, E>(
        &self,
        call: impl Future<Output = Result<T, E>>,
    ) -> Result<T, Error>
    where
        Error: From<E>,
    {
        tokio::select! {
            biased;
            interrupted = self.heard() => Err(interrupted.into()),
            result = call => Ok(result?),
        }
    }
}
