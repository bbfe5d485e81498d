//! A server with a service, and what another program would see there.

use std::time::Duration;

use meshwork::protocol::nooble::{ActionContext, Client, Request, Service, ServiceHandle};
use meshwork::{Target, TlsFiles};
use meshwork_broker::nooble::Nooble;
use meshwork_model::keys::nooble::{Dialect, NoobleKeys};
use meshwork_model::name::Namespace;
use meshwork_model::nooble::TraceEvent;
use meshwork_test_servers::eventually;
use meshwork_test_servers::servers::{FreshDatabase, Tool, shared};
use serde_json::{Value, json};

/// Timeout of each step, also on a busy machine.
pub(crate) const BOUND: Duration = Duration::from_secs(60);
/// A lease that tests can wait for.
pub(crate) const LEASE: Duration = Duration::from_secs(1);
/// A pause that tests can wait for.
pub(crate) const PAUSE: Duration = Duration::from_millis(20);

/// A database of its own, and the names of one dialect.
pub(crate) struct Ground {
    pub(crate) dialect: Dialect,
    pub(crate) broker: Nooble,
    pub(crate) tester: Client,
    pub(crate) demo: Client,
    database: FreshDatabase,
}

impl Ground {
    pub(crate) async fn open(dialect: Dialect) -> Option<Self> {
        let database = shared(Tool::Redis)?;
        let names = NoobleKeys::new(Namespace::nooble(), None, dialect);
        let target = Target::parse(&database.url(), TlsFiles::default()).unwrap();
        let broker = Nooble::connect(&target, names).await.unwrap();
        Some(Self {
            dialect,
            tester: Client::new(broker.clone(), "tester"),
            demo: Client::new(broker.clone(), "demo"),
            broker,
            database,
        })
    }

    /// One for each dialect.
    pub(crate) async fn both() -> Vec<Self> {
        let mut both = Vec::new();
        for dialect in [Dialect::Streams, Dialect::Lists] {
            both.extend(Self::open(dialect).await);
        }
        both
    }

    pub(crate) fn url(&self) -> String {
        self.database.url()
    }

    pub(crate) fn is_stream(&self) -> bool {
        self.dialect == Dialect::Streams
    }

    /// The queue of the service `demo`.
    pub(crate) fn queue(&self) -> String {
        self.broker.names().actions("demo", None)
    }

    /// The service `demo` with `demo.echo`, which gives what it is given, and `demo.fail`; what fails has a second run.
    pub(crate) fn service(&self) -> Service {
        let echo = async |data: Value, _: ActionContext| Ok::<_, String>(json!({ "echo": data }));
        let fail = async |_: Value, _: ActionContext| Err::<(), _>("boom");
        Service::new(&self.demo)
            .handle("demo.echo", echo)
            .handle("demo.fail", fail)
            .max_attempts(2)
            .backoff(PAUSE, PAUSE)
            .lease(LEASE)
    }

    pub(crate) async fn started(&self) -> ServiceHandle {
        let service = self.service().start().await.unwrap();
        service.registered().await;
        service
    }

    /// The trace events of ended runs, once there are `N`; the latest first, but nearly simultaneous ones in any
    /// order.
    pub(crate) async fn traced<const N: usize>(&self) -> [TraceEvent<'static>; N] {
        let all = async || {
            let entries = self.broker.traced(None, N + 1).await.unwrap();
            let event = entries.into_iter().filter_map(|(_, event)| event);
            event.collect::<Vec<_>>().try_into().ok()
        };
        eventually(&format!("{N} runs have ended"), BOUND, all).await
    }

    pub(crate) async fn say<T: redis::FromRedisValue>(&self, words: &[&str]) -> T {
        let said = self.try_to_say(words).await;
        said.unwrap_or_else(|error| panic!("{words:?}: {error}"))
    }

    /// The same, for what may be refused at the moment.
    pub(crate) async fn try_to_say<T: redis::FromRedisValue>(
        &self,
        words: &[&str],
    ) -> redis::RedisResult<T> {
        let client = redis::Client::open(self.url()).unwrap();
        let mut raw = client.get_multiplexed_async_connection().await.unwrap();
        let mut cmd = redis::Cmd::new();
        cmd.arg(words).query_async(&mut raw).await
    }

    /// The ids of the connections to this database that wait for a message.
    pub(crate) async fn waiting(&self) -> Vec<String> {
        let waits = ["xreadgroup", "blmove"];
        self.database.blocked_in(&waits).await.unwrap()
    }

    /// Puts a message where the service finds it, as it stands.
    pub(crate) async fn put(&self, message: &[u8]) {
        let client = redis::Client::open(self.url()).unwrap();
        let mut raw = client.get_multiplexed_async_connection().await.unwrap();
        let mut cmd = redis::Cmd::new();
        match self.is_stream() {
            true => cmd.arg("XADD").arg(self.queue()).arg("*").arg("data"),
            false => cmd.arg("LPUSH").arg(self.queue()),
        };
        let put: Result<redis::Value, _> = cmd.arg(message).query_async(&mut raw).await;
        put.unwrap();
    }

    /// The messages that stand in a queue of actions, the oldest first.
    pub(crate) async fn standing(&self, queue: &str) -> Vec<String> {
        if self.is_stream() {
            let entries: Vec<(String, Vec<String>)> = self.say(&["XRANGE", queue, "-", "+"]).await;
            return entries.into_iter().map(|mut one| one.1.remove(1)).collect();
        }
        let mut all: Vec<String> = self.say(&["LRANGE", queue, "0", "-1"]).await;
        all.reverse();
        all
    }

    /// The next message of a list, when it is there.
    pub(crate) async fn popped(&self, list: &str) -> String {
        eventually("a message comes", BOUND, async || {
            self.say::<Option<String>>(&["RPOP", list]).await
        })
        .await
    }

    /// The dead letters of the service: the error and the message.
    pub(crate) async fn dead(&self) -> Vec<(String, Vec<u8>)> {
        let source = self.broker.actions("demo", None);
        let dead = self.broker.dead(&source, None, 100).await.unwrap();
        dead.letters
            .into_iter()
            .map(|one| (one.error, one.message))
            .collect()
    }

    /// Returns when so many dead letters are there.
    pub(crate) async fn buried(&self, many: usize) -> Vec<(String, Vec<u8>)> {
        eventually("there are dead letters", BOUND, async || {
            Some(self.dead().await).filter(|dead| dead.len() == many)
        })
        .await
    }

    /// Returns when nothing waits and nothing runs.
    pub(crate) async fn quiet(&self) {
        eventually("nothing waits or runs", BOUND, async || {
            let waiting = match self.is_stream() {
                true => self.say::<usize>(&["XLEN", &self.queue()]).await,
                false => self.say::<usize>(&["LLEN", &self.queue()]).await,
            };
            let lists: Vec<String> = self.say(&["KEYS", "*:mw:processing:*"]).await;
            let delayed: Vec<String> = self.say(&["KEYS", "*:mw:delayed"]).await;
            (waiting == 0 && lists.is_empty() && delayed.is_empty()).then_some(())
        })
        .await;
    }

    /// The service answers, and nothing is left behind.
    pub(crate) async fn goes_on(&self, service: ServiceHandle) {
        let request = Request::new("demo.echo", &json!({ "n": 7 })).unwrap();
        let answer: Value = self.tester.ask(request, BOUND).await.unwrap();
        assert_eq!(answer, json!({ "echo": { "n": 7 } }));
        self.quiet().await;
        service.stop().await;
    }
}

/// An action of a type, with these data.
pub(crate) fn request(action_type: &str, data: Value) -> Request {
    Request::new(action_type, &data).unwrap()
}

/// A text with ids and times replaced.
pub(crate) fn masked(text: &str) -> String {
    let is_id = |word: &str| {
        let digits = |part: &str| part.bytes().all(|c| c.is_ascii_hexdigit());
        let lengths: Vec<_> = word.split('-').map(str::len).collect();
        lengths == [8, 4, 4, 4, 12] && word.split('-').all(digits)
    };
    let (mut out, mut rest) = (String::new(), text);
    while let Some(c) = rest.chars().next() {
        let word = rest.get(..36).filter(|word| is_id(word));
        let time = rest.get(..27).filter(|word| {
            word.starts_with("20") && word.ends_with('Z') && word.as_bytes()[10] == b'T'
        });
        let (shown, length) = match (word, time) {
            (Some(_), _) => ("ID".to_owned(), 36),
            (None, Some(_)) => ("TIME".to_owned(), 27),
            (None, None) => (c.to_string(), c.len_utf8()),
        };
        out.push_str(&shown);
        rest = &rest[length..];
    }
    out
}
