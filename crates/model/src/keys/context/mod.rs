//! The keys of contexts, in both layouts, and those of the node.
//!
//! * `db`: the plain names (`job:12:2001`, `queue:python`), in the database that has the context's number.
//! * `prefix`: the same names after `{ctx:7}:`, in database 0. The hash tag keeps them in one slot of a Cluster, and
//!   ACL rules of Redis can select them.
//!
//! Elements of lists are whole keys in both layouts. Meshwork's own keys (`own`) begin with `mw:` after the same
//! prefix.

mod id;
mod own;
mod parse;

use std::fmt;
use std::str::FromStr;

use crate::name::JobId;
use crate::route::{Listen, Route};

pub use id::{
    ActorId, ContextId, FlowId, IdFault, InvalidId, InvalidKey, JobKey, MessageKey, RunnerId,
};
pub use own::Counter;
pub use parse::{
    ElementError, ElementFault, InvalidPrerequisite, MAX_ELEMENT, MAX_GATE, Prerequisite,
};

/// Number of characters that an error shows of a foreign text: enough to find it, too few to fill a log.
const SHOWN: usize = 80;

/// Returns foreign bytes as an error shows them.
fn shown(bytes: &[u8]) -> String {
    // A character has at most four bytes.
    let start = &bytes[..bytes.len().min(SHOWN * 4)];
    String::from_utf8_lossy(start).chars().take(SHOWN).collect()
}

/// Layout of a context's keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ContextLayout {
    /// Plain names in the context's own database.
    Db,
    /// Names after `{ctx:N}:` in database 0.
    Prefix,
}

/// An unknown layout.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no layout of a context: db or prefix")]
pub struct UnknownLayout {
    /// The text, shortened.
    pub text: String,
}

impl ContextLayout {
    /// Both layouts.
    pub const ALL: [Self; 2] = [Self::Db, Self::Prefix];

    /// Returns the word in the registry of contexts.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Db => "db",
            Self::Prefix => "prefix",
        }
    }
}

impl fmt::Display for ContextLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for ContextLayout {
    type Err = UnknownLayout;

    fn from_str(text: &str) -> Result<Self, UnknownLayout> {
        let found = Self::ALL.into_iter().find(|it| it.as_str() == text);
        found.ok_or_else(|| UnknownLayout {
            text: shown(text.as_bytes()),
        })
    }
}

/// Keys that belong to no context, all in database 0. On a Cluster they begin with the hash tag `{mw}:`, so that they
/// share a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeKeys {
    /// Prefix of every key; empty except on a Cluster.
    prefix: &'static str,
}

impl NodeKeys {
    /// The database of the node.
    pub const DATABASE: u32 = 0;
    /// The keys of a single server.
    pub const PLAIN: Self = Self { prefix: "" };
    /// The keys of a Cluster.
    pub const TAGGED: Self = Self { prefix: "{mw}:" };

    /// Returns the prefix of every key.
    #[must_use]
    pub const fn prefix(self) -> &'static str {
        self.prefix
    }

    /// Returns the name of a key of [`Self::PLAIN`] among these keys.
    #[must_use]
    pub fn moved(self, plain: &str) -> String {
        self.named(plain)
    }

    /// State of the move of a single server's keys, a hash: `mw:moving`.
    #[must_use]
    pub fn moving(self) -> String {
        self.named("mw:moving")
    }

    fn named(self, name: impl fmt::Display) -> String {
        format!("{}{name}", self.prefix)
    }

    /// An actor, a hash: `actor:{id}`.
    #[must_use]
    pub fn actor(self, id: ActorId) -> String {
        self.named(format_args!("actor:{id}"))
    }

    /// Returns the prefix of all actors' records: `actor:`.
    #[must_use]
    pub fn actor_prefix(self) -> String {
        self.named("actor:")
    }

    /// Registry of all contexts, a hash from a context's id to its layout: `mw:contexts`.
    #[must_use]
    pub fn contexts(self) -> String {
        self.named("mw:contexts")
    }

    /// Spread queues, a hash from the name of each to its parts (JSON): `mw:spreads`.
    #[must_use]
    pub fn spreads(self) -> String {
        self.named("mw:spreads")
    }

    /// The counter of actors, a string: `mw:id:actor`.
    #[must_use]
    pub fn next_actor(self) -> String {
        self.named("mw:id:actor")
    }

    /// Numbers of all actors by public key, a hash: `mw:actors`. One key is one actor.
    #[must_use]
    pub fn actors(self) -> String {
        self.named("mw:actors")
    }

    /// Identity of this node, a hash with 64 hexadecimal digits as `id`: `mw:node`.
    #[must_use]
    pub fn identity(self) -> String {
        self.named("mw:node")
    }

    /// Nodes that this node knows by name, a hash from the name to the node: `mw:peers`.
    #[must_use]
    pub fn peers(self) -> String {
        self.named("mw:peers")
    }

    /// A node that this node knows, a hash: `mw:peer:{node}`.
    #[must_use]
    pub fn peer(self, node: impl fmt::Display) -> String {
        self.named(format_args!("mw:peer:{node}"))
    }

    /// Entries to be sent to a node, by the time of the next attempt (a sorted set, milliseconds): `mw:peer-out:{node}`.
    #[must_use]
    pub fn peer_outbox(self, node: impl fmt::Display) -> String {
        self.named(format_args!("mw:peer-out:{node}"))
    }

    /// Messages of a node that are stored here and not processed, a sorted set: `mw:peer-in:{node}`.
    #[must_use]
    pub fn peer_held(self, node: impl fmt::Display) -> String {
        self.named(format_args!("mw:peer-in:{node}"))
    }

    /// Numbers of refused frames and messages of other nodes, a hash from `{node}/{code}` to the number: `mw:mesh-refused`.
    /// Those of no known node have no node.
    #[must_use]
    pub fn mesh_refused(self) -> String {
        self.named("mw:mesh-refused")
    }

    /// Lease of the process that exchanges frames with other nodes, a hash: `mw:mesh`.
    #[must_use]
    pub fn mesh(self) -> String {
        self.named("mw:mesh")
    }

    /// Audit trail of changes to actors and the registry (a stream, bounded): `mw:audit`.
    #[must_use]
    pub fn audit(self) -> String {
        self.named("mw:audit")
    }

    /// Refused messages of other nodes, counted by minute and author (a hash, bounded): `mw:refused`.
    #[must_use]
    pub fn refused(self) -> String {
        self.named("mw:refused")
    }

    /// Returns names that scripts use without receiving them in each call. These scripts declare all their keys, so
    /// this one is never read.
    #[must_use]
    pub fn script_names() -> Vec<(&'static str, String)> {
        vec![("LEASES", "mw:none".to_owned())]
    }
}

/// Builds the keys of one context.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ContextKeys {
    context: ContextId,
    layout: ContextLayout,
    /// Prefix of every key; empty in the layout `db`.
    prefix: String,
}

impl ContextKeys {
    /// Returns the keys of `context` in `layout`.
    #[must_use]
    pub fn new(context: ContextId, layout: ContextLayout) -> Self {
        let prefix = match layout {
            ContextLayout::Db => String::new(),
            ContextLayout::Prefix => format!("{{ctx:{context}}}:"),
        };
        Self {
            context,
            layout,
            prefix,
        }
    }

    /// Returns the context that a key of the layout `prefix` names.
    #[must_use]
    pub fn named_in(key: &str) -> Option<ContextId> {
        let rest = key.strip_prefix("{ctx:")?;
        let (id, _) = rest.split_once("}:")?;
        id.parse().ok()
    }

    /// Returns the name of the queue of a list, in either layout; none for other keys.
    #[must_use]
    pub fn queue_name_in(key: &str) -> Option<&str> {
        let rest = key.strip_prefix("{ctx:").and_then(|it| it.split_once("}:"));
        rest.map_or(key, |(_, rest)| rest).strip_prefix("queue:")
    }

    /// Returns the context of the keys.
    #[must_use]
    pub const fn context(&self) -> ContextId {
        self.context
    }

    /// Returns the layout of the keys.
    #[must_use]
    pub const fn layout(&self) -> ContextLayout {
        self.layout
    }

    /// Returns the database that has the keys.
    #[must_use]
    pub const fn database(&self) -> u32 {
        match self.layout {
            ContextLayout::Db => self.context.get(),
            ContextLayout::Prefix => NodeKeys::DATABASE,
        }
    }

    /// Returns the prefix of every key: empty, or `{ctx:7}:`.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    pub(in crate::keys) fn named(&self, name: impl fmt::Display) -> String {
        format!("{}{name}", self.prefix)
    }

    /// The context's own record, a hash: `context:7`.
    #[must_use]
    pub fn record(&self) -> String {
        self.named(format_args!("context:{}", self.context))
    }

    /// A flow, a hash: `flow:{id}`.
    #[must_use]
    pub fn flow(&self, id: FlowId) -> String {
        self.named(format_args!("flow:{id}"))
    }

    /// A runner, a hash: `runner:{id}`.
    #[must_use]
    pub fn runner(&self, id: RunnerId) -> String {
        self.named(format_args!("runner:{id}"))
    }

    /// A job, a hash: `job:{caller}:{id}`. The key is also the element on lists and the id in the scripts.
    #[must_use]
    pub fn job(&self, key: JobKey) -> String {
        self.named(key)
    }

    /// The same key as an id of the scripts.
    #[must_use]
    pub fn job_id(&self, key: JobKey) -> JobId {
        JobId::foreign(self.job(key))
    }

    /// A message, a hash: `message:{caller}:{id}`. The key is also the element on lists.
    #[must_use]
    pub fn message(&self, key: MessageKey) -> String {
        self.named(key)
    }

    /// Returns the prefix of a caller's messages, before a number: `message:{caller}:`.
    #[must_use]
    pub fn message_prefix(&self, caller: ActorId) -> String {
        self.named(format_args!("message:{caller}:"))
    }

    /// Returns the prefix of all messages: `message:`.
    #[must_use]
    pub fn messages_prefix(&self) -> String {
        self.named("message:")
    }

    /// Returns the prefix of a caller's jobs, before a number: `job:{caller}:`.
    #[must_use]
    pub fn job_prefix(&self, caller: ActorId) -> String {
        self.named(format_args!("job:{caller}:"))
    }

    /// Returns the prefix of all runners, before a number: `runner:`.
    #[must_use]
    pub fn runner_prefix(&self) -> String {
        self.named("runner:")
    }

    /// Returns the prefix of all queues: `queue:`.
    #[must_use]
    pub fn work_prefix(&self) -> String {
        self.named("queue:")
    }

    /// The list that a job's key is pushed to: `queue:python`, `queue:python:group:io:prio:0`.
    #[must_use]
    pub fn queue(&self, route: &Route) -> String {
        format!("{}{}", self.work_prefix(), route.suffix())
    }

    /// Returns the lists that a worker claims from, in the order of [`Listen::queues`].
    #[must_use]
    pub fn queues(&self, listen: &Listen) -> Vec<Vec<String>> {
        listen.queues_under(&self.work_prefix())
    }

    /// Keys of messages that actors send, a list: `msg_out`.
    #[must_use]
    pub fn msg_out(&self) -> String {
        self.named("msg_out")
    }

    /// Keys of messages that the coordinator has claimed and not yet passed to the transport, a list:
    /// `msg_out_coordinator`.
    #[must_use]
    pub fn msg_out_coordinator(&self) -> String {
        self.named("msg_out_coordinator")
    }

    /// Keys of results, chat and mail that arrived, a list: `msg_in`.
    #[must_use]
    pub fn msg_in(&self) -> String {
        self.named("msg_in")
    }

    /// Keys of job messages that arrived, a list: `msg_in:7`.
    #[must_use]
    pub fn msg_in_jobs(&self) -> String {
        self.named(format_args!("msg_in:{}", self.context))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::Priority;

    fn keys(layout: ContextLayout) -> ContextKeys {
        ContextKeys::new(ContextId::new(7).unwrap(), layout)
    }

    /// The catalogue of objects and queues, by its own examples.
    fn catalogue(keys: &ContextKeys) -> Vec<String> {
        let python = Route::to("python".parse().unwrap());
        vec![
            keys.record(),
            keys.flow(FlowId(33)),
            keys.message(MessageKey::new(12, 101)),
            keys.runner(RunnerId(20)),
            keys.job(JobKey::new(12, 2001)),
            keys.msg_out(),
            keys.msg_out_coordinator(),
            keys.msg_in(),
            keys.msg_in_jobs(),
            keys.queue(&python),
        ]
    }

    const CATALOGUE: [&str; 10] = [
        "context:7",
        "flow:33",
        "message:12:101",
        "runner:20",
        "job:12:2001",
        "msg_out",
        "msg_out_coordinator",
        "msg_in",
        "msg_in:7",
        "queue:python",
    ];

    #[test]
    fn the_catalogue_in_a_database_of_its_own() {
        let keys = keys(ContextLayout::Db);
        assert_eq!(catalogue(&keys), CATALOGUE);
        assert_eq!(keys.database(), 7);
    }

    #[test]
    fn the_catalogue_after_a_prefix() {
        let keys = keys(ContextLayout::Prefix);
        let expected = CATALOGUE.map(|name| format!("{{ctx:7}}:{name}"));
        assert_eq!(catalogue(&keys), expected);
        assert_eq!(keys.database(), 0);
    }

    #[test]
    fn the_node_has_names_of_its_own() {
        assert_eq!(NodeKeys::PLAIN.actor(ActorId(12)), "actor:12");
        assert_eq!(NodeKeys::PLAIN.contexts(), "mw:contexts");
        assert_eq!(NodeKeys::TAGGED.actor(ActorId(12)), "{mw}:actor:12");
        assert_eq!(NodeKeys::TAGGED.contexts(), "{mw}:mw:contexts");
    }

    #[test]
    fn queues_have_groups_instances_and_priorities() {
        let route = Route {
            group: Some("io".parse().unwrap()),
            priority: Priority::High,
            ..Route::to("python".parse().unwrap())
        };
        let db = keys(ContextLayout::Db);
        assert_eq!(db.queue(&route), "queue:python:group:io:prio:0");
        let route = Route {
            instance: Some("3".parse().unwrap()),
            ..route
        };
        assert_eq!(db.queue(&route), "queue:python:group:io:inst:3:prio:0");
        let listen = Listen {
            script_type: "v".parse().unwrap(),
            group: "io".parse().unwrap(),
            instance: None,
            routes: None,
        };
        let queues = keys(ContextLayout::Prefix).queues(&listen).concat();
        assert_eq!(queues[0], "{ctx:7}:queue:v:group:io:prio:0");
        let name = Some("v:group:io:prio:0");
        assert_eq!(ContextKeys::queue_name_in(&queues[0]), name);
        assert_eq!(ContextKeys::queue_name_in("queue:v:group:io:prio:0"), name);
        assert_eq!(ContextKeys::queue_name_in("job:1:1"), None);
        assert!(queues.contains(&"{ctx:7}:queue:v".to_owned()));
    }

    #[test]
    fn a_layout_is_a_word() {
        for layout in ContextLayout::ALL {
            assert_eq!(layout.as_str().parse(), Ok(layout));
        }
        let error = "DB".parse::<ContextLayout>().unwrap_err();
        assert!(error.to_string().contains("db or prefix"), "{error}");
    }
}
