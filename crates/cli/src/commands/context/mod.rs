//! `meshwork context`.

mod acl;
mod audit;
mod audit_file;
mod change;
mod look;

use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;

/// Create contexts, and grant roles in them
///
/// A context is a tenant: a database of its own, or a prefix of its own in database 0. docs/contexts.md begins with a
/// tour.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum ContextCommand {
    Create(change::Create),
    List(look::List),
    Show(look::Show),
    Grant(change::Grant),
    Revoke(change::Revoke),
    Set(change::Set),
    Acl(acl::Acl),
    Audit(audit::Audit),
}

impl ContextCommand {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        match self {
            Self::Create(create) => create.run(context).await,
            Self::List(list) => list.run(context).await,
            Self::Show(show) => show.run(context).await,
            Self::Grant(grant) => grant.run(context).await,
            Self::Revoke(revoke) => revoke.run(context).await,
            Self::Set(set) => set.run(context).await,
            Self::Acl(acl) => acl.run(context).await,
            Self::Audit(audit) => Box::pin(audit.run(context)).await,
        }
    }
}
