//! One bearer token for all clients: kept as its digest, compared in constant time.

use std::net::IpAddr;

use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use futures_util::future::BoxFuture;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::{Admission, Authenticate, Refusal};

/// The longest token in bytes: the head of a request has room for it.
pub const MAX_TOKEN: usize = 4096;

/// A text is no token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a token has 1 to {MAX_TOKEN} ASCII letters, digits and signs, without spaces")]
pub struct InvalidToken;

/// A token that clients have to give.
#[derive(Clone)]
pub struct Token([u8; 32]);

impl Token {
    /// Makes a token of a text.
    ///
    /// # Errors
    /// If the text is empty, too long, or has other characters than ASCII letters, digits and signs.
    pub fn new(text: &str) -> Result<Self, InvalidToken> {
        let sound = (1..=MAX_TOKEN).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_graphic());
        match sound {
            true => Ok(Self(digest(text))),
            false => Err(InvalidToken),
        }
    }

    /// Returns true if a request gives the token. The time that this takes says nothing about the token.
    fn is_in(&self, headers: &HeaderMap) -> bool {
        bearer(headers).is_some_and(|given| digest(given).ct_eq(&self.0).into())
    }
}

impl Authenticate for Token {
    fn check<'a>(
        &'a self,
        head: &'a mut Parts,
        _: IpAddr,
    ) -> BoxFuture<'a, Result<Admission, Refusal>> {
        let message = "give the server's token: authorization: Bearer TOKEN";
        let checked = match self.is_in(&head.headers) {
            true => Ok(Admission::Authenticated),
            false => Err(Refusal::new(StatusCode::UNAUTHORIZED, "NO_TOKEN", message)),
        };
        Box::pin(std::future::ready(checked))
    }
}

/// The bearer token that a request gives.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let given = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, given) = given.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| given.trim())
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token).into()
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}
