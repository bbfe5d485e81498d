//! Keys of Nooble4 (`nooble4:…`), in both of its dialects, and Meshwork's own keys beside them.
//!
//! Names of services, events and contexts are arbitrary text in Nooble4: they are neither checked nor escaped, and
//! `:` is allowed.

use std::fmt;
use std::str::FromStr;

use crate::name::Namespace;
use crate::worker_request::WorkerRequest;

use super::hero::ScriptName;

/// Default environment. (Nooble4's own services start with `ENVIRONMENT=development` by default.)
pub const DEFAULT_ENVIRONMENT: &str = "dev";
/// Placeholder for the id of a call, in the name of a callback list that all calls share.
const ANY_CALL: &str = "00000000-0000-0000-0000-000000000000";

/// One of the two wire formats of Nooble4.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// The format of Nooble4's code: actions in streams with a consumer group.
    #[default]
    Streams,
    /// The format of Nooble4's written standard: actions in lists.
    Lists,
}

impl Dialect {
    /// Returns the word for the dialect.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Streams => "streams",
            Self::Lists => "lists",
        }
    }

    /// Returns the other dialect.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Streams => Self::Lists,
            Self::Lists => Self::Streams,
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An unknown dialect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no dialect of Nooble4: give `streams` or `lists`")]
pub struct UnknownDialect(String);

impl FromStr for Dialect {
    type Err = UnknownDialect;

    fn from_str(word: &str) -> Result<Self, UnknownDialect> {
        let mut all = [Self::Streams, Self::Lists].into_iter();
        all.find(|it| it.as_str() == word)
            .ok_or_else(|| UnknownDialect(word.to_owned()))
    }
}

/// Builds the keys of one deployment of Nooble4.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoobleKeys {
    prefix: Namespace,
    environment: String,
    dialect: Dialect,
}

/// All keys of one queue of actions or callbacks.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct QueueKeys {
    /// The stream, or the list.
    pub queue: String,
    /// Failed messages that wait for a retry (a sorted set by time, milliseconds).
    pub delayed: String,
    /// Prefix of the keys that count a message's failed and lost runs; the message's digest follows.
    pub tries: String,
    /// Meshwork's workers of the queue, by the time at which each counts as dead (a sorted set, milliseconds).
    pub workers: String,
    /// Prefix of the lists of messages in flight; the worker's name follows.
    pub processing: String,
    /// Dead letters (a stream).
    pub dead: String,
}

impl NoobleKeys {
    /// Returns the keys under `prefix` (Nooble4's is `nooble4`) in an environment. `None` and the empty text mean
    /// [`DEFAULT_ENVIRONMENT`].
    #[must_use]
    pub fn new(prefix: Namespace, environment: Option<&str>, dialect: Dialect) -> Self {
        let environment = environment.filter(|it| !it.is_empty());
        Self {
            prefix,
            environment: environment.unwrap_or(DEFAULT_ENVIRONMENT).to_owned(),
            dialect,
        }
    }

    /// Returns the first part of every name.
    #[must_use]
    pub fn prefix(&self) -> &Namespace {
        &self.prefix
    }

    /// Returns the second part of every name.
    #[must_use]
    pub fn environment(&self) -> &str {
        &self.environment
    }

    /// Returns the dialect.
    #[must_use]
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    fn of(&self, service: &str, context: Option<&str>, rest: &str) -> String {
        let (prefix, environment) = (self.prefix.as_str(), self.environment.as_str());
        match context.filter(|it| !it.is_empty()) {
            Some(context) => [prefix, environment, service, context, rest].join(":"),
            None => [prefix, environment, service, rest].join(":"),
        }
    }

    /// Queue of a service's actions: `{service}:streams:main`, or the list `{service}[:{context}]:actions`. (The
    /// context of a stream is Meshwork's: Nooble4's code has none.)
    #[must_use]
    pub fn actions(&self, service: &str, context: Option<&str>) -> String {
        let rest = match self.dialect {
            Dialect::Streams => "streams:main",
            Dialect::Lists => "actions",
        };
        self.of(service, context, rest)
    }

    /// Returns whether a key is one of this deployment. Messages name the list of their reply, and may name any key.
    #[must_use]
    pub fn owns(&self, key: &str) -> bool {
        let after = key.strip_prefix(self.prefix.as_str());
        after.is_some_and(|rest| rest.starts_with(':'))
    }

    /// Returns whether a list has actions of any service. Services of the lists dialect may share the server,
    /// whatever the dialect of this deployment.
    #[must_use]
    pub fn is_actions(&self, list: &str) -> bool {
        list.ends_with(":actions")
    }

    /// The consumer group of a service, the same in all its streams: `{service}-group`.
    #[must_use]
    pub fn group(service: &str) -> String {
        format!("{service}-group")
    }

    /// Reply list of one call. Where calls of a type share a list, its name has an id of the process instead of the
    /// call's.
    #[must_use]
    pub fn response(
        &self,
        client: &str,
        action_type: &str,
        correlation_id: &str,
        context: Option<&str>,
    ) -> String {
        let action_type = self.word(action_type);
        let rest = ["responses", &action_type, correlation_id].join(":");
        self.of(client, context, &rest)
    }

    /// List of the callbacks of one event, or of one call if its id is given. Nooble4's code always writes an id; the
    /// name of a shared list has one of zeros.
    #[must_use]
    pub fn callback(
        &self,
        client: &str,
        event: &str,
        correlation_id: Option<&str>,
        context: Option<&str>,
    ) -> String {
        let rest = match self.dialect {
            Dialect::Streams => {
                let call = correlation_id.unwrap_or(ANY_CALL);
                format!("callbacks:{}:{call}", self.word(event))
            }
            Dialect::Lists => format!("callbacks:{event}"),
        };
        self.of(client, context, &rest)
    }

    /// Channel on which a service publishes an event.
    #[must_use]
    pub fn notifications(&self, origin: &str, event: &str, context: Option<&str>) -> String {
        self.of(origin, context, &format!("notifications:{event}"))
    }

    /// Dead letters of a service's actions: `{service}[:{context}]:actions:dead_letter`.
    #[must_use]
    pub fn dead_letter(&self, service: &str, context: Option<&str>) -> String {
        self.of(service, context, "actions:dead_letter")
    }

    /// Returns all keys of a service's queue of actions.
    #[must_use]
    pub fn action_keys(&self, service: &str, context: Option<&str>) -> QueueKeys {
        let dead = self.dead_letter(service, context);
        Self::beside(self.actions(service, context), dead)
    }

    /// Returns all keys of a list of callbacks: those of an event, or of one call. The lists dialect has no other
    /// place for the call's id, so that the id becomes the context in the name.
    #[must_use]
    pub fn callback_keys(&self, client: &str, event: &str, call: Option<&str>) -> QueueKeys {
        let context = call.filter(|_| self.dialect == Dialect::Lists);
        let list = self.callback(client, event, call, context);
        let dead = format!("{list}:dead_letter");
        Self::beside(list, dead)
    }

    fn beside(queue: String, dead: String) -> QueueKeys {
        QueueKeys {
            delayed: format!("{queue}:mw:delayed"),
            tries: format!("{queue}:mw:tries:"),
            workers: format!("{queue}:mw:workers"),
            processing: format!("{queue}:mw:processing:"),
            dead,
            queue,
        }
    }

    /// Record of a callback that a service waits for, by event and id: its question, and the data to restore.
    #[must_use]
    pub fn pending_callback(&self, client: &str, event: &str, correlation_id: &str) -> String {
        self.of(
            client,
            None,
            &format!("mw:callback:{event}:{correlation_id}"),
        )
    }

    /// Questions and answers of an orchestrator for one task or action (a hash).
    #[must_use]
    pub fn cycle(&self, client: &str, id: &str) -> String {
        self.of(client, None, &format!("mw:cycle:{id}"))
    }

    /// Trace of the actions of all services (a stream).
    #[must_use]
    pub fn trace(&self) -> String {
        let (prefix, environment) = (&self.prefix, &self.environment);
        format!("{prefix}:{environment}:mw:trace")
    }

    /// Request to a running worker, by its name with the incarnation (a string with a time to live).
    #[must_use]
    pub fn worker_request(&self, worker: &str, request: WorkerRequest) -> String {
        let (prefix, environment) = (&self.prefix, &self.environment);
        format!("{prefix}:{environment}:mw:{}", request.name(worker))
    }

    /// Returns names that scripts use without receiving them in each call.
    #[must_use]
    pub fn script_names(&self) -> Vec<ScriptName> {
        // A key that never exists. Scripts read it where a cluster may be moving the slot.
        vec![("LEASES", format!("{}:mw:none", self.prefix))]
    }

    /// Returns an action type or an event as a part of a name. The streams dialect writes `_` for its dots.
    fn word(&self, text: &str) -> String {
        match self.dialect {
            Dialect::Streams => text.replace('.', "_"),
            Dialect::Lists => text.to_owned(),
        }
    }
}

impl QueueKeys {
    /// List of one worker's messages in flight.
    #[must_use]
    pub fn processing_of(&self, worker: &str) -> String {
        format!("{}{worker}", self.processing)
    }
}

/// Returns the service of an action type: the part before its first dot.
#[must_use]
pub fn service_of(action_type: &str) -> &str {
    action_type.split('.').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(dialect: Dialect) -> NoobleKeys {
        NoobleKeys::new(Namespace::nooble(), None, dialect)
    }

    #[test]
    fn dead_letters_stand_where_the_seed_says() {
        for dialect in [Dialect::Streams, Dialect::Lists] {
            let names = names(dialect);
            let dead = names.dead_letter("management", None);
            assert_eq!(dead, "nooble4:dev:management:actions:dead_letter");
            let dead = names.action_keys("management", Some("t1")).dead;
            assert_eq!(dead, "nooble4:dev:management:t1:actions:dead_letter");
        }
    }

    #[test]
    fn a_list_that_calls_share_looks_like_one_of_a_call() {
        let event = "ingestion.embedding_result";
        let shared = names(Dialect::Streams).callback("i", event, None, None);
        let expected = format!("nooble4:dev:i:callbacks:ingestion_embedding_result:{ANY_CALL}");
        assert_eq!(shared, expected);
        let shared = names(Dialect::Lists).callback("i", event, None, None);
        assert_eq!(shared, "nooble4:dev:i:callbacks:ingestion.embedding_result");
    }

    #[test]
    fn a_stream_may_have_a_context_and_keeps_its_group() {
        let stream = names(Dialect::Streams).actions("a", Some("t1"));
        assert_eq!(stream, "nooble4:dev:a:t1:streams:main");
        assert_eq!(NoobleKeys::group("a"), "a-group");
    }

    #[test]
    fn a_list_of_actions_is_known_by_its_name() {
        let of_lists = names(Dialect::Lists);
        for names in [&of_lists, &names(Dialect::Streams)] {
            assert!(names.is_actions(&of_lists.actions("a", None)));
            assert!(names.is_actions(&of_lists.actions("a", Some("t1"))));
        }
        let names = of_lists;
        for other in [
            names.callback("a", "done", None, None),
            names.response("a", "b.actions", "id", None),
            names.dead_letter("a", None),
        ] {
            assert!(!names.is_actions(&other), "{other}");
        }
    }

    #[test]
    fn our_own_keys_are_none_of_theirs() {
        let names = names(Dialect::Streams);
        let keys = names.action_keys("a", None);
        for own in [&keys.delayed, &keys.tries, &keys.workers, &keys.processing] {
            assert!(own.starts_with("nooble4:dev:a:streams:main:mw:"), "{own}");
        }
        assert!(keys.processing_of("w").ends_with(":mw:processing:w"));
        assert!(names.trace().starts_with("nooble4:dev:mw:"));
        assert!(
            names
                .pending_callback("a", "e", "c")
                .contains(":a:mw:callback:")
        );
        assert!(names.cycle("a", "t").contains(":a:mw:cycle:"));
    }

    #[test]
    fn a_dialect_is_a_word() {
        assert_eq!("lists".parse(), Ok(Dialect::Lists));
        assert_eq!("streams".parse(), Ok(Dialect::default()));
        let said = "kafka".parse::<Dialect>().unwrap_err().to_string();
        assert!(
            said.contains("kafka") && said.contains("`streams`"),
            "{said}"
        );
    }

    #[test]
    fn a_service_is_the_first_word_of_a_type() {
        assert_eq!(["a.b.c", "a", ".b"].map(service_of), ["a", "a", ""]);
    }
}
