//! `meshwork context list` and `show`.

use meshwork::context::Node;
use meshwork::view::{ContextSummary, ContextView};
use meshwork_model::keys::context::{ActorId, ContextId};
use serde::Serialize;

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
        let node = Node::of(context.client().await?.broker());
        let contexts = node.contexts().await?;
        let slots = node.slots().await?;
        let listed = |handle| Listed(ContextSummary::new(handle, slots.as_ref()));
        let rows = contexts.iter().map(listed);
        context.out.rows(rows)?;
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
        vec![id, self.0.layout.to_owned(), database, node]
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
        let args = ContextArgs {
            context: id,
            ..self.args
        };
        let (me, handle) = args.open(context).await?;
        let record = handle.show(&me).await?;
        let view = ContextView::new(&handle, &record);
        if context.out.is_json() {
            context.out.json(&view)?;
            return Ok(Exit::DONE);
        }
        let list = |actors: &[ActorId]| {
            let numbers: Vec<_> = actors.iter().map(ToString::to_string).collect();
            numbers.join(", ")
        };
        for (name, value) in [
            ("context", record.id.to_string()),
            ("layout", view.layout.to_owned()),
            ("database", view.database.to_string()),
            ("admins", list(&record.admins)),
            ("readers", list(&record.readers)),
            ("executors", list(&record.executors)),
            ("unsigned", view.unsigned),
            ("sandbox", view.sandbox.to_owned()),
        ] {
            context.out.line(format_args!("{name:<12} {value}"))?;
        }
        Ok(Exit::DONE)
    }
}
