//! Meshwork's own keys in a context, all under `mw:`.

use super::{ContextKeys, FlowId, MessageKey};
use crate::name::ScheduleName;

/// Counters of a context, one for each kind of object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Counter {
    /// Flows.
    Flow,
    /// Jobs, of all callers.
    Job,
    /// Messages, of all callers.
    Message,
    /// Runners.
    Runner,
}

impl Counter {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Flow, Self::Job, Self::Message, Self::Runner];

    /// The word in the key.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Flow => "flow",
            Self::Job => "job",
            Self::Message => "message",
            Self::Runner => "runner",
        }
    }
}

impl ContextKeys {
    /// Returns one of Meshwork's own keys.
    pub(in crate::keys) fn own(&self, name: &str) -> String {
        self.named(format_args!("mw:{name}"))
    }

    /// Open gates (a set of their names): `mw:gates`.
    #[must_use]
    pub fn gates(&self) -> String {
        self.own("gates")
    }

    /// Last number of an object of this kind (a string): `mw:id:{kind}`.
    #[must_use]
    pub fn next_id(&self, counter: Counter) -> String {
        self.own(&format!("id:{}", counter.as_str()))
    }

    /// Keys of all objects of a kind, by the time at which they were created (a sorted set, seconds): `mw:index:{kind}`.
    /// A user who may not scan lists objects by it. It may lack objects of plain clients that no script has seen yet.
    #[must_use]
    pub fn index(&self, counter: Counter) -> String {
        self.own(&format!("index:{}", counter.as_str()))
    }

    /// Last sign of life of each runner with a worker (a hash: number, milliseconds): `mw:runners-seen`.
    #[must_use]
    pub fn runners_seen(&self) -> String {
        self.own("runners-seen")
    }

    /// Audit trail of changes to the context (a stream, bounded): `mw:audit`.
    #[must_use]
    pub fn audit(&self) -> String {
        self.own("audit")
    }

    /// Refused requests, counted by minute and author (a hash, bounded): `mw:refused`.
    #[must_use]
    pub fn refused(&self) -> String {
        self.own("refused")
    }

    /// Messages that the coordinator has claimed, by the end of the lease (a sorted set, milliseconds):
    /// `mw:outbound`.
    #[must_use]
    pub fn outbound(&self) -> String {
        self.own("outbound")
    }

    /// Messages of this context that are not final, by the time of the next check of their timeouts (a sorted set,
    /// milliseconds): `mw:sent`.
    #[must_use]
    pub fn sent(&self) -> String {
        self.own("sent")
    }

    /// Job messages that were acknowledged here and not answered, by the time of the next check of their jobs (a
    /// sorted set, milliseconds; 0 after the end of a job): `mw:open`. One that could not be taken up waits there too.
    #[must_use]
    pub fn open(&self) -> String {
        self.own("open")
    }

    /// Chat and mail that was read here by a user who may not notify the sender, by the time (a sorted set, milliseconds);
    /// the coordinator notifies it: `mw:letters`.
    #[must_use]
    pub fn letters(&self) -> String {
        self.own("letters")
    }

    /// Key of the stored message of this origin, kept for as long as the message can arrive again (a string):
    /// `mw:origin:{origin}`.
    #[must_use]
    pub fn origin(&self, origin: &str) -> String {
        self.own(&format!("origin:{origin}"))
    }

    /// Key of the result of this message, whose nonce distinguishes it from others with its number; kept for as long
    /// as a result can arrive (a string): `mw:answer:{caller}:{id}:{nonce}`.
    #[must_use]
    pub fn answer(&self, message: MessageKey, nonce: &str) -> String {
        self.own(&format!("answer:{}:{nonce}", message.numbers()))
    }

    /// Messages of this context, sent and received, by the time of their deletion (a sorted set, milliseconds):
    /// `mw:messages`.
    #[must_use]
    pub fn messages(&self) -> String {
        self.own("messages")
    }

    /// Jobs that run, by the end of their lease (a sorted set, milliseconds): `mw:lease`.
    #[must_use]
    pub fn lease(&self) -> String {
        self.own("lease")
    }

    /// Registered prefetch lists, by the time at which their worker counts as dead (a sorted set, milliseconds):
    /// `mw:feeds`.
    #[must_use]
    pub fn prefetch_registry(&self) -> String {
        self.own("feeds")
    }

    /// Returns the prefix of prefetch lists; a member of [`Self::prefetch_registry`] follows: `mw:feed:`.
    #[must_use]
    pub fn prefetch_prefix(&self) -> String {
        self.own("feed:")
    }

    /// Delayed jobs, by due time (a sorted set, milliseconds): `mw:delayed`.
    #[must_use]
    pub fn delayed(&self) -> String {
        self.own("delayed")
    }

    /// Dead letters, by time of failure (a sorted set, milliseconds): `mw:dead`.
    #[must_use]
    pub fn dead(&self) -> String {
        self.own("dead")
    }

    /// Other ended jobs, by time of their end, for retention (a sorted set, milliseconds): `mw:ended`.
    #[must_use]
    pub fn ended(&self) -> String {
        self.own("ended")
    }

    /// Jobs with a check at a certain time (a sorted set, milliseconds): `mw:watch`.
    #[must_use]
    pub fn watch(&self) -> String {
        self.own("watch")
    }

    /// The beginning of the key of each flow's record: `flow:`.
    pub(in crate::keys) fn flow_prefix(&self) -> String {
        self.named("flow:")
    }

    /// The beginning of all other keys of a flow: `mw:flow:`.
    pub(in crate::keys) fn flow_part_prefix(&self) -> String {
        self.own("flow:")
    }

    /// A part of a flow: `plan` (a string), `names` (a hash from names to numbers of jobs), or `nodes` (a hash from places
    /// in the plan to how far the job there is): `mw:flow:{id}:{part}`.
    #[must_use]
    pub fn flow_part(&self, id: FlowId, part: &str) -> String {
        format!("{}{id}:{part}", self.flow_part_prefix())
    }

    /// All flows, by the time at which they were submitted (a sorted set, milliseconds): `mw:flows`.
    #[must_use]
    pub fn flows(&self) -> String {
        self.own("flows")
    }

    /// Flows that have not ended, by when somebody looks at them next, or by the end of the lease of who does (a sorted
    /// set, milliseconds): `mw:flows-due`.
    #[must_use]
    pub fn flows_due(&self) -> String {
        self.own("flows-due")
    }

    /// Deployed flows, by the time of their latest deployment (a sorted set, milliseconds): `mw:deployed`.
    #[must_use]
    pub fn deployed_flows(&self) -> String {
        self.own("deployed")
    }

    /// A deployed flow with its plan, a hash: `mw:deployed:{name}`.
    #[must_use]
    pub fn deployed_flow(&self, name: &ScheduleName) -> String {
        self.own(&format!("deployed:{name}"))
    }

    /// Wakes a worker to look at flows (a list): `queue:flow`.
    #[must_use]
    pub fn flow_queue(&self) -> String {
        self.named("queue:flow")
    }

    /// Events of jobs (a stream, bounded): `mw:events`.
    #[must_use]
    pub fn events(&self) -> String {
        self.own("events")
    }

    /// Limits of queues and settings of the context (a hash): `mw:config`.
    #[must_use]
    pub fn config(&self) -> String {
        self.own("config")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::context::{ContextId, ContextLayout};

    fn keys(layout: ContextLayout) -> ContextKeys {
        ContextKeys::new(ContextId::new(7).unwrap(), layout)
    }

    #[test]
    fn our_own_keys_stand_after_the_prefix() {
        let db = keys(ContextLayout::Db);
        let names = [
            (db.lease(), "mw:lease"),
            (db.prefetch_registry(), "mw:feeds"),
            (db.prefetch_prefix(), "mw:feed:"),
            (db.delayed(), "mw:delayed"),
            (db.dead(), "mw:dead"),
            (db.ended(), "mw:ended"),
            (db.watch(), "mw:watch"),
            (db.events(), "mw:events"),
            (db.audit(), "mw:audit"),
            (db.refused(), "mw:refused"),
            (db.config(), "mw:config"),
            (db.next_id(Counter::Job), "mw:id:job"),
            (db.gates(), "mw:gates"),
        ];
        for (key, expected) in names {
            assert_eq!(key, expected);
        }
        let prefix = keys(ContextLayout::Prefix);
        assert_eq!(prefix.next_id(Counter::Flow), "{ctx:7}:mw:id:flow");
    }
}
