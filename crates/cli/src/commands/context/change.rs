//! `meshwork context create`, `grant`, `revoke` and `set`.

use meshwork::context::ContextPlace;
use meshwork_model::access::Role;
use meshwork_model::acl::AclUser;
use meshwork_model::context::{Context as Record, Unsigned};
use meshwork_model::keys::context::{ActorId, ContextId, ContextLayout};
use meshwork_model::sandbox::Profile;
use serde::Serialize;

use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::identity::IdentityArgs;
use crate::out::note;

/// Create a context, with you as its admin and executor, and print its number
#[derive(Debug, clap::Args)]
pub(crate) struct Create {
    /// Number of the context, at least 1 [default: the next free one; on a Cluster, of the node with the fewest contexts]
    #[arg(long, value_name = "N", conflicts_with_all = ["near", "node"])]
    id: Option<ContextId>,
    /// Take a number whose keys are on the node of this context
    #[arg(long, value_name = "ID", conflicts_with = "node")]
    near: Option<ContextId>,
    /// Take a number whose keys are on this node of a Cluster
    #[arg(long, value_name = "HOST:PORT")]
    node: Option<String>,
    /// db: in the database with its number; prefix: in database 0, each key with the prefix {ctx:N}: [default: db if
    /// the server has this database]
    #[arg(long, value_name = "LAYOUT")]
    layout: Option<ContextLayout>,
    #[command(flatten)]
    identity: IdentityArgs,
}

#[derive(Debug, Serialize)]
struct Created {
    id: ContextId,
    layout: &'static str,
    admin: ActorId,
}

impl Create {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let (node, me) = self.identity.create(&context.client().await?).await?;
        let place = match (self.near, self.node) {
            (Some(near), _) => ContextPlace::Near(near),
            (None, Some(node)) => ContextPlace::On(node),
            (None, None) => self.id.into(),
        };
        let made = node.create_context(&me, place, self.layout).await?;
        match context.out.is_json() {
            true => context.out.json(&Created {
                id: made.id(),
                layout: made.keys().layout().as_str(),
                admin: me.id(),
            })?,
            false => context.out.line(made.id())?,
        }
        Ok(Exit::DONE)
    }
}

/// A role that is granted.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum RoleArg {
    /// Creates and deletes everything in the context, and grants roles
    Admin,
    /// Reads everything in the context
    Reader,
    /// Runs jobs
    Executor,
}

impl From<RoleArg> for Role {
    fn from(role: RoleArg) -> Self {
        match role {
            RoleArg::Admin => Self::Admin,
            RoleArg::Reader => Self::Reader,
            RoleArg::Executor => Self::Executor,
        }
    }
}

/// Give an actor a role in a context
#[derive(Debug, clap::Args)]
pub(crate) struct Grant {
    /// The context
    context: ContextId,
    /// The role
    role: RoleArg,
    /// The actor
    actor: ActorId,
    #[command(flatten)]
    identity: IdentityArgs,
}

impl Grant {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let (node, me) = self.identity.open(context).await?;
        let handle = node.context(self.context).await?;
        let record = handle.grant(&me, self.role.into(), self.actor).await?;
        print(context, &record)
    }
}

/// Take a role from an actor
///
/// Users of the server are not actors: --acl deletes the context's user of that role too, which closes its connections.
#[derive(Debug, clap::Args)]
pub(crate) struct Revoke {
    /// The context
    context: ContextId,
    /// The role
    role: RoleArg,
    /// The actor
    actor: ActorId,
    /// Delete the server's user of that role too
    #[arg(long)]
    acl: bool,
    #[command(flatten)]
    identity: IdentityArgs,
}

impl Revoke {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let (node, me) = self.identity.open(context).await?;
        let handle = node.context(self.context).await?;
        let users = match (self.acl, self.role) {
            (false, _) => Vec::new(),
            (true, RoleArg::Admin) => vec![AclUser::Admin],
            (true, RoleArg::Reader) => vec![AclUser::Reader],
            (true, RoleArg::Executor) => vec![AclUser::Executor, AclUser::Runner],
        };
        // Users first: an admin who takes his own role away may delete none after that.
        for user in users {
            let name = handle.delete_acl_user(&me, user).await?;
            note(format_args!("deleted the user {name} of the server"));
        }
        let record = handle.revoke(&me, self.role.into(), self.actor).await?;
        print(context, &record)
    }
}

/// Change the settings of a context
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = true, args = ["unsigned", "sandbox"])]
pub(crate) struct Set {
    /// The context
    context: ContextId,
    /// Messages without a signed envelope: own (accept those sent inside the context), accept (also those of other
    /// contexts), or refuse
    #[arg(long, value_name = "WORD")]
    unsigned: Option<Unsigned>,
    /// Sandbox granted to jobs that messages of other nodes bring: open, standard or strict [default: strict]
    #[arg(long, value_name = "PROFILE")]
    sandbox: Option<Profile>,
    #[command(flatten)]
    identity: IdentityArgs,
}

impl Set {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let (node, me) = self.identity.open(context).await?;
        let handle = node.context(self.context).await?;
        if let Some(unsigned) = self.unsigned {
            handle.set_unsigned(&me, unsigned).await?;
        }
        if let Some(granted) = self.sandbox {
            handle.set_sandbox(&me, granted).await?;
        }
        print(context, &handle.show(&me).await?)
    }
}

fn print(context: &mut App, record: &Record) -> Result<Exit, CommandError> {
    match context.out.is_json() {
        true => context.out.json(record)?,
        false => {
            let list = |actors: &[ActorId]| {
                let numbers: Vec<_> = actors.iter().map(ToString::to_string).collect();
                numbers.join(",")
            };
            let (admins, readers) = (list(&record.admins), list(&record.readers));
            let executors = list(&record.executors);
            context.out.line(format_args!(
                "{}: admins {admins}; readers {readers}; executors {executors}; unsigned {}; sandbox {}",
                record.id, record.unsigned, record.sandbox
            ))?;
        }
    }
    Ok(Exit::DONE)
}
