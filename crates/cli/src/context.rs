//! What every command is given: the way to the data, and the way to stdout.

use meshwork::model::keys::hero::Hero;
use meshwork::model::name::Namespace;
use meshwork::{Client, Error as MeshworkError, local_name};
use meshwork_broker::Broker;

use crate::error::Error;
use crate::out::Out;
use crate::target::Place;

/// The settings that all commands share.
pub(crate) struct Context {
    pub(crate) place: Place,
    pub(crate) namespace: Namespace,
    pub(crate) out: Out,
}

impl Context {
    /// The names of all keys.
    pub(crate) fn keys(&self) -> Hero {
        Hero::new(self.namespace.clone())
    }

    /// A client, connected.
    pub(crate) async fn client(&self) -> Result<Client, Error> {
        let target = self.place.target()?;
        let broker = Broker::connect(&target, self.keys()).await;
        let broker = broker.map_err(MeshworkError::from)?;
        Ok(Client::new(broker.acting_as(&local_name("cli"))))
    }
}
