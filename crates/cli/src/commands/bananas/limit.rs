//! `meshwork bananas limit`.

use clap::ArgGroup;
use meshwork::protocol::bananas::{Client, RouteLimit};
use meshwork_model::name::RoutingKey;
use meshwork_model::queue::{MAX_CONCURRENCY, QueueSettings, Rate};
use serde::Serialize;

use super::Side;
use crate::app::App;
use crate::args::parsers;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::{Column, Row};

/// Show, set and remove limits of routes: concurrent jobs, and rate of starts, on Meshwork's workers
///
/// Bananas' own workers ignore these limits, and their jobs do not count.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum LimitCommand {
    Show(Show),
    Set(Set),
    #[command(visible_alias = "clear")]
    Remove(Remove),
}

/// Show the limits of all routes, or of one
#[derive(Debug, clap::Args)]
pub(crate) struct Show {
    /// The route
    route: Option<RoutingKey>,
    #[command(flatten)]
    side: Side,
}

/// Set limits of a route; limits that are not named do not change
///
/// Limits apply to all priorities of the route together. Jobs that run already on Meshwork's workers count.
#[derive(Debug, clap::Args)]
#[command(group(ArgGroup::new("limit").args(["concurrency", "rate"]).required(true).multiple(true)))]
pub(crate) struct Set {
    /// Route; jobs on lists without a route belong to `default`, whatever their records say
    route: RoutingKey,
    /// Greatest number of concurrent jobs
    #[arg(long, value_name = "N", allow_hyphen_values = true,
          value_parser = parsers::whole::<u64>(1..=MAX_CONCURRENCY))]
    concurrency: Option<u64>,
    /// Greatest rate of starts: 100/min, `10/s burst 20`, `window 100/1m`
    #[arg(long, value_name = "RATE")]
    rate: Option<Rate>,
    #[command(flatten)]
    side: Side,
}

/// Remove limits of a route: the named ones, or all
///
/// Jobs that waited for a removed limit may start at once.
#[derive(Debug, clap::Args)]
pub(crate) struct Remove {
    /// The route
    route: RoutingKey,
    /// Remove the limit of concurrent jobs
    #[arg(long)]
    concurrency: bool,
    /// Remove the limit of the rate
    #[arg(long)]
    rate: bool,
    #[command(flatten)]
    side: Side,
}

/// A route and its limits.
#[derive(Debug, Serialize)]
struct Line<'a> {
    route: &'a str,
    concurrency: Option<u64>,
    rate: Option<String>,
    /// All limits in words.
    #[serde(skip)]
    words: Vec<String>,
}

impl<'a> From<(&'a RoutingKey, &QueueSettings)> for Line<'a> {
    fn from((route, set): (&'a RoutingKey, &QueueSettings)) -> Self {
        Self {
            route: route.as_str(),
            concurrency: set.concurrency,
            rate: set.rate.map(|rate| rate.to_string()),
            words: set.limits(),
        }
    }
}

impl Row for Line<'_> {
    fn columns() -> Vec<Column> {
        Column::named(["route", "set"], &[])
    }

    fn cells(&self) -> Vec<String> {
        vec![self.route.to_owned(), self.words.join(", ")]
    }
}

impl LimitCommand {
    pub(super) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        match self {
            Self::Show(show) => show.run(context).await,
            Self::Set(set) => set.run(context).await,
            Self::Remove(remove) => remove.run(context).await,
        }
    }
}

impl Show {
    async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let client = self.side.client(context).await?;
        if let Some(route) = &self.route {
            return print(&client, route, context).await;
        }
        let limits = client.limits().await?;
        context.out.rows(limits.iter().map(Line::from))?;
        Ok(Exit::DONE)
    }
}

impl Set {
    async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let concurrency = self
            .concurrency
            .map(|most| RouteLimit::Concurrency(Some(most)));
        let rate = self.rate.map(|rate| RouteLimit::Rate(Some(rate)));
        let limits: Vec<_> = concurrency.into_iter().chain(rate).collect();
        change(&self.side, &self.route, &limits, context).await
    }
}

impl Remove {
    async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let all = !self.concurrency && !self.rate;
        let named = [
            (self.concurrency, RouteLimit::Concurrency(None)),
            (self.rate, RouteLimit::Rate(None)),
        ];
        let gone = named.into_iter().filter(|(is, _)| *is || all);
        let gone: Vec<_> = gone.map(|(_, limit)| limit).collect();
        change(&self.side, &self.route, &gone, context).await
    }
}

/// Changes the limits, and prints the new ones.
async fn change(
    side: &Side,
    route: &RoutingKey,
    limits: &[RouteLimit],
    context: &mut App,
) -> Result<Exit, CommandError> {
    let client = side.client(context).await?;
    client.limit_route(route, limits).await?;
    print(&client, route, context).await
}

/// Prints the limits of a route.
async fn print(
    client: &Client,
    route: &RoutingKey,
    context: &mut App,
) -> Result<Exit, CommandError> {
    let limits = client.limits().await?;
    let set = limits.get(route).cloned().unwrap_or_default();
    if context.out.is_json() {
        context.out.json(&Line::from((route, &set)))?;
        return Ok(Exit::DONE);
    }
    let words = match set.limits() {
        words if words.is_empty() => "no limit".to_owned(),
        words => words.join(", "),
    };
    context.out.line(format_args!("{route} {words}"))?;
    Ok(Exit::DONE)
}
