//! The end of a connection that stays open: its server stops, its key is revoked, or it has to make room.

use std::sync::Arc;
use std::time::Duration;

use axum::http::Extensions;
use meshwork_model::api_key::ApiKey;
use tokio_util::sync::CancellationToken;

use crate::api::access::{Access, KeyRing};
use crate::http::Closing;
use crate::http::guard::{Busy, Permit};

/// Pause between two checks of a key. With the time for which keys are cached, a revocation holds within a second.
const CHECK_EVERY: Duration = Duration::from_millis(400);
/// Time for a client to read the last words; then its connection is cut.
pub(crate) const LAST_WORDS: Duration = Duration::from_secs(3);

/// A connection that stays open.
#[derive(Debug)]
pub(crate) struct Life {
    permit: Option<Arc<Permit>>,
    _busy: Option<Busy>,
    closing: Option<CancellationToken>,
    key: Option<(KeyRing, Arc<ApiKey>)>,
}

/// The reason of an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The server stops, or the connection has reached its longest life.
    Closing,
    /// The key is no longer valid.
    Revoked,
}

impl End {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Closing => "the connection is to end: connect again",
            Self::Revoked => "the key is revoked or expired",
        }
    }
}

impl Life {
    /// Returns the life of the connection of a request.
    pub(crate) fn of(extensions: &Extensions) -> Self {
        let permit = extensions.get::<Arc<Permit>>().cloned();
        let closing = extensions
            .get::<Closing>()
            .map(|Closing(token)| token.clone());
        let key = match extensions.get::<Access>() {
            Some(Access::Key(key)) => {
                let ring = extensions.get::<KeyRing>().cloned();
                ring.map(|ring| (ring, Arc::clone(key)))
            }
            _ => None,
        };
        Self {
            _busy: permit.as_ref().map(Permit::busy),
            permit,
            closing,
            key,
        }
    }

    /// Waits for the end.
    pub(crate) async fn end(&self) -> End {
        let closing = async {
            match &self.closing {
                Some(closing) => closing.cancelled().await,
                None => std::future::pending().await,
            }
        };
        let evicted = async {
            match &self.permit {
                Some(permit) => permit.evicted().cancelled().await,
                None => std::future::pending().await,
            }
        };
        let revoked = async {
            let Some((ring, key)) = &self.key else {
                return std::future::pending().await;
            };
            while ring.is_valid(key).await {
                tokio::time::sleep(CHECK_EVERY).await;
            }
        };
        tokio::select! {
            () = closing => End::Closing,
            () = evicted => End::Closing,
            () = revoked => End::Revoked,
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
