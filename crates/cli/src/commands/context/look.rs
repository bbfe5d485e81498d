//! `meshwork context list` and `show`.

use meshwork::context::Node;
use meshwork::view::{ContextSummary, ContextView};
use meshwork_model::keys::context::ContextId;
use serde::Serialize;
use serde_json::{Map, json};

use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::identity::ContextArgs;
use crate::out::{Column, Row};

/// List the contexts of the node, on a Cluster with the nodes that have them
#[derive(Debug, clap::Args)]
pub(crate) struct List {}

#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Listed(ContextSummary);

impl List {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let contexts: Vec<_> = match context.near().await? {
            Some(client) => {
                let node = Node::of(client.broker());
                let (contexts, slots) = (node.contexts().await?, node.slots().await?);
                let listed = |handle| ContextSummary::new(handle, slots.as_ref());
                contexts.iter().map(listed).collect()
            }
            None => {
                let all = ("contexts", usize::MAX);
                context.pages("context.list", Map::new(), all).await?.0
            }
        };
        context.out.rows(contexts.into_iter().map(Listed))?;
        Ok(Exit::DONE)
    }
}

impl Row for Listed {
    fn columns() -> Vec<Column> {
        Column::named(["id", "layout", "database", "node"], &["id", "database"])
    }

    fn cells(&self) -> Vec<String> {
        let (id, database) = (self.0.id.to_string(), self.0.database.to_string());
        let node = self.0.node.clone().unwrap_or_default();
        vec![id, self.0.layout.to_string(), database, node]
    }
}

/// Show the roles of the actors in a context
#[derive(Debug, clap::Args)]
pub(crate) struct Show {
    /// The context [default: the only one of the node]
    #[arg(value_name = "CONTEXT")]
    id: Option<ContextId>,
    #[command(flatten)]
    args: ContextArgs,
}

impl Show {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let id = self.id.or(self.args.context);
        let view = match (&context.remote, id) {
            (Some(_), Some(id)) => {
                let params = json!({"id": id.get()});
                context.call("context.get", &params).await?
            }
            (Some(_), None) => {
                return Err(CommandError::usage(
                    "give the number of the context with --api",
                ));
            }
            (None, id) => {
                let args = ContextArgs {
                    context: id,
                    ..self.args
                };
                let (me, handle) = args.open(context).await?;
                ContextView::new(&handle, &handle.show(&me).await?)
            }
        };
        if context.out.is_json() {
            context.out.json(&view)?;
            return Ok(Exit::DONE);
        }
        let list = |actors: &[u32]| {
            let numbers: Vec<_> = actors.iter().map(ToString::to_string).collect();
            numbers.join(", ")
        };
        for (name, value) in [
            ("context", view.id.to_string()),
            ("layout", view.layout.into_owned()),
            ("database", view.database.to_string()),
            ("admins", list(&view.admins)),
            ("readers", list(&view.readers)),
            ("executors", list(&view.executors)),
            ("unsigned", view.unsigned),
            ("sandbox", view.sandbox.into_owned()),
        ] {
            context.out.line(format_args!("{name:<12} {value}"))?;
        }
        Ok(Exit::DONE)
    }
}
