//! The end of a connection that stays open: its server stops, its key is revoked, or it has to make room.

use std::sync::Arc;
use std::time::Duration;

use axum::http::Extensions;

use crate::api::call::Call;
use crate::api::rights::{CHECK_EVERY, Held};
use crate::http::Closing;
use crate::http::guard::{Busy, Permit};

/// Time for a client to read the last words; then its connection is cut.
pub(crate) const LAST_WORDS: Duration = Duration::from_secs(3);

/// A connection that stays open.
#[derive(Debug)]
pub(crate) struct Life {
    permit: Option<Arc<Permit>>,
    _busy: Option<Busy>,
    closing: Option<Closing>,
    call: Call,
    caller: Held,
}

/// The reason of an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The server stops, or the connection has reached its longest life.
    Closing,
    /// The caller has lost rights: its key, its actor, or what it has used.
    Revoked,
}

impl End {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Closing => "the connection is to end: connect again",
            Self::Revoked => "the key or its rights are revoked or expired",
        }
    }
}

impl Life {
    /// Returns the life of the connection of a request, which goes on while the caller has the rights that `call` has used.
    pub(crate) async fn of(extensions: &Extensions, call: &Call) -> Self {
        let permit = extensions.get::<Arc<Permit>>().cloned();
        let closing = extensions.get::<Closing>().cloned();
        Self {
            caller: call.rights.hold(call.access.clone()).await,
            call: call.clone(),
            _busy: permit.as_ref().map(Permit::busy),
            permit,
            closing,
        }
    }

    /// Waits for the end.
    pub(crate) async fn end(&self) -> End {
        tokio::select! {
            () = self.closes() => End::Closing,
            end = self.cut_off() => end,
        }
    }

    /// Returns when the server stops, or the connection has reached its longest life: requests under way are answered.
    pub(crate) async fn closes(&self) {
        match &self.closing {
            Some(closing) => closing.begins().cancelled().await,
            None => std::future::pending().await,
        }
    }

    pub(crate) fn closing(&self) -> Option<&Closing> {
        self.closing.as_ref()
    }

    /// Waits for an end at which requests under way are cut off.
    pub(crate) async fn cut_off(&self) -> End {
        let evicted = async {
            match &self.permit {
                Some(permit) => permit.evicted().cancelled().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = evicted => End::Closing,
            () = self.lost() => End::Revoked,
        }
    }

    /// Waits until the caller has lost rights.
    async fn lost(&self) {
        while self.call.rights.still_holds(&self.caller).await && !self.call.has_lost().await {
            tokio::time::sleep(CHECK_EVERY).await;
        }
    }

    /// Cuts the connection after the time for its last words.
    pub(crate) async fn cut(&self) {
        let Some(permit) = &self.permit else {
            return;
        };
        tokio::time::sleep(LAST_WORDS).await;
        permit.evicted().cancel();
    }
}
