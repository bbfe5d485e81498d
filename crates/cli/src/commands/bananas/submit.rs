//! `meshwork bananas enqueue`.

use std::time::Duration;

use meshwork::protocol::bananas::Request;
use meshwork_model::name::{JobId, RoutingKey};
use meshwork_model::route::Priority;
use meshwork_model::schedule::wall_time::Direction;
use serde::Serialize;

use super::{Side, of_bananas, print};
use crate::app::App;
use crate::args::moment::{self, Moment, ZoneArg};
use crate::args::parsers;
use crate::args::routing::{Routing, UNREAD_TOPIC};
use crate::error::CommandError;
use crate::exit::Exit;

/// Enqueue a job and print its id
#[derive(Debug, clap::Args)]
pub(crate) struct Submit {
    #[command(flatten)]
    side: Side,
    #[command(flatten)]
    routing: Routing,
    /// Name of the handler
    name: String,
    /// Payload for the handler, JSON
    #[arg(default_value = "{}")]
    payload: String,
    /// high, normal or low
    #[arg(long, default_value = "normal")]
    priority: Priority,
    /// Run only on workers with this routing key: 1 to 64 of A-Z a-z 0-9 _ -
    #[arg(long, value_name = "KEY")]
    route: Option<RoutingKey>,
    /// Description of the job
    #[arg(long, value_name = "TEXT", default_value = "")]
    description: String,
    /// Greatest number of attempts
    #[arg(
        long = "max-attempts",
        visible_alias = "max-retries",
        value_name = "N",
        default_value_t = 3,
        value_parser = parsers::whole::<u32>(0..=u64::MAX)
    )]
    max_retries: u32,
    /// Run at this time: 'tomorrow 9:00', '2026-01-31 12:00', 2026-01-31T12:00:00Z, or +10m from now
    #[arg(long, value_name = "WHEN", value_parser = moment::future)]
    at: Option<Moment>,
    #[command(flatten)]
    zone: ZoneArg,
    /// Id of the job [default: a new one]
    #[arg(long)]
    id: Option<JobId>,
    /// Wait for its end, for at most this many seconds, and print its result
    #[arg(long, value_name = "DURATION", value_parser = parsers::wait)]
    wait: Option<Duration>,
}

#[derive(Debug, Serialize)]
struct Submitted<'a> {
    id: &'a str,
}

impl Submit {
    pub(super) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        if self.routing.has_unread_topic(None) {
            return Err(CommandError::usage(UNREAD_TOPIC));
        }
        let mut request = Request::raw(&self.name, &self.payload)
            .priority(self.priority)
            .description(&self.description)
            .max_retries(self.max_retries);
        if let Some(route) = self.route {
            request = request.route(route);
        }
        if let Some(moment) = self.at {
            let now = meshwork::host_ms();
            let zone = self.zone.zone(&[self.at])?;
            let ms = moment.meant("runs at", now, &zone, Direction::Next)?;
            request = request.at_ms(moment::to_come(ms, now)?);
        }
        if let Some(id) = self.id {
            request = request.id(id);
        }
        let request = self.routing.bind_bananas(request);
        let client = self.side.client(context).await?;
        let id = client.enqueue(request).await.map_err(of_bananas)?;
        if let Some(patience) = self.wait {
            let outcome = client.wait(&id, patience).await.map_err(of_bananas)?;
            return print(id.as_str(), &outcome, context);
        }
        if context.out.is_json() {
            context.out.json(&Submitted { id: id.as_str() })?;
        } else {
            context.out.line(&id)?;
        }
        Ok(Exit::DONE)
    }
}
