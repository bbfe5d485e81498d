//! The caller of a WebSocket, and its place among all sockets.

use std::net::IpAddr;
use std::time::Duration;

use axum::extract::ws::close_code;
use axum::http::Extensions;
use tokio::time::timeout;

use super::Shared;
use crate::api::access::Access;
use crate::api::error::{ApiError, Code};
use crate::api::hero;
use crate::api::holder::{client, holder};
use crate::http::guard::{Holder, Share};

/// Greatest number of sockets: each may have a message in memory.
pub(super) const SOCKETS: usize = 1024;
/// Greatest number of sockets beside them whose caller has not logged in yet.
pub(super) const ANONYMOUS: usize = 128;
/// Time for a login.
const LOGIN_WITHIN: Duration = Duration::from_secs(5);

/// The code of a close frame, and its reason.
pub(super) type Close = (u16, &'static str);

/// The caller of a socket.
pub(super) struct Caller {
    pub(super) access: Option<Access>,
    /// The actor who has signed a nonce over this socket.
    pub(super) login: hero::Session,
    client: IpAddr,
    /// Holder of its shares before a login.
    holder: Holder,
}

impl Caller {
    /// Returns the caller of a request.
    pub(super) fn of(extensions: &Extensions) -> Self {
        let client = client(extensions);
        Self {
            access: extensions.get().cloned(),
            login: hero::Session::new(extensions.get().cloned(), client),
            client,
            holder: holder(extensions),
        }
    }

    /// Returns true for a caller who has to log in.
    fn is_anonymous(&self) -> bool {
        matches!(self.access, Some(Access::Nobody))
    }

    /// Takes the place of its socket.
    pub(super) fn place(&self, shared: &Shared) -> Result<Share, ApiError> {
        let pool = match self.is_anonymous() {
            true => &shared.anonymous,
            false => &shared.sockets,
        };
        pool.take(&self.holder, 1).ok_or_else(|| {
            let message = "there are too many WebSockets: close one, or ask again later";
            ApiError::new(Code::TooManyRequests, message)
        })
    }

    /// Holder of its shares.
    pub(super) fn holder(&self) -> Holder {
        match self.login.login() {
            Some(held) => held.access.holder(self.client),
            None => self.holder.clone(),
        }
    }

    /// Waits for a login, whose caller gets the place. Then it does not return, unless there is none.
    pub(super) async fn logs_in(&self, place: &mut Share, shared: &Shared) -> Close {
        if self.is_anonymous() {
            let Ok(access) = timeout(LOGIN_WITHIN, self.login.shown()).await else {
                return (close_code::POLICY, "no login came within 5 s");
            };
            match shared.sockets.take(&access.holder(self.client), 1) {
                Some(taken) => *place = taken,
                None => return (close_code::AGAIN, "the caller has too many WebSockets"),
            }
        }
        std::future::pending().await
    }
}
