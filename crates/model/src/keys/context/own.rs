//! Keys of our own in a context, all under `mw:`.

use super::ContextKeys;

/// What the objects of a context are numbered by, one counter for each kind.
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
    /// All of them.
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
    /// What every key of our own begins with: `mw:`.
    #[must_use]
    pub fn own_prefix(&self) -> String {
        self.named("mw:")
    }

    /// A key of our own.
    pub(in crate::keys) fn own(&self, name: &str) -> String {
        self.named(format_args!("mw:{name}"))
    }

    /// The gates that are open (a set of their names): `mw:gates`.
    #[must_use]
    pub fn gates(&self) -> String {
        self.own("gates")
    }

    /// The number that was given last to an object of a kind (a string): `mw:id:{kind}`.
    #[must_use]
    pub fn next_id(&self, counter: Counter) -> String {
        self.own(&format!("id:{}", counter.as_str()))
    }

    /// Every change to the context (a stream, bounded): `mw:audit`.
    #[must_use]
    pub fn audit(&self) -> String {
        self.own("audit")
    }

    /// Messages that the coordinator has taken, by the time at which its lease ends (a sorted set, milliseconds):
    /// `mw:outbound`.
    #[must_use]
    pub fn outbound(&self) -> String {
        self.own("outbound")
    }

    /// Messages of this context that have no end yet, by when somebody looks at their timeouts (a sorted set,
    /// milliseconds): `mw:sent`.
    #[must_use]
    pub fn sent(&self) -> String {
        self.own("sent")
    }

    /// Job messages that were taken up here and not answered, by when somebody looks at their jobs (a sorted set,
    /// milliseconds): `mw:open`.
    #[must_use]
    pub fn open(&self) -> String {
        self.own("open")
    }

    /// The key under which a message of this origin is stored here, for as long as it can come again (a string):
    /// `mw:origin:{origin}`.
    #[must_use]
    pub fn origin(&self, origin: &str) -> String {
        self.own(&format!("origin:{origin}"))
    }

    /// The jobs that run, by the time at which their lease ends (a sorted set, milliseconds): `mw:lease`.
    #[must_use]
    pub fn lease(&self) -> String {
        self.own("lease")
    }

    /// Workers that wait on a queue, by when they count as gone (a sorted set, milliseconds): `mw:feeds`.
    #[must_use]
    pub fn feeds(&self) -> String {
        self.own("feeds")
    }

    /// What every feed list begins with; a member of [`Self::feeds`] follows: `mw:feed:`.
    #[must_use]
    pub fn feed_prefix(&self) -> String {
        self.own("feed:")
    }

    /// Jobs that wait for their next run, by when it is due (a sorted set, milliseconds): `mw:delayed`.
    #[must_use]
    pub fn delayed(&self) -> String {
        self.own("delayed")
    }

    /// Dead letters: jobs that failed for good, by time (a sorted set, milliseconds): `mw:dead`.
    #[must_use]
    pub fn dead(&self) -> String {
        self.own("dead")
    }

    /// All other jobs that ended, by time, for retention (a sorted set, milliseconds): `mw:ended`.
    #[must_use]
    pub fn ended(&self) -> String {
        self.own("ended")
    }

    /// Jobs that somebody has to look at by a certain time (a sorted set, milliseconds): `mw:watch`.
    #[must_use]
    pub fn watch(&self) -> String {
        self.own("watch")
    }

    /// What happened to jobs (a stream, bounded): `mw:events`.
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
            (db.feeds(), "mw:feeds"),
            (db.feed_prefix(), "mw:feed:"),
            (db.delayed(), "mw:delayed"),
            (db.dead(), "mw:dead"),
            (db.ended(), "mw:ended"),
            (db.watch(), "mw:watch"),
            (db.events(), "mw:events"),
            (db.audit(), "mw:audit"),
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
