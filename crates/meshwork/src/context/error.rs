//! Errors of calls about actors, contexts, runners and messages.

use std::path::PathBuf;

use meshwork_model::access::Denied;
use meshwork_model::acl::AclRefusal;
use meshwork_model::actor_key::InvalidKeyFile;
use meshwork_model::context::RecordError;
use meshwork_model::envelope::Refusal;
use meshwork_model::keys::context::{ActorId, ContextId, ContextLayout, MessageKey, RunnerId};
use meshwork_model::mesh::CardFault;

/// Reason of a failed call. Nothing was changed, unless the variant says otherwise.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ContextError {
    /// A call to the server failed. After a broken connection it may have taken effect.
    #[error(transparent)]
    Broker(#[from] meshwork_broker::Error),
    /// The connection to the context's database failed.
    #[error(transparent)]
    Jobs(#[from] Box<crate::Error>),
    /// A field of a record cannot be read, or exceeds its limit.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The table of permissions does not allow the operation.
    #[error(
        "{0}. docs/permissions.md has the table; an admin grants roles with `meshwork context grant`"
    )]
    Denied(Denied),
    /// No actor has this number.
    #[error("there is no actor {0}: `meshwork actor list` shows the actors of this node")]
    NoActor(ActorId),
    /// The number belongs to another actor.
    #[error("there is an actor {0} already: leave --id out to take the next free number")]
    ActorExists(ActorId),
    /// Another actor has the key.
    #[error("this public key is that of actor {0}: one key is one actor")]
    KeyTaken(ActorId),
    /// No actor has the key.
    #[error(
        "the key {key} is that of no actor of this node: its owner trusts it with `meshwork actor trust {key}`"
    )]
    UnknownKey {
        /// Public key, in hexadecimal digits.
        key: String,
    },
    /// The key is revoked.
    #[error(
        "the key of actor {0} is revoked: its owner makes another with `meshwork actor create`"
    )]
    RevokedKey(ActorId),
    /// The actor has no rights outside of contexts.
    #[error(
        "actor {0} has no rights outside of contexts: `meshwork actor show {0}` shows what it has"
    )]
    NoNodeScope(ActorId),
    /// The key file cannot be used.
    #[error("the key file {} cannot be used: {why}", path.display())]
    KeyFile {
        /// Path of the file.
        path: PathBuf,
        /// The fault.
        why: KeyFileFault,
    },
    /// The file with the passphrase cannot be used.
    #[error("the passphrase file {} cannot be used: {why}", path.display())]
    PassphraseFile {
        /// Path of the file.
        path: PathBuf,
        /// The fault.
        why: KeyFileFault,
    },
    /// The context does not exist.
    #[error("there is no context {0}: `meshwork context list` shows the contexts of this node")]
    NoContext(ContextId),
    /// The number belongs to another context.
    #[error(
        "there is a context {id} already, in the layout {layout}: leave --id out to take the next free number"
    )]
    ContextExists {
        /// Number of the context.
        id: ContextId,
        /// Layout of the context.
        layout: ContextLayout,
    },
    /// The database contains other keys.
    #[error(
        "database {0} holds keys of no context: choose another number, give --layout prefix, or empty the database"
    )]
    DatabaseInUse(u32),
    /// The server has no such database.
    #[error("the server has no database {0}: raise its `databases`, or give --layout prefix")]
    NoDatabase(u32),
    /// The layout `db` on a Cluster.
    #[error("a Cluster has database 0 alone: give --layout prefix, the default there")]
    OneDatabase,
    /// A node of a Cluster was named, and the store is none.
    #[error("this store is no Cluster, so that no node can be chosen: leave --node out")]
    NoCluster,
    /// The Cluster has no such node with slots.
    #[error("this Cluster has no node {given} with slots; it has {known}")]
    NoClusterNode {
        /// The given address.
        given: String,
        /// Addresses of the nodes.
        known: String,
    },
    /// The registry names a context whose record is missing.
    #[error(
        "the registry `mw:contexts` says that context {id} is in the layout {layout}, but its record is not there: \
         restore the record, or take the entry out of the registry (HDEL mw:contexts {id})"
    )]
    NoRecord {
        /// Number of the context.
        id: ContextId,
        /// Layout in the registry.
        layout: ContextLayout,
    },
    /// The registry has an unknown layout.
    #[error("the registry `mw:contexts` has {word:?} for context {id}: write db or prefix")]
    Registry {
        /// Number of the context.
        id: ContextId,
        /// Text of the registry.
        word: String,
    },
    /// The actor has the role.
    #[error("actor {actor} has that role in context {context} already")]
    HasRole {
        /// Number of the actor.
        actor: ActorId,
        /// Number of the context.
        context: ContextId,
    },
    /// The actor does not have the role.
    #[error("actor {actor} does not have that role in context {context}")]
    LacksRole {
        /// Number of the actor.
        actor: ActorId,
        /// Number of the context.
        context: ContextId,
    },
    /// The last admin cannot be removed, since nobody could change the context then.
    #[error("actor {actor} is the only admin of context {context}: make another one admin first")]
    LastAdmin {
        /// Number of the actor.
        actor: ActorId,
        /// Number of the context.
        context: ContextId,
    },
    /// The record changed during each attempt.
    #[error("others change {0} at the moment: repeat the command")]
    Busy(String),
    /// All numbers are used.
    #[error("no number is left for another {0}")]
    NoNumber(&'static str),
    /// The message does not exist.
    #[error("there is no {key} in context {context}: `meshwork message list` shows the messages")]
    NoMessage {
        /// Key of the message.
        key: MessageKey,
        /// Number of the context.
        context: ContextId,
    },
    /// The jobs of the message may run.
    #[error(
        "{key} in context {context} is acknowledged, and its jobs may run: wait for it, or cancel its jobs first"
    )]
    MessageOpen {
        /// Key of the message.
        key: MessageKey,
        /// Number of the context.
        context: ContextId,
    },
    /// The message was not sent from here, so it is not cancelled here.
    #[error(
        "{key} in context {context} was received, and only its sender can cancel it: delete it, or cancel its jobs"
    )]
    MessageReceived {
        /// Key of the message.
        key: MessageKey,
        /// Number of the context.
        context: ContextId,
    },
    /// The message has not ended within the caller's wait.
    #[error("{key} in context {context} has not ended: wait for it again")]
    NotEnded {
        /// Key of the message.
        key: MessageKey,
        /// Number of the context.
        context: ContextId,
    },
    /// The runner does not exist.
    #[error(
        "there is no runner {id} in context {context}: `meshwork runner list` shows the runners"
    )]
    NoRunner {
        /// Number of the runner.
        id: RunnerId,
        /// Number of the context.
        context: ContextId,
    },
    /// The number belongs to another runner.
    #[error("there is a runner {0} already: leave --id out to take the next free number")]
    RunnerExists(RunnerId),
    /// A text names no job of the context.
    #[error("{0}")]
    InvalidJob(String),
    /// No other node has this name here.
    #[error(
        "no node is known as {0:?}: `meshwork mesh trust FILE --name {0}` trusts the card of a node; `meshwork mesh peers` \
         shows the known ones"
    )]
    NoPeer(String),
    /// The node is not trusted any more.
    #[error(
        "the node {0} is not trusted: it was revoked, or its card has expired; ask for a new card"
    )]
    PeerNotTrusted(String),
    /// Another node has the name.
    #[error("another node is known as {0:?}: choose another name with --name")]
    PeerNameTaken(String),
    /// The card is that of this node.
    #[error(
        "this is the card of this node: give it to the other one, and trust the other one's here"
    )]
    OwnCard,
    /// Too many nodes are known.
    #[error("this node knows {0} other nodes: that is the most")]
    TooManyPeers(usize),
    /// The card of a node was refused.
    #[error("{0}")]
    Card(CardFault),
    /// The message is invalid.
    #[error("the message is refused: {0}")]
    InvalidMessage(String),
    /// The envelope cannot be created, or is refused.
    #[error(transparent)]
    Envelope(#[from] Refusal),
    /// The server cannot confine users to a context.
    #[error(transparent)]
    Acl(#[from] AclRefusal),
}

impl ContextError {
    /// Returns true if a retry fails again until somebody changes the stored data: a record cannot be read, a key has
    /// the wrong type, or a limit is exceeded.
    pub(crate) fn is_permanent(&self) -> bool {
        use meshwork_broker::Error as E;
        match self {
            Self::Broker(error) => matches!(
                error,
                E::WrongKind { .. } | E::WrongType { .. } | E::TooMany { .. }
            ),
            Self::Jobs(_) | Self::Busy(_) => false,
            _ => true,
        }
    }

    /// Returns true if the server's ACL forbids the call.
    pub(crate) fn is_no_right(&self) -> bool {
        matches!(self, Self::Broker(error) if error.is_denied())
    }

    /// Returns true if the server is unreachable, so that all other calls fail too.
    #[must_use]
    pub fn is_outage(&self) -> bool {
        matches!(self, Self::Broker(error) if error.is_temporary() || error.is_connection_lost())
    }
}

/// Fault of a key file, or of the file with its passphrase.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyFileFault {
    /// The system denies access.
    #[error("{0}")]
    System(#[from] std::io::Error),
    /// Others can read the file.
    #[error("others may read it (mode {mode:o}): chmod 600")]
    Mode {
        /// Mode of the file.
        mode: u32,
    },
    /// The file is no regular file.
    #[error("it is no file")]
    NoFile,
    /// The content is no key.
    #[error("{0}")]
    Content(#[from] InvalidKeyFile),
    /// The passphrase is wrong.
    #[error(
        "it is encrypted with another passphrase: check MESHWORK_ACTOR_PASSPHRASE_FILE, or type it again"
    )]
    WrongPassphrase,
    /// The file is encrypted for keys of `age`.
    #[error("it is encrypted, but not with a passphrase: `age -d` decrypts it with your key")]
    NotByPassphrase,
    /// Decryption is too expensive.
    #[error(
        "its passphrase costs 2^{cost} steps, and 2^{most} is the most: encrypt it again with `age -p`"
    )]
    Cost {
        /// Base-2 logarithm of its cost.
        cost: u8,
        /// Greatest allowed cost.
        most: u8,
    },
    /// The encrypted file is damaged.
    #[error("it was cut or changed: restore it from a copy")]
    Damaged,
    /// Encryption failed.
    #[error("it cannot be encrypted: {0}")]
    Encryption(String),
    /// The program was built without the feature `passphrase`.
    #[error(
        "this program cannot use a passphrase: build it with the feature `passphrase` of the crate `meshwork`"
    )]
    NoEncryption,
    /// The passphrase is invalid.
    #[error("a passphrase is one line of 1 to 1024 bytes without control characters")]
    InvalidPassphrase,
    /// The file exists.
    #[error(
        "it is there already: take another name with --key, or use that key with `meshwork actor trust`"
    )]
    Exists,
}
