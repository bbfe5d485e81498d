//! The bearer token: read from a file or the environment, kept as its digest, compared in constant time.

use std::path::PathBuf;

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::args::input;
use crate::args::input::InputError;
use crate::environment;
use crate::error::CommandError;

/// The longest token in bytes: the head of a request has room for it.
const MAX_TOKEN: usize = 4096;

/// Why the guard cannot tell which token clients have to give.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TokenError {
    #[error(
        "no token is set: set {variable}, give --token-file FILE, or give --insecure-no-auth to accept all clients that \
         reach the address"
    )]
    Missing { variable: &'static str },
    #[error("{place} gives a token, and --insecure-no-auth excludes one: leave out one of them")]
    Both { place: String },
    #[error(
        "{place} contains no valid token: a token has 1 to {MAX_TOKEN} ASCII letters, digits and signs, without spaces"
    )]
    Invalid { place: String },
    #[error(transparent)]
    Input(#[from] InputError),
}

impl From<TokenError> for CommandError {
    fn from(error: TokenError) -> Self {
        Self::usage(error)
    }
}

/// A token that clients have to give.
#[derive(Clone)]
pub(crate) struct Token([u8; 32]);

impl Token {
    /// Returns the token in the file, else that in the environment variable; `None` only with `no_auth`.
    ///
    /// # Errors
    /// If there is none without `no_auth` or one with it, or the text is no token.
    pub(super) fn find(
        file: Option<&PathBuf>,
        variable: &'static str,
        no_auth: bool,
    ) -> Result<Option<Self>, TokenError> {
        let (place, text) = match file {
            Some(file) => {
                let bytes = input::read(file)?;
                let text = String::from_utf8_lossy(&bytes).trim_end().to_owned();
                (format!("the file {}", file.display()), text)
            }
            None => match environment::var_os(variable).filter(|value| !value.is_empty()) {
                Some(value) => (variable.to_owned(), value.to_string_lossy().into_owned()),
                None if no_auth => return Ok(None),
                None => return Err(TokenError::Missing { variable }),
            },
        };
        if no_auth {
            return Err(TokenError::Both { place });
        }
        let sound = (1..=MAX_TOKEN).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_graphic());
        match sound {
            true => Ok(Some(Self(digest(&text)))),
            false => Err(TokenError::Invalid { place }),
        }
    }

    /// Returns true if a request gives the token. The time that this takes says nothing about the token.
    pub(super) fn is_in(&self, headers: &HeaderMap) -> bool {
        let given = headers.get(AUTHORIZATION).and_then(|it| it.to_str().ok());
        let given = given.and_then(|it| it.split_once(' '));
        let given = given.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        given.is_some_and(|(_, given)| digest(given.trim()).ct_eq(&self.0).into())
    }
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token).into()
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}
