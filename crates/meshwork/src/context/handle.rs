//! One context: permission checks, and changes of its record.

use meshwork_broker::context::{Commit, ContextStore, Database, Read};
use meshwork_macros::boxed;
use meshwork_model::access::{self, Denied, Object, Operation, Role, Roles, Scope, Who};
use meshwork_model::acl::{self, AclRefusal, AclServer, AclUser};
use meshwork_model::context::{Context, NodeId, Reason, Unsigned, field};
use meshwork_model::keys::context::{ActorId, ContextId, ContextKeys, ContextLayout};
use meshwork_model::sandbox::Profile;

use super::audit::{AuditEntry, Change};
use super::{Acting, Caller, ContextError, Node, Site, TRIES};

/// A context; cheap to clone.
#[derive(Debug, Clone)]
pub struct ContextHandle {
    node: Node,
    keys: ContextKeys,
}

/// Returns the reason of a refusal, with the credential of the caller if it gave one.
fn named_by(me: &impl Acting, denied: &Denied) -> String {
    let (name, actor) = (me.to_string(), format!("actor {}", me.id()));
    match name == actor {
        true => denied.to_string(),
        false => format!("{name}: {denied}"),
    }
}

/// A list of a context's record.
fn list(context: &mut Context, role: Role) -> Option<(&'static str, &mut Vec<ActorId>)> {
    match role {
        Role::Admin => Some((field::ADMINS, &mut context.admins)),
        Role::Reader => Some((field::READERS, &mut context.readers)),
        Role::Executor => Some((field::EXECUTORS, &mut context.executors)),
        Role::Owner | Role::Actor => None,
    }
}

fn numbers(actors: &[ActorId]) -> String {
    let numbers: Vec<_> = actors.iter().map(ToString::to_string).collect();
    format!("[{}]", numbers.join(","))
}

impl ContextHandle {
    pub(super) const fn new(node: Node, keys: ContextKeys) -> Self {
        Self { node, keys }
    }

    /// Returns the same context over another connection to its node.
    #[must_use]
    pub fn over(&self, node: &Node) -> Self {
        Self::new(node.clone(), self.keys.clone())
    }

    /// Returns the number of the context.
    #[must_use]
    pub const fn id(&self) -> ContextId {
        self.keys.context()
    }

    /// Returns the names of its keys.
    #[must_use]
    pub const fn keys(&self) -> &ContextKeys {
        &self.keys
    }

    /// Returns its place among the contexts of all nodes; `node` is this one.
    pub(super) const fn site(&self, node: NodeId) -> Site {
        Site {
            node,
            context: self.id(),
        }
    }

    /// Returns its node.
    #[must_use]
    pub const fn node(&self) -> &Node {
        &self.node
    }

    pub(crate) const fn store(&self) -> &ContextStore {
        &self.node.store
    }

    /// Returns the database of its keys.
    #[must_use]
    pub const fn database(&self) -> Database {
        match self.keys.layout() {
            ContextLayout::Db => Database::Own(self.keys.database()),
            ContextLayout::Prefix => Database::Node,
        }
    }

    pub(super) async fn commit(
        &self,
        commit: &Commit,
    ) -> Result<meshwork_broker::context::Committed, ContextError> {
        Ok(self.store().commit(self.database(), commit).await?)
    }

    /// Returns its record, without a permission check.
    pub(super) async fn record(&self) -> Result<Context, ContextError> {
        let fields = self
            .store()
            .hash(self.database(), &self.keys.record())
            .await?;
        if fields.is_empty() {
            return Err(ContextError::NoContext(self.id()));
        }
        Ok(Context::from_fields(self.id(), fields)?)
    }

    /// Returns its record, for an actor with the right to read it.
    ///
    /// # Errors
    /// [`ContextError::Denied`], or a call to the server fails.
    pub async fn show(&self, me: &impl Acting) -> Result<Context, ContextError> {
        self.allow_caller(me, Object::Context, Operation::Read)
            .await
    }

    /// Returns the roles of an actor whose keys are not revoked.
    ///
    /// # Errors
    /// A call to the server fails.
    #[boxed]
    pub async fn roles(&self, who: ActorId) -> Result<Roles, ContextError> {
        Ok(Roles::of(who, &self.record().await?))
    }

    /// Checks a permission. All checks are here. A refusal is counted ([`Self::refusals`]).
    ///
    /// # Errors
    /// [`ContextError::Denied`] names the actor, the operation and the context; or a call to the server fails.
    #[boxed]
    pub async fn allow(
        &self,
        who: ActorId,
        object: Object,
        operation: Operation,
    ) -> Result<Context, ContextError> {
        self.allow_caller(&Caller::new(who, None), object, operation)
            .await
    }

    /// Returns true if a caller has a permission. A refusal is not counted.
    ///
    /// # Errors
    /// A call to the server fails.
    pub async fn may(
        &self,
        me: &impl Acting,
        object: Object,
        operation: Operation,
    ) -> Result<bool, ContextError> {
        let roles = self.roles(me.id()).await?;
        let (who, place) = (Who::Actor(me.id()), Scope::Context(self.id()));
        Ok(access::check(who, roles, object, operation, place).is_ok())
    }

    /// Same as [`Self::allow`]. The reason of a refusal names the caller.
    ///
    /// # Errors
    /// As for [`Self::allow`].
    pub async fn allow_caller(
        &self,
        me: &impl Acting,
        object: Object,
        operation: Operation,
    ) -> Result<Context, ContextError> {
        let context = self.record().await?;
        let Err((who, denied)) = self.checked(&context, me.id(), object, operation).await? else {
            return Ok(context);
        };
        let (author, text) = match who {
            // The caller's own name has the credential, too.
            Who::Actor(id) => (format!("actor {id}"), named_by(me, &denied)),
            Who::Stranger => ("stranger".to_owned(), denied.to_string()),
        };
        self.count_refused(&author, &text).await?;
        Err(ContextError::Denied(denied))
    }

    /// Checks a permission by the roles of a context's record. Returns who is refused, and why.
    async fn checked(
        &self,
        context: &Context,
        id: ActorId,
        object: Object,
        operation: Operation,
    ) -> Result<Result<(), (Who, Denied)>, ContextError> {
        let (who, roles) = match self.node.actor(id).await {
            Ok(actor) if actor.revoked_at.is_none() => (Who::Actor(id), Roles::of(id, context)),
            Ok(_) | Err(ContextError::NoActor(_) | ContextError::Record(_)) => {
                (Who::Stranger, Roles::NONE)
            }
            Err(error) => return Err(error),
        };
        let place = Scope::Context(self.id());
        let checked = access::check(who, roles, object, operation, place);
        Ok(checked.map_err(|denied| (who, denied)))
    }

    /// Checks a permission. Returns the reason of a refusal, which is not counted.
    pub(super) async fn denial(
        &self,
        who: ActorId,
        object: Object,
        operation: Operation,
    ) -> Result<Option<Reason>, ContextError> {
        let context = self.record().await?;
        let checked = self.checked(&context, who, object, operation).await?;
        let denied = checked.err();
        Ok(denied.map(|(_, denied)| Reason::new(Reason::FORBIDDEN, denied.to_string())))
    }

    /// Adds an entry to the audit trail, with no change.
    pub(super) async fn note(&self, change: Change<'_>) -> Result<(), ContextError> {
        let commit = change.noted(Commit::default(), &self.keys.audit());
        let _ = self.commit(&commit).await?;
        Ok(())
    }

    /// Grants a role to an actor: admin, reader or executor.
    ///
    /// # Errors
    /// [`ContextError::Denied`], [`ContextError::NoActor`], [`ContextError::HasRole`], or a call to the server fails.
    pub async fn grant(
        &self,
        me: &impl Acting,
        role: Role,
        to: ActorId,
    ) -> Result<Context, ContextError> {
        self.node.actor(to).await?;
        let context = self.id();
        self.change_members(me, "grant", role, |members| {
            if members.contains(&to) {
                return Err(ContextError::HasRole { actor: to, context });
            }
            members.push(to);
            Ok(())
        })
        .await
    }

    /// Revokes a role of an actor, except that of the last admin.
    ///
    /// # Errors
    /// [`ContextError::Denied`], [`ContextError::LacksRole`], [`ContextError::LastAdmin`], or a call to the server
    /// fails.
    pub async fn revoke(
        &self,
        me: &impl Acting,
        role: Role,
        from: ActorId,
    ) -> Result<Context, ContextError> {
        let (context, actor) = (self.id(), from);
        self.change_members(me, "revoke", role, |members| {
            let at = members.iter().position(|it| *it == from);
            let at = at.ok_or(ContextError::LacksRole { actor, context })?;
            if role == Role::Admin && members.len() == 1 {
                return Err(ContextError::LastAdmin { actor, context });
            }
            members.remove(at);
            Ok(())
        })
        .await
    }

    async fn change_members(
        &self,
        me: &impl Acting,
        what: &str,
        role: Role,
        change: impl Fn(&mut Vec<ActorId>) -> Result<(), ContextError>,
    ) -> Result<Context, ContextError> {
        let record = self.keys.record();
        for _ in 0..TRIES {
            let mut context = self
                .allow_caller(me, Object::Context, Operation::Update)
                .await?;
            let fields = self.store().hash(self.database(), &record).await?;
            let Some((name, members)) = list(&mut context, role) else {
                return Err(ContextError::InvalidMessage(format!(
                    "{} is no role of a context",
                    role.as_str()
                )));
            };
            let before = numbers(members);
            change(members)?;
            let after = numbers(members);
            context.check()?;
            // Compared in its written form, since a plain client may write spaces.
            let written = fields.iter().find(|(field, _)| field == name);
            let written = written
                .map(|(_, value)| value.as_slice())
                .unwrap_or_default();
            let now = self.node.now().await?;
            context.updated_at = now;
            let commit = Commit::default().is(&record, name, written).set(
                &record,
                [
                    (name, after.as_str()),
                    (field::UPDATED_AT, &now.to_string()),
                ],
            );
            let change = Change {
                who: &me.to_string(),
                what,
                object: name,
                before: &before,
                after: &after,
            };
            if self
                .commit(&change.noted(commit, &self.keys.audit()))
                .await?
                .is_done()
            {
                return Ok(context);
            }
        }
        Err(ContextError::Busy(record))
    }

    /// Sets the treatment of messages without an envelope.
    ///
    /// # Errors
    /// [`ContextError::Denied`], or a call to the server fails.
    pub async fn set_unsigned(
        &self,
        me: &impl Acting,
        unsigned: Unsigned,
    ) -> Result<(), ContextError> {
        let old = |record: &Context| record.unsigned.to_string();
        self.set(me, field::UNSIGNED, old, &unsigned.to_string())
            .await
    }

    /// Grants a sandbox to jobs that messages of other nodes bring.
    ///
    /// # Errors
    /// [`ContextError::Denied`], or a call to the server fails.
    pub async fn set_sandbox(
        &self,
        me: &impl Acting,
        granted: Profile,
    ) -> Result<(), ContextError> {
        let old = |record: &Context| record.sandbox.to_string();
        self.set(me, field::SANDBOX, old, granted.as_str()).await
    }

    /// Sets a field of the record. `old` returns its value before.
    async fn set(
        &self,
        me: &impl Acting,
        field: &str,
        old: impl Fn(&Context) -> String + Send,
        value: &str,
    ) -> Result<(), ContextError> {
        let before = self
            .allow_caller(me, Object::Context, Operation::Update)
            .await?;
        let record = self.keys.record();
        let commit = Commit::default().set(&record, [(field, value)]);
        let change = Change {
            who: &me.to_string(),
            what: "update",
            object: field,
            before: &old(&before),
            after: value,
        };
        let _ = self
            .commit(&change.noted(commit, &self.keys.audit()))
            .await?;
        Ok(())
    }

    /// Returns entries of the audit trail: the latest `most`, or those after an id, oldest first.
    ///
    /// # Errors
    /// [`ContextError::Denied`], or a call to the server fails.
    pub async fn audit(
        &self,
        me: &impl Acting,
        after: Option<&str>,
        most: usize,
    ) -> Result<Vec<AuditEntry>, ContextError> {
        self.allow_caller(me, Object::Audit, Operation::Read)
            .await?;
        entries(
            self.store(),
            self.database(),
            &self.keys.audit(),
            after,
            most,
        )
        .await
    }

    /// Creates a user of the server for this context, or updates its rules. The server stores the SHA-256 of the
    /// password. Returns the user's name.
    ///
    /// # Errors
    /// [`ContextError::Acl`] if this server cannot confine the user to the context, [`ContextError::Denied`], or a call
    /// to the server fails.
    pub async fn set_acl_user(
        &self,
        me: &impl Acting,
        user: AclUser,
        password_sha256: &[u8; 32],
    ) -> Result<String, ContextError> {
        self.allow_caller(me, Object::Context, Operation::Update)
            .await?;
        let server = self.one_server().await?;
        let words = acl::set_user(user, &self.keys, self.node.keys(), server, password_sha256)?;
        self.store().acl(&words).await?;
        let name = acl::user_name(user, &self.keys);
        self.note_acl(me, "acl set", &name).await?;
        Ok(name)
    }

    /// Deletes a user of the server, which closes its connections. Returns the user's name.
    ///
    /// # Errors
    /// [`ContextError::Denied`], or a call to the server fails.
    pub async fn delete_acl_user(
        &self,
        me: &impl Acting,
        user: AclUser,
    ) -> Result<String, ContextError> {
        self.allow_caller(me, Object::Context, Operation::Update)
            .await?;
        let server = self.one_server().await?;
        // Returns the reason if there can be no such users.
        acl::rules(user, &self.keys, self.node.keys(), server)?;
        let name = acl::user_name(user, &self.keys);
        self.store()
            .acl(&["DELUSER".to_owned(), name.clone()])
            .await?;
        self.note_acl(me, "acl delete", &name).await?;
        Ok(name)
    }

    /// Returns the server that has the users.
    async fn one_server(&self) -> Result<AclServer, ContextError> {
        match self.store().conn().is_cluster() {
            true => Err(AclRefusal::Cluster.into()),
            false => Ok(self.store().acl_server().await?),
        }
    }

    async fn note_acl(&self, me: &impl Acting, what: &str, name: &str) -> Result<(), ContextError> {
        let who = me.to_string();
        self.note(Change {
            who: &who,
            what,
            object: name,
            ..Change::default()
        })
        .await
    }
}

/// Returns the entries of a trail, oldest first.
pub(super) async fn entries(
    store: &ContextStore,
    database: Database,
    key: &str,
    after: Option<&str>,
    most: usize,
) -> Result<Vec<AuditEntry>, ContextError> {
    let read = match after {
        Some(id) => Read::After(most, id),
        None => Read::Last(most),
    };
    let mut entries = store.entries(database, key, read).await?;
    if after.is_none() {
        entries.reverse();
    }
    Ok(entries.into_iter().map(AuditEntry::of).collect())
}
