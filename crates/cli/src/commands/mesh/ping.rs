//! `meshwork mesh ping`.

use std::time::Duration;

use meshwork::context::Node;
use meshwork::mesh::PingError;
use meshwork_model::mesh::PeerName;
use serde::Serialize;

use crate::app::App;
use crate::args::parsers;
use crate::error::CommandError;
use crate::exit::Exit;

/// Ping another node through the supervisor of this one, and print the round trip
///
/// Prints the round trip, the clock of the other node minus the own one, and the version of the other node. The supervisor
/// looks for a ping every 2 s.
#[derive(Debug, clap::Args)]
pub(crate) struct Ping {
    /// Name of the node
    #[arg(value_name = "NAME")]
    name: PeerName,
    /// Longest wait, in seconds
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parsers::wait, allow_hyphen_values = true)]
    timeout: Duration,
}

#[derive(Debug, Serialize)]
struct Answer {
    name: String,
    round_trip_ms: u64,
    offset_ms: i64,
    version: String,
}

impl Ping {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let node = Node::of(context.client().await?.broker());
        let pong = node.ping(&self.name, self.timeout).await?;
        let answer = Answer {
            name: self.name.to_string(),
            round_trip_ms: pong.round_trip_ms,
            offset_ms: pong.offset_ms,
            version: pong.version,
        };
        match context.out.is_json() {
            true => context.out.json(&answer)?,
            false => context.out.line(format_args!(
                "{}: round trip {} ms, clock {:+} ms, version {}",
                answer.name, answer.round_trip_ms, answer.offset_ms, answer.version
            ))?,
        }
        Ok(Exit::DONE)
    }
}

impl From<PingError> for CommandError {
    fn from(error: PingError) -> Self {
        let exit = match error {
            PingError::Context(error) => return error.into(),
            PingError::NotTrusted(_) => Exit::USAGE,
            PingError::NoAnswer { .. } => Exit::NOT_ENDED,
            _ => Exit::SERVER,
        };
        Self::new(exit, error)
    }
}
