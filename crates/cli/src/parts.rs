//! Commands over all parts of spread queues: the same command in each of their contexts.

use meshwork::spread::SpreadName;
use meshwork_model::access::{Object, Operation};

use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::scope::{ActorArgs, Scope};

/// A command over parts.
pub(crate) struct OverParts<'a> {
    pub(crate) actor: &'a ActorArgs,
    /// The spread queue; all of them without a name.
    pub(crate) name: Option<SpreadName>,
    /// Permission that the command needs in each part.
    pub(crate) needs: (Object, Operation),
}

impl OverParts<'_> {
    /// Runs the command in each part. A failure in one part ends it; its message names the part.
    pub(crate) async fn run(
        self,
        context: &mut App,
        command: impl AsyncFn(&mut App) -> Result<Exit, CommandError>,
    ) -> Result<Exit, CommandError> {
        let (node, me) = self.actor.identity().open(context).await?;
        let mut exit = Exit::DONE;
        for id in node.spread_contexts(self.name.as_ref()).await? {
            let part = node.context(id).await.map_err(CommandError::from);
            let scope = Scope::new(me.clone(), part.map_err(|error| error.in_part(id))?);
            let entered = context.enter(scope, self.needs).await;
            entered.map_err(|error| error.in_part(id))?;
            context.out.begin_part(id);
            let ended = command(context).await;
            context.entered = None;
            exit = exit.or(ended.map_err(|error| error.in_part(id))?);
        }
        context.out.end_parts()?;
        Ok(exit)
    }
}
