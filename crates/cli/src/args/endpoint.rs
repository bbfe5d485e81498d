//! Options of the endpoint for metrics, beside its address.

use std::net::SocketAddr;

use meshwork_server::http::BindError;
use meshwork_server::http::guard::Authority;
use meshwork_server::metrics::Endpoint;

use crate::error::CommandError;
use crate::exit::Exit;

/// Options of the endpoint, beside its address.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct EndpointArgs {
    /// Accept this name in the Host header of requests for metrics too, with any port unless one is given; may be given
    /// several times. Loopback names and the address that is listened on are always accepted
    #[arg(
        long = "metrics-host",
        value_name = "NAME[:PORT]",
        env = "MESHWORK_METRICS_HOST",
        value_delimiter = ','
    )]
    hosts: Vec<Authority>,
}

impl EndpointArgs {
    /// Binds the address, if there is one.
    pub(crate) async fn bind(
        &self,
        address: Option<SocketAddr>,
    ) -> Result<Option<Endpoint>, BindError> {
        match address {
            Some(address) => Ok(Some(Endpoint::bind(address, self.hosts.clone()).await?)),
            None => Ok(None),
        }
    }
}

impl From<BindError> for CommandError {
    fn from(error: BindError) -> Self {
        Self::new(Exit::SYSTEM, error)
    }
}
