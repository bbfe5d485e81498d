//! What the demo service and its client are told on their command line.

use meshwork::model::keys::nooble::{Dialect, QueueManager};
use meshwork::model::name::Namespace;
use meshwork::source::nooble::Client;
use meshwork::{Target, TlsFiles};
use meshwork_broker::nooble::Nooble;

/// `--redis URL --name demo --env development --dialect streams`.
pub(crate) struct Options {
    /// Where Redis is.
    pub(crate) url: String,
    /// The name of the service.
    pub(crate) name: String,
    environment: String,
    dialect: Dialect,
}

/// The value of an option, or what it is without.
fn option(name: &str, default: &str) -> String {
    let mut words = std::env::args().skip_while(|word| word != name);
    words.nth(1).unwrap_or_else(|| default.to_owned())
}

impl Options {
    pub(crate) fn read() -> Result<Self, Box<dyn std::error::Error>> {
        let environment = std::env::var("ENVIRONMENT").unwrap_or_else(|_| "development".to_owned());
        Ok(Self {
            url: option("--redis", "redis://127.0.0.1"),
            name: option("--name", "demo"),
            environment: option("--env", &environment),
            dialect: option("--dialect", "streams").parse()?,
        })
    }

    /// A client in the name of a service, connected.
    pub(crate) async fn client(&self, name: &str) -> Result<Client, Box<dyn std::error::Error>> {
        let environment = Some(self.environment.as_str());
        let names = QueueManager::new(Namespace::nooble(), environment, self.dialect);
        let target = Target::parse(&self.url, TlsFiles::default())?;
        Ok(Client::new(Nooble::connect(&target, names).await?, name))
    }
}
