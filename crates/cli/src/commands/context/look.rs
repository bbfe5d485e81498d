//! `meshwork context list` and `show`.

use meshwork::context::Node;
use meshwork::model::context::Context as Record;
use meshwork::model::keys::context::{ActorId, ContextId};
use serde::Serialize;

use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::identity::ContextArgs;
use crate::out::{Column, Row};

/// List the contexts of the node
#[derive(Debug, clap::Args)]
pub(crate) struct List {}

#[derive(Debug, Serialize)]
struct Listed {
    id: ContextId,
    layout: &'static str,
    database: u32,
}

impl List {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let node = Node::of(context.client().await?.broker());
        let contexts = node.contexts().await?;
        let rows = contexts.iter().map(|handle| Listed {
            id: handle.id(),
            layout: handle.keys().layout().as_str(),
            database: handle.keys().database(),
        });
        context.out.rows(rows)?;
        Ok(Exit::DONE)
    }
}

impl Row for Listed {
    fn columns() -> Vec<Column> {
        Column::named(["id", "layout", "database"], &["id", "database"])
    }

    fn cells(&self) -> Vec<String> {
        let (id, database) = (self.id.to_string(), self.database.to_string());
        vec![id, self.layout.to_owned(), database]
    }
}

/// Show the roles of the actors in a context
///
///   meshwork context show 7 --json
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Show {
    /// The context [default: the only one of the node]
    #[arg(value_name = "CONTEXT")]
    id: Option<ContextId>,
    #[command(flatten)]
    args: ContextArgs,
}

#[derive(Debug, Serialize)]
struct View<'a> {
    #[serde(flatten)]
    record: &'a Record,
    unsigned: String,
    layout: &'static str,
    database: u32,
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
        let (layout, database) = (handle.keys().layout().as_str(), handle.keys().database());
        let unsigned = record.unsigned.to_string();
        if context.out.is_json() {
            context.out.json(&View {
                record: &record,
                unsigned,
                layout,
                database,
            })?;
            return Ok(Exit::DONE);
        }
        let list = |actors: &[ActorId]| {
            let numbers: Vec<_> = actors.iter().map(ToString::to_string).collect();
            numbers.join(", ")
        };
        for (name, value) in [
            ("context", record.id.to_string()),
            ("layout", layout.to_owned()),
            ("database", database.to_string()),
            ("admins", list(&record.admins)),
            ("readers", list(&record.readers)),
            ("executors", list(&record.executors)),
            ("unsigned", unsigned),
        ] {
            context.out.line(format_args!("{name:<12} {value}"))?;
        }
        Ok(Exit::DONE)
    }
}
