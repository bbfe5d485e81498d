//! Which workers take a job that does not say it: options of the commands that submit, and the file of bindings.

use std::path::Path;

use meshwork::JobRequest;
use meshwork::model::route::bindings::Bindings;
use meshwork::model::route::topic::Topic;
use meshwork::protocol::bananas;

use crate::yaml;

/// What decides about jobs that name no route.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Routing")]
pub(crate) struct Routing {
    /// A file in YAML that says which route jobs take that name none: by name, by topic, by what is in the
    /// payload. docs/routing.md tells how
    #[arg(long, value_name = "FILE", env = "MESHWORK_BINDINGS", value_parser = read)]
    bindings: Option<Bindings>,
    /// What it is about, for bindings by topic: words with dots between them, as orders.eu.new
    #[arg(long, value_name = "TOPIC")]
    topic: Option<Topic>,
}

impl Routing {
    /// The job with its route; `topic` goes before what holds for all.
    pub(crate) fn bind(&self, request: JobRequest, topic: Option<&Topic>) -> JobRequest {
        match &self.bindings {
            Some(bindings) => request.bound(bindings, topic.or(self.topic.as_ref())),
            None => request,
        }
    }

    /// Whether a topic was said that nothing reads.
    pub(crate) fn has_unread_topic(&self) -> bool {
        self.topic.is_some() && self.bindings.is_none()
    }

    /// A job of Bananas with its route.
    pub(crate) fn bind_bananas(&self, request: bananas::Request) -> bananas::Request {
        match &self.bindings {
            Some(bindings) => request.bound(bindings, self.topic.as_ref()),
            None => request,
        }
    }
}

fn read(path: &str) -> Result<Bindings, String> {
    yaml::read(Path::new(path)).map_err(|error| error.to_string())
}
