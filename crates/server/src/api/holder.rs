//! The holder of the shares of a caller: its actor, however many keys it has, else its key, else its address.

use std::net::{IpAddr, Ipv4Addr};

use axum::http::Extensions;

use super::access::Access;
use crate::http::guard::{ClientAddress, Holder};

impl Access {
    /// Returns the holder of the shares of a caller at this address.
    pub(crate) fn holder(&self, client: IpAddr) -> Holder {
        match self {
            Self::Actor(actor) => Holder::Caller(format!("actor {actor}")),
            Self::Key(key) => Holder::Caller(match key.actor {
                Some(actor) => format!("actor {actor}"),
                None => format!("key {}", key.name),
            }),
            _ => Holder::Address(client),
        }
    }
}

/// Returns the holder of the shares of a request.
pub(crate) fn holder(extensions: &Extensions) -> Holder {
    let access = extensions.get::<Access>().unwrap_or(&Access::All);
    access.holder(client(extensions))
}

/// The address of a request.
pub(crate) fn client(extensions: &Extensions) -> IpAddr {
    let known = extensions.get::<ClientAddress>();
    known.map_or(Ipv4Addr::UNSPECIFIED.into(), |ClientAddress(client)| {
        *client
    })
}
