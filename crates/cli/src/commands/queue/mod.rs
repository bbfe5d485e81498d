//! `meshwork queue`.

mod alert;
mod by_api;
mod limit;
mod line;
mod list;
mod pause;
mod purge;
mod spread;
mod stats;
mod weight;

use meshwork::spread::SpreadError;
use meshwork_model::access::{Object, Operation};
use meshwork_model::keys::hero::{JobKeys, NoWorkQueue};

use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::note;
use crate::parts::OverParts;
use crate::scope::{ActorArgs, ScopeArgs};

/// Look at queues, pause, drain, purge, limit and spread them
///
/// With --context ID, commands use the queues of a context; with --spread, those in all parts of a spread queue.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Queues {
    #[command(subcommand)]
    command: QueueCommand,
    #[command(flatten)]
    scope: ScopeArgs,
}

#[derive(Debug, Clone, clap::Subcommand)]
enum QueueCommand {
    List(list::List),
    #[command(visible_alias = "count")]
    Stats(stats::Stats),
    Pause(pause::Pause),
    Resume(pause::Resume),
    Drain(pause::Drain),
    Purge(purge::Purge),
    #[command(subcommand)]
    Limit(limit::LimitCommand),
    /// Set limits of a queue, same as `queue limit set`
    Set(Box<limit::Set>),
    Weight(weight::Weight),
    #[command(subcommand)]
    Alert(alert::AlertCommand),
    Spread(spread::Spread),
}

/// Queue argument.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Queue {
    /// Name of the queue, as `queue list` shows it, or its key
    #[arg(value_name = "QUEUE")]
    name: String,
}

impl Queue {
    /// Returns the key of the list.
    fn list(&self, keys: &JobKeys) -> Result<String, NoWorkQueue> {
        keys.parse_work_queue(&self.name)
    }
}

/// Invalid requests; nothing was changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UsageError {
    #[error(
        "nothing to set: give the greatest number of waiting jobs, or an option as --concurrency 5 or --rate 100/min"
    )]
    Nothing,
    #[error("`default` has only a limit of waiting jobs; name a queue for the other limits")]
    Default,
}

impl From<UsageError> for CommandError {
    fn from(error: UsageError) -> Self {
        Self::usage(error)
    }
}

impl Queues {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let Self { command, scope } = self;
        if context.remote.is_some() {
            return Box::pin(command.by_api(context, &scope.params())).await;
        }
        let needs = command.needs();
        if scope.spread && !matches!(command, QueueCommand::Spread(_)) {
            command.prepare(context, &scope.actor).await?;
            let name = command.queue().map(str::parse).transpose();
            let over = OverParts {
                actor: &scope.actor,
                name: name.map_err(SpreadError::from)?,
                needs,
            };
            let actor = &scope.actor;
            let command = async |app: &mut App| Box::pin(command.clone().run(app, actor)).await;
            return Box::pin(over.run(context, command)).await;
        }
        if let Some(scope) = scope.open(context).await? {
            context.enter(scope, needs).await?;
        }
        Box::pin(command.run(context, &scope.actor)).await
    }
}

impl QueueCommand {
    /// Returns the required permission in a context.
    const fn needs(&self) -> (Object, Operation) {
        let change = (Object::Context, Operation::Update);
        match self {
            Self::List(_)
            | Self::Stats(_)
            | Self::Limit(limit::LimitCommand::Show { .. })
            | Self::Alert(alert::AlertCommand::Show(_))
            | Self::Spread(_) => (Object::Job, Operation::Read),
            Self::Purge(_) => (Object::Job, Operation::Delete),
            Self::Pause(_) | Self::Resume(_) | Self::Drain(_) | Self::Alert(_) => change,
            Self::Limit(_) | Self::Set(_) | Self::Weight(_) => change,
        }
    }

    /// Returns the queue that the command names.
    fn queue(&self) -> Option<&str> {
        match self {
            Self::Pause(pause) => pause.queue(),
            Self::Resume(resume) => resume.queue(),
            Self::Drain(drain) => Some(&drain.queue.name),
            Self::Purge(purge) => Some(&purge.queue.name),
            Self::Limit(limit) => limit.queue(),
            Self::Set(set) => Some(set.queue()),
            Self::Weight(weight) => Some(&weight.queue.name),
            Self::Alert(alert) => Some(alert.queue()),
            Self::List(_) | Self::Stats(_) | Self::Spread(_) => None,
        }
    }

    /// Explains limits of spread queues, or moves the queue to one part first.
    async fn prepare(&self, context: &App, actor: &ActorArgs) -> Result<(), CommandError> {
        let (Self::Limit(limit::LimitCommand::Set(set)) | Self::Set(set)) = self else {
            return Ok(());
        };
        let name = set.queue().parse().map_err(SpreadError::from)?;
        let (node, me) = actor.identity().open(context).await?;
        if set.exact {
            node.spread_queue(&me, &name, 1).await?;
            note(format_args!(
                "{name} has one part for new jobs now, so that its limits hold exactly"
            ));
            return Ok(());
        }
        let layout = node.spread(&name).await?;
        let active = layout.map_or(0, |layout| layout.active);
        if active > 1 {
            note(format_args!(
                "each of the {active} parts has these limits for itself; --exact keeps {name} in one part"
            ));
        }
        Ok(())
    }

    async fn run(self, context: &mut App, actor: &ActorArgs) -> Result<Exit, CommandError> {
        match self {
            Self::List(list) => list.run(context).await,
            Self::Stats(stats) => Box::pin(stats.run(context)).await,
            Self::Pause(pause) => pause.run(context).await,
            Self::Resume(resume) => resume.run(context).await,
            Self::Drain(drain) => Box::pin(drain.run(context)).await,
            Self::Purge(purge) => Box::pin(purge.run(context)).await,
            Self::Limit(limit) => Box::pin(limit.run(context)).await,
            Self::Set(set) => set.run(context).await,
            Self::Weight(weight) => weight.run(context).await,
            Self::Alert(alert) => Box::pin(alert.run(context)).await,
            Self::Spread(spread) => Box::pin(spread.run(context, actor)).await,
        }
    }
}
