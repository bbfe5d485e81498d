//! The options of the guard in front of an HTTP server, the same for each server.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use meshwork_server::http::guard::{
    Authenticate, Authority, Guard, InvalidToken, Network, Origin, PER_PEER, Profile, Proxies,
    Token,
};

use super::input::InputError;
use super::{input, parsers};
use crate::environment;
use crate::error::CommandError;

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
    #[error("{place} contains no valid token: {source}")]
    Invalid { place: String, source: InvalidToken },
    #[error(transparent)]
    Input(#[from] InputError),
}

impl From<TokenError> for CommandError {
    fn from(error: TokenError) -> Self {
        Self::usage(error)
    }
}

/// Options of the guard.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct GuardArgs {
    /// Accept this name in the Host header too, with any port unless one is given; may be given several times. Loopback
    /// names and the address that is listened on are always accepted
    #[arg(long = "allow-host", value_name = "NAME[:PORT]")]
    hosts: Vec<Authority>,
    /// Let web pages of this origin call too; may be given several times
    #[arg(long = "allow-origin", value_name = "SCHEME://HOST[:PORT]")]
    origins: Vec<Origin>,
    /// Limit the time for the head of a request, and again for its body, in seconds, 0.1 to 600. A connection without a
    /// request is closed after this time
    #[arg(long, value_name = "DURATION", default_value = "10", value_parser = parsers::read_timeout,
          allow_hyphen_values = true)]
    read_timeout: Duration,
    /// Limit the connections of one address, 1 to 10000: a proxy in front needs one for each request at once
    #[arg(long, value_name = "N", default_value_t = PER_PEER, allow_hyphen_values = true,
          value_parser = parsers::whole::<u16>(1..=10_000))]
    peer_connections: u16,
    /// Believe the proxies of this network when they name the address of a client: in Forwarded, X-Forwarded-For, or the
    /// PROXY protocol, version 2; may be given several times
    #[arg(
        long = "trusted-proxy",
        value_name = "CIDR",
        env = "MESHWORK_TRUSTED_PROXY",
        value_delimiter = ','
    )]
    proxies: Vec<Network>,
}

impl GuardArgs {
    /// The time for the head of a request, and for its body.
    pub(crate) fn read_timeout(&self) -> Duration {
        self.read_timeout
    }

    /// Builds the guard of a server.
    pub(crate) fn guard(
        self,
        authenticate: Option<Arc<dyn Authenticate>>,
        profile: Profile,
    ) -> Guard {
        Guard {
            hosts: self.hosts,
            origins: self.origins,
            authenticate,
            peer_connections: self.peer_connections,
            proxies: Proxies::new(self.proxies),
            profile,
        }
    }
}

/// Options of a server with one token for all clients.
#[derive(Debug, clap::Args)]
pub(crate) struct TokenArgs {
    /// Read the bearer token that clients have to give from this file
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Need no token: let in everybody who reaches the address
    #[arg(long)]
    insecure_no_auth: bool,
}

impl TokenArgs {
    /// Finds the token: in the file, or in this environment variable.
    ///
    /// # Errors
    /// If there is no token without `--insecure-no-auth`, or one with it.
    pub(crate) fn authenticate(
        &self,
        variable: &'static str,
    ) -> Result<Option<Arc<dyn Authenticate>>, TokenError> {
        let token = token(self.token_file.as_deref(), variable, self.insecure_no_auth)?;
        Ok(token.map(|token| Arc::new(token) as _))
    }
}

/// Returns the token in the file, else that in the environment variable; `None` only with `no_auth`.
fn token(
    file: Option<&Path>,
    variable: &'static str,
    no_auth: bool,
) -> Result<Option<Token>, TokenError> {
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
    let token = Token::new(&text).map_err(|source| TokenError::Invalid { place, source })?;
    Ok(Some(token))
}
