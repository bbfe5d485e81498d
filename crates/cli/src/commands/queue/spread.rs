//! `meshwork queue spread`.

use meshwork::context::{ContextId, Node};
use meshwork::spread::{MAX_PARTS, SpreadName, SpreadPart};
use meshwork_model::number::counted;
use serde::{Deserialize, Serialize};
use serde_json::{Map, json};

use crate::app::App;
use crate::args::parsers;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::{Column, Row, note};
use crate::scope::ActorArgs;

/// Spread a queue over several contexts, its parts, or show them
///
/// A part has the number of its context. Jobs enqueued with --spread go to the part of their key; without a key, to the shorter of two parts. With another number
/// of parts, a key stays in its old part until that part has no unfinished job of the key. `worker --spread` runs the jobs
/// of all parts. On a Redis Cluster the parts are on different nodes.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Spread {
    /// Queue: a type, or TYPE:group:GROUP [default: show all spread queues]
    #[arg(value_name = "QUEUE")]
    name: Option<SpreadName>,
    /// Number of parts that get new jobs, 1 to 64. Missing contexts are created
    #[arg(long, value_name = "N", requires = "name", allow_hyphen_values = true,
          value_parser = parsers::whole::<u16>(1..=MAX_PARTS as u64))]
    parts: Option<u16>,
    /// Contexts as parts, with commas between them. Earlier parts have to come first
    #[arg(
        long,
        value_name = "IDS",
        requires = "name",
        conflicts_with = "parts",
        value_delimiter = ','
    )]
    contexts: Vec<ContextId>,
}

/// A part of a queue.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    #[serde(default)]
    queue: String,
    /// The context of the part, which is also its name.
    context: ContextId,
    /// False for a part that gets no new jobs.
    active: bool,
    waiting: usize,
    running: usize,
    set_aside: usize,
}

impl Line {
    fn new(name: &SpreadName, part: &SpreadPart) -> Self {
        Self {
            queue: name.to_string(),
            context: part.context,
            active: part.is_active,
            waiting: part.jobs.waiting,
            running: part.jobs.running,
            set_aside: part.jobs.set_aside,
        }
    }
}

impl Row for Line {
    fn columns() -> Vec<Column> {
        let names = ["queue", "part", "waiting", "running", "aside", ""];
        let numbers = ["part", "waiting", "running", "aside"];
        Column::named(names, &numbers)
    }

    fn optional() -> &'static [&'static str] {
        &["aside", "running"]
    }

    fn cells(&self) -> Vec<String> {
        let state = if self.active { "" } else { "no new jobs" };
        let numbers = [self.waiting, self.running, self.set_aside];
        let [waiting, running, aside] = numbers.map(|number| number.to_string());
        let (queue, part) = (self.queue.clone(), self.context.to_string());
        vec![queue, part, waiting, running, aside, state.to_owned()]
    }
}

/// Parts of a spread queue.
#[derive(Deserialize)]
struct Parts {
    queue: String,
    parts: Vec<Line>,
    moving: usize,
}

impl Spread {
    pub(super) async fn by_api(self, context: &mut App) -> Result<Exit, CommandError> {
        let queues: Vec<Parts> = match &self.name {
            None => {
                let all = ("queues", usize::MAX);
                context.pages("queue.spreads", Map::new(), all).await?.0
            }
            Some(name) if self.parts.is_none() && self.contexts.is_empty() => {
                let params = json!({"queue": name.to_string()});
                vec![context.call("queue.parts", &params).await?]
            }
            Some(name) => {
                let name = name.to_string();
                let params = match self.parts {
                    Some(parts) => json!({"queue": name, "parts": parts}),
                    None => json!({"queue": name, "contexts": self.contexts}),
                };
                vec![context.call("queue.spread", &params).await?]
            }
        };
        let mut lines = Vec::new();
        for of in queues {
            tell_moving(&of.queue, of.moving);
            lines.extend(of.parts.into_iter().map(|line| Line {
                queue: of.queue.clone(),
                ..line
            }));
        }
        context.out.rows(lines)?;
        Ok(Exit::DONE)
    }

    pub(super) async fn run(
        self,
        context: &mut App,
        actor: &ActorArgs,
    ) -> Result<Exit, CommandError> {
        let client = context.client().await?;
        let Some(name) = &self.name else {
            return show(context, &Node::of(client.broker()), None).await;
        };
        if self.parts.is_none() && self.contexts.is_empty() {
            return show(context, &Node::of(client.broker()), Some(name)).await;
        }
        let (node, me) = actor.identity().create(&client).await?;
        match self.parts {
            Some(parts) => node.spread_queue(&me, name, parts.into()).await?,
            None => node.spread_over(&me, name, &self.contexts).await?,
        };
        show(context, &node, Some(name)).await
    }
}

/// Prints the parts of a queue, or of all.
async fn show(
    context: &mut App,
    node: &Node,
    name: Option<&SpreadName>,
) -> Result<Exit, CommandError> {
    let names = match name {
        Some(name) => vec![name.clone()],
        None => {
            let all = node.spreads().await?.into_iter();
            all.map(|(name, _)| name).collect()
        }
    };
    let mut lines = Vec::new();
    for name in &names {
        let state = node.spread_state(name).await?;
        lines.extend(state.parts.iter().map(|part| Line::new(name, part)));
        tell_moving(&name.to_string(), state.moving);
    }
    context.out.rows(lines)?;
    Ok(Exit::DONE)
}

fn tell_moving(name: &str, moving: usize) {
    if moving > 0 {
        note(format_args!(
            "{} of {name} with unfinished jobs in the old parts, to be moved later",
            counted(moving, "key")
        ));
    }
}
