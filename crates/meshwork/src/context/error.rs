//! Errors of calls about actors, contexts, runners and messages.

use std::path::PathBuf;

use meshwork_model::access::Denied;
use meshwork_model::acl::AclRefusal;
use meshwork_model::actor_key::InvalidKeyFile;
use meshwork_model::context::RecordError;
use meshwork_model::envelope::Refusal;
use meshwork_model::keys::context::{ActorId, ContextId, ContextLayout, MessageKey, RunnerId};

/// Why such a call failed. Unless it says otherwise, nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ContextError {
    /// The server did not take a call. If the connection broke, whether the call took effect is not known.
    #[error(transparent)]
    Broker(#[from] meshwork_broker::Error),
    /// There is no connection to the context's database.
    #[error(transparent)]
    Jobs(#[from] Box<crate::Error>),
    /// A record has a field that cannot be read, or that is over its limit.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The table of permissions does not permit it.
    #[error(
        "{0}. docs/permissions.md has the table; an admin grants roles with `meshwork context grant`"
    )]
    Denied(Denied),
    /// No actor has this number.
    #[error("there is no actor {0}: `meshwork actor list` shows the actors of this node")]
    NoActor(ActorId),
    /// An actor has this number.
    #[error("there is an actor {0} already: leave --id out to take the next free number")]
    ActorExists(ActorId),
    /// One key is one actor.
    #[error("this public key is that of actor {0}: one key is one actor")]
    KeyTaken(ActorId),
    /// The key is trusted for nobody.
    #[error(
        "the key {key} is that of no actor of this node: its owner trusts it with `meshwork actor trust {key}`"
    )]
    UnknownKey {
        /// The public key, in hexadecimal digits.
        key: String,
    },
    /// The key counts no more.
    #[error(
        "the key of actor {0} is revoked: its owner makes another with `meshwork actor create`"
    )]
    RevokedKey(ActorId),
    /// A key file cannot be used.
    #[error("the key file {} cannot be used: {why}", path.display())]
    KeyFile {
        /// The file.
        path: PathBuf,
        /// The fault.
        why: KeyFileFault,
    },
    /// A file with a passphrase cannot be used.
    #[error("the passphrase file {} cannot be used: {why}", path.display())]
    PassphraseFile {
        /// The file.
        path: PathBuf,
        /// The fault.
        why: KeyFileFault,
    },
    /// No context has this number.
    #[error("there is no context {0}: `meshwork context list` shows the contexts of this node")]
    NoContext(ContextId),
    /// A context has this number.
    #[error(
        "there is a context {id} already, in the layout {layout}: leave --id out to take the next free number"
    )]
    ContextExists {
        /// Its number.
        id: ContextId,
        /// Its layout.
        layout: ContextLayout,
    },
    /// The database is not a context's.
    #[error(
        "database {0} holds keys that are no context's: take another number, say --layout prefix, or empty the database"
    )]
    DatabaseInUse(u32),
    /// The server has no such database.
    #[error("the server has no database {0}: raise its `databases`, or say --layout prefix")]
    NoDatabase(u32),
    /// The registry and the keys say different things.
    #[error(
        "the registry `mw:contexts` says that context {id} is in the layout {layout}, but its record is not there: \
         restore the record, or take the entry out of the registry (HDEL mw:contexts {id})"
    )]
    NoRecord {
        /// The context.
        id: ContextId,
        /// The layout, as the registry has it.
        layout: ContextLayout,
    },
    /// The registry has a word that is no layout.
    #[error("the registry `mw:contexts` has {word:?} for context {id}: write db or prefix")]
    Registry {
        /// The context.
        id: ContextId,
        /// The word.
        word: String,
    },
    /// The actor has the role already.
    #[error("actor {actor} has that role in context {context} already")]
    HasRole {
        /// The actor.
        actor: ActorId,
        /// The context.
        context: ContextId,
    },
    /// The actor does not have the role.
    #[error("actor {actor} does not have that role in context {context}")]
    LacksRole {
        /// The actor.
        actor: ActorId,
        /// The context.
        context: ContextId,
    },
    /// A context without an admin could never be changed again.
    #[error("actor {actor} is the only admin of context {context}: make another one admin first")]
    LastAdmin {
        /// The actor.
        actor: ActorId,
        /// The context.
        context: ContextId,
    },
    /// Others change the record all the time.
    #[error("others change {0} at the moment: say it again")]
    Busy(String),
    /// All numbers of a kind are taken.
    #[error("no number is left for another {0}")]
    NoNumber(&'static str),
    /// No message has this key.
    #[error("there is no {key} in context {context}: `meshwork message list` shows the messages")]
    NoMessage {
        /// The message.
        key: MessageKey,
        /// The context.
        context: ContextId,
    },
    /// The message has not ended in the time that the caller would wait.
    #[error("{key} in context {context} has not ended; it goes on, wait for it again")]
    NotEnded {
        /// The message.
        key: MessageKey,
        /// The context.
        context: ContextId,
    },
    /// No runner has this number.
    #[error(
        "there is no runner {id} in context {context}: `meshwork runner list` shows the runners"
    )]
    NoRunner {
        /// The runner.
        id: RunnerId,
        /// The context.
        context: ContextId,
    },
    /// A runner has this number.
    #[error("there is a runner {0} already: leave --id out to take the next free number")]
    RunnerExists(RunnerId),
    /// A message that cannot be meant.
    #[error("the message is refused: {0}")]
    InvalidMessage(String),
    /// An envelope could not be made or is not taken.
    #[error(transparent)]
    Envelope(#[from] Refusal),
    /// The server cannot keep users apart.
    #[error(transparent)]
    Acl(#[from] AclRefusal),
}

impl ContextError {
    /// True if a key has the wrong type: a retry fails again.
    pub(super) fn is_of_a_key(&self) -> bool {
        use meshwork_broker::Error as E;
        matches!(
            self,
            Self::Broker(E::WrongKind { .. } | E::WrongType { .. })
        )
    }
}

/// Fault of a key file, or of the file with its passphrase.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyFileFault {
    /// The system does not let us.
    #[error("{0}")]
    System(#[from] std::io::Error),
    /// Others may read it.
    #[error("others may read it (mode {mode:o}): chmod 600")]
    Mode {
        /// Its mode.
        mode: u32,
    },
    /// It is no plain file.
    #[error("it is no file")]
    NoFile,
    /// Its content is no key.
    #[error("{0}")]
    Content(#[from] InvalidKeyFile),
    /// It is not the passphrase of the file.
    #[error(
        "it is encrypted with another passphrase: check MESHWORK_ACTOR_PASSPHRASE_FILE, or type it again"
    )]
    WrongPassphrase,
    /// It is encrypted for keys of `age`.
    #[error("it is encrypted, but not with a passphrase: `age -d` decrypts it with your key")]
    NotByPassphrase,
    /// Its encryption costs too much work.
    #[error(
        "its passphrase costs 2^{cost} steps, and 2^{most} is the most: encrypt it again with `age -p`"
    )]
    Cost {
        /// Base-2 logarithm of its cost.
        cost: u8,
        /// The greatest cost.
        most: u8,
    },
    /// The encrypted file is not as it was written.
    #[error("it was cut or changed: restore it from a copy")]
    Damaged,
    /// It could not be encrypted.
    #[error("it cannot be encrypted: {0}")]
    Encryption(String),
    /// A passphrase that cannot be used.
    #[error("a passphrase is one line of 1 to 1024 bytes without control characters")]
    InvalidPassphrase,
    /// It would be overwritten.
    #[error(
        "it is there already: take another name with --key, or use that key with `meshwork actor trust`"
    )]
    Exists,
}
