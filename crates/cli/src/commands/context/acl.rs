//! `meshwork context acl`.

use meshwork_model::acl::AclUser;
use meshwork_model::keys::context::ContextId;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::identity::IdentityArgs;
use crate::out::note;

/// User of the server.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum UserArg {
    /// An admin with any client
    Admin,
    /// A reader with any client
    Reader,
    /// An executor with any client
    Executor,
    /// A worker of Meshwork
    Runner,
}

impl From<UserArg> for AclUser {
    fn from(user: UserArg) -> Self {
        match user {
            UserArg::Admin => Self::Admin,
            UserArg::Reader => Self::Reader,
            UserArg::Executor => Self::Executor,
            UserArg::Runner => Self::Runner,
        }
    }
}

/// Create a user of the server with the rights of a role in a context, and no other rights
///
/// Needs Valkey 9.1 or newer, or Redis 7.0 or newer with a context in the layout `prefix`. The password is printed
/// once; the server stores its SHA-256. An existing user gets a new password and the rules of this release.
/// docs/permissions.md lists the rights.
#[derive(Debug, clap::Args)]
pub(crate) struct Acl {
    /// The context
    context: ContextId,
    /// The user
    user: UserArg,
    /// Delete the user instead, which closes its connections
    #[arg(long)]
    delete: bool,
    #[command(flatten)]
    identity: IdentityArgs,
}

#[derive(Debug, Serialize)]
struct Made<'a> {
    user: &'a str,
    password: &'a str,
}

impl Acl {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let (node, me) = self.identity.open(context).await?;
        let handle = node.context(self.context).await?;
        if self.delete {
            let name = handle.delete_acl_user(&me, self.user.into()).await?;
            note(format_args!("deleted the user {name} of the server"));
            return Ok(Exit::DONE);
        }
        let password = password();
        let digest = Sha256::digest(&password).into();
        let user = handle.set_acl_user(&me, self.user.into(), &digest).await?;
        let (user, password) = (user.as_str(), password.as_str());
        match context.out.is_json() {
            true => context.out.json(&Made { user, password })?,
            false => {
                context.out.line(format_args!("user      {user}"))?;
                context.out.line(format_args!("password  {password}"))?;
            }
        }
        note(
            "the password is not shown again; a restart of the server forgets the user unless you run ACL SAVE or CONFIG REWRITE",
        );
        Ok(Exit::DONE)
    }
}

/// 244 random bits.
fn password() -> String {
    let half = || uuid::Uuid::new_v4().simple();
    format!("{}{}", half(), half())
}
