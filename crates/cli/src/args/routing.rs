//! Routing of jobs without a route: options of the commands that enqueue, and the file of bindings.

use std::path::Path;

use meshwork::JobRequest;
use meshwork::protocol::bananas;
use meshwork_model::route::bindings::Bindings;
use meshwork_model::route::topic::Topic;

use crate::args::yaml;

/// Error for a topic that nothing reads.
pub(crate) const UNREAD_TOPIC: &str =
    "--topic has no effect without bindings: give --bindings FILE, or --route";

/// Options that route jobs without a route.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Routing")]
pub(crate) struct Routing {
    /// File in YAML with bindings, which route jobs without a route by name, topic or payload. Format: docs/routing.md
    #[arg(long, value_name = "FILE", env = "MESHWORK_BINDINGS", value_parser = read)]
    bindings: Option<Bindings>,
    /// Topic of the job, for bindings by topic: words with dots between them, as orders.eu.new
    #[arg(long, value_name = "TOPIC")]
    topic: Option<Topic>,
}

impl Routing {
    /// Adds the route; `topic` overrides the topic for all.
    pub(crate) fn bind(&self, request: JobRequest, topic: Option<&Topic>) -> JobRequest {
        match &self.bindings {
            Some(bindings) => request.route_by(bindings, topic.or(self.topic.as_ref())),
            None => request,
        }
    }

    /// Returns true if a topic is given, here or for one job, without bindings that read it.
    pub(crate) fn has_unread_topic(&self, topic: Option<&Topic>) -> bool {
        topic.or(self.topic.as_ref()).is_some() && self.bindings.is_none()
    }

    /// Adds the route of a job of Bananas.
    pub(crate) fn bind_bananas(&self, request: bananas::Request) -> bananas::Request {
        match &self.bindings {
            Some(bindings) => request.route_by(bindings, self.topic.as_ref()),
            None => request,
        }
    }
}

pub(crate) fn read(path: &str) -> Result<Bindings, String> {
    yaml::read(Path::new(path)).map_err(|error| error.to_string())
}
