//! A server whose memory is full: it takes nothing new, and what is there is found.

use std::sync::Arc;

use meshwork::protocol::nooble::{Client, Cycle, Error, Ids};
use meshwork::{Target, TlsFiles};
use meshwork_broker::nooble::{Nooble, Received, Source};
use meshwork_model::keys::nooble::{Dialect, NoobleKeys};
use meshwork_model::name::Namespace;
use meshwork_test_servers::eventually;
use meshwork_test_servers::servers::RealServer;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::support::{BOUND, request};

/// List of the answer until delivery.
const ASIDE: &str = "aside";

/// A server of its own with a service that only the test plays.
struct Full {
    server: RealServer,
    broker: Nooble,
    queue: Arc<Source>,
}

impl Full {
    /// One for each dialect.
    async fn both() -> Vec<Self> {
        let mut both = Vec::new();
        for dialect in [Dialect::Streams, Dialect::Lists] {
            let Some(server) = RealServer::redis().start() else {
                continue;
            };
            let target = Target::parse(&server.url(), TlsFiles::default()).unwrap();
            let names = NoobleKeys::new(Namespace::nooble(), None, dialect);
            let broker = Nooble::connect(&target, names).await.unwrap();
            let queue = broker.actions("demo", None);
            broker.prepare(&queue).await.unwrap();
            both.push(Self {
                server,
                broker,
                queue,
            });
        }
        both
    }

    fn client(&self) -> Client {
        Client::new(self.broker.clone(), "caller")
    }

    fn say<T: redis::FromRedisValue>(&self, words: &[&str]) -> T {
        self.server.say(words).unwrap()
    }

    /// The action that the service received.
    async fn received(&self) -> Value {
        let received: Received = eventually("it is request", BOUND, async || {
            let taken = self.broker.receive("mw.test", &self.queue, 1).await;
            taken.unwrap().pop()
        })
        .await;
        serde_json::from_slice(received.bytes()).unwrap()
    }

    /// The memory is full and the waiting caller knows it; then the reply arrives.
    async fn answers_when_full(&self, request: &Value) {
        let mut answer = json!({ "success": true, "data": { "n": 7 } });
        let same = [
            "correlation_id",
            "trace_id",
            "task_id",
            "tenant_id",
            "session_id",
            "timestamp",
            "action_id",
        ];
        for name in same {
            answer[name] = request[name].clone();
        }
        self.say::<()>(&["LPUSH", ASIDE, &answer.to_string()]);
        self.say::<()>(&["CONFIG", "SET", "maxmemory", "1"]);
        eventually("the wait is refused", BOUND, async || {
            let stats: String = self.say(&["INFO", "commandstats"]);
            let name = "cmdstat_blmove:";
            let waits = stats.lines().find(|line| line.starts_with(name))?;
            (!waits.contains("rejected_calls=0")).then_some(())
        })
        .await;
        // That needs no memory.
        let list = request["callback_queue_name"].as_str().unwrap();
        self.say::<()>(&["RENAME", ASIDE, list]);
    }
}

async fn given(call: JoinHandle<Result<Value, Error>>) -> Value {
    tokio::time::timeout(BOUND, call)
        .await
        .unwrap()
        .unwrap()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_on_a_list_of_its_own_is_found() {
    for full in Full::both().await {
        let client = full.client();
        let asks = request("demo.none", json!({})).private_list();
        let call = tokio::spawn(async move { client.ask(asks, BOUND * 10).await });
        let request = full.received().await;
        full.answers_when_full(&request).await;
        assert_eq!(given(call).await, json!({ "n": 7 }));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_to_a_step_is_found() {
    for full in Full::both().await {
        let cycle = Cycle::new(&full.client(), Ids::default());
        let asks = request("demo.none", json!({}));
        let call = tokio::spawn(async move { cycle.ask("a", asks, BOUND * 10).await });
        let request = full.received().await;
        full.answers_when_full(&request).await;
        assert_eq!(given(call).await, json!({ "n": 7 }));
    }
}
