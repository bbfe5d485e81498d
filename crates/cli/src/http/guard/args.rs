//! The options of the guard, the same for each server behind it.

use std::path::PathBuf;
use std::time::Duration;

use super::connections::PER_PEER;
use super::host::Authority;
use super::origin::Origin;
use super::token::{Token, TokenError};
use super::{Guard, Profile};
use crate::args::parsers;

/// Options of the guard.
#[derive(Debug, clap::Args)]
pub(crate) struct GuardArgs {
    /// Accept this name in the Host header too, with any port unless one is given; may be given several times. Loopback
    /// names and the address that is listened on are always accepted
    #[arg(long = "allow-host", value_name = "NAME[:PORT]")]
    hosts: Vec<Authority>,
    /// Let web pages of this origin call too; may be given several times
    #[arg(long = "allow-origin", value_name = "SCHEME://HOST[:PORT]")]
    origins: Vec<Origin>,
    /// Read the bearer token that clients have to give from this file
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Need no token: let in everybody who reaches the address
    #[arg(long)]
    insecure_no_auth: bool,
    /// Limit the time for the head of a request, and again for its body, in seconds, 0.1 to 600. A connection without a
    /// request is closed after this time
    #[arg(long, value_name = "S", default_value = "10", value_parser = parsers::read_timeout,
          allow_hyphen_values = true)]
    read_timeout: Duration,
    /// Limit the connections of one address, 1 to 10000: a proxy in front needs one for each request at once
    #[arg(long, value_name = "N", default_value_t = PER_PEER, allow_hyphen_values = true,
          value_parser = clap::value_parser!(u16).range(1..=10_000))]
    peer_connections: u16,
}

impl GuardArgs {
    /// The time for the head of a request, and for its body.
    pub(crate) fn read_timeout(&self) -> Duration {
        self.read_timeout
    }

    /// Builds the guard of a server.
    ///
    /// # Errors
    /// If there is no token without `--insecure-no-auth`, or one with it.
    pub(crate) fn guard(self, profile: Profile) -> Result<Guard, TokenError> {
        let variable = profile.token_variable;
        let token = Token::find(self.token_file.as_ref(), variable, self.insecure_no_auth)?;
        Ok(Guard {
            hosts: self.hosts,
            origins: self.origins,
            token,
            peer_connections: self.peer_connections,
            profile,
        })
    }
}
