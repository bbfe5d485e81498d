//! `meshwork runner`.

use meshwork::view::RunnerView;
use meshwork_model::keys::context::RunnerId;
use meshwork_model::name::ScriptType;
use serde::Serialize;
use serde_json::{Map, json};

use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::identity::ContextArgs;
use crate::out::{Column, Row};

/// Register the runners of a context: workers that have a number
#[derive(Debug, clap::Subcommand)]
pub(crate) enum RunnerCommand {
    Register(Register),
    List(List),
}

impl RunnerCommand {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        match self {
            Self::Register(register) => register.run(context).await,
            Self::List(list) => list.run(context).await,
        }
    }
}

/// Register a runner and print its number
#[derive(Debug, clap::Args)]
pub(crate) struct Register {
    /// Types of scripts to run
    #[arg(
        long = "type",
        value_name = "TYPES",
        value_delimiter = ',',
        required = true
    )]
    types: Vec<ScriptType>,
    /// Number of the runner [default: the next free one]
    #[arg(long, value_name = "N")]
    id: Option<RunnerId>,
    /// Receive the messages of the topic, and claim no jobs from the queues of the context; not supported yet
    #[arg(long, hide = true)]
    remote: bool,
    /// Topic to listen to [default: runnerN]
    #[arg(long, value_name = "NAME")]
    topic: Option<String>,
    #[command(flatten)]
    args: ContextArgs,
}

impl Register {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        if self.remote {
            return Err(CommandError::usage(
                "--remote is not supported yet: nothing passes messages to a topic. Register the runner without it; it takes jobs off \
                 the queues of its context",
            ));
        }
        let of = self.args.create_for_calls(context).await?;
        let params = json!({
            "context": of,
            "id": self.id,
            "types": self.types.iter().map(ScriptType::as_str).collect::<Vec<_>>(),
            "topic": self.topic,
        });
        let runner: RunnerView = context.call("runner.register", &params).await?;
        match context.out.is_json() {
            true => context.out.json(&runner)?,
            false => context.out.line(runner.id)?,
        }
        Ok(Exit::DONE)
    }
}

/// List the runners of a context, with their loads and last signs of life
#[derive(Debug, clap::Args)]
pub(crate) struct List {
    #[command(flatten)]
    args: ContextArgs,
}

impl List {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let Some(of) = self.args.for_calls(context).await? else {
            context.out.rows(Vec::<Listed>::new())?;
            return Ok(Exit::DONE);
        };
        let params = Map::from_iter([("context".to_owned(), of.get().into())]);
        let all = context.pages("runner.list", params, ("runners", usize::MAX));
        let (runners, _): (Vec<RunnerView>, _) = all.await?;
        context.out.rows(runners.into_iter().map(Listed))?;
        Ok(Exit::DONE)
    }
}

#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Listed(RunnerView);

impl Row for Listed {
    fn columns() -> Vec<Column> {
        let names = [
            "id",
            "types",
            "takes",
            "topic",
            "running",
            "waiting",
            "last seen",
        ];
        Column::named(names, &["id", "waiting"])
    }

    fn cells(&self) -> Vec<String> {
        let runner = &self.0;
        let takes = if runner.local { "queues" } else { "its topic" };
        let (id, topic) = (runner.id.to_string(), runner.topic.clone());
        let load = runner.load.as_ref();
        let jobs = load.and_then(|load| Some(format!("{} of {}", load.in_flight?, load.slots?)));
        let running = match load {
            Some(load) if load.running => jobs.unwrap_or_else(|| "yes".to_owned()),
            _ => "no".to_owned(),
        };
        vec![
            id,
            runner.types.clone(),
            takes.to_owned(),
            topic,
            running,
            load.map_or(String::new(), |load| load.waiting.to_string()),
            load.and_then(|load| load.last_seen.clone())
                .unwrap_or_default(),
        ]
    }
}
