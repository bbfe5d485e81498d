//! The demo service and its client as processes, started as their documentation says.

use std::process::Stdio;
use std::time::Duration;

use meshwork::protocol::nooble::{Client, Request};
use meshwork_broker::nooble::Nooble;
use meshwork_model::keys::nooble::{Dialect, NoobleKeys};
use meshwork_model::name::Namespace;
use meshwork_test_servers::eventually;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use super::support::{BOUND, Ground};
use crate::examples::example;

/// Timeout of the shutdown, beyond the actions in flight.
const ENDS_WITHIN: Duration = Duration::from_secs(10);

fn command(ground: &Ground, name: &str) -> Command {
    let mut command = Command::new(example(name));
    command.args(["--redis", &ground.url(), "--name", "demo"]);
    command.args(["--env", "development", "--dialect", ground.dialect.as_str()]);
    command.env_remove("ENVIRONMENT");
    command.stdout(Stdio::piped()).kill_on_drop(true);
    command
}

/// The demo service, when it has said that it listens.
async fn started(ground: &Ground) -> Child {
    let mut service = command(ground, "demo_service").spawn().unwrap();
    let mut lines = BufReader::new(service.stdout.take().unwrap()).lines();
    let line = tokio::time::timeout(BOUND, lines.next_line())
        .await
        .unwrap();
    let queue = match ground.dialect {
        Dialect::Streams => "nooble4:development:demo:streams:main",
        Dialect::Lists => "nooble4:development:demo:actions",
    };
    assert_eq!(line.unwrap().unwrap(), format!("listening on {queue}"));
    service
}

/// Tells it to end, and waits until it has: well, and in time.
async fn ends(mut service: Child) {
    let pid = Pid::from_raw(service.id().unwrap().cast_signed()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    let ended = tokio::time::timeout(ENDS_WITHIN, service.wait()).await;
    assert_eq!(ended.unwrap().unwrap().code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_client_finds_all_answers_as_they_should_be() {
    for ground in Ground::both().await {
        let service = started(&ground).await;
        let client = tokio::time::timeout(BOUND, command(&ground, "demo_client").output());
        let client = client.await.unwrap().unwrap();
        let said = String::from_utf8_lossy(&client.stdout);
        assert!(client.status.success(), "{}: {client:?}", ground.dialect);
        for verb in [
            "echo.run",
            "record.put",
            "none.run",
            "fail.run",
            "slow.run",
            "batch.generate",
            "batch_process",
            "rag.execute",
            "no.such",
        ] {
            assert!(
                said.lines().any(|line| line.starts_with(verb)),
                "{verb}: {said}"
            );
        }
        ends(service).await;
    }
}

/// Most calls that may arrive in the moment of the shutdown: such a call is released, not started.
const TRIES: usize = 5;

/// Reply of `XPENDING`: the number, the first, the last, and the consumers.
type Pending = (usize, redis::Value, redis::Value, redis::Value);

/// Actions in flight are answered first.
#[tokio::test(flavor = "multi_thread")]
async fn sigterm_ends_the_service_when_its_call_is_answered() {
    for ground in Ground::both().await {
        let mut tries = 0;
        while !is_answered_at_the_end(&ground).await {
            tries += 1;
            assert!(tries < TRIES, "{}", ground.dialect);
        }
    }
}

/// Ends the service during a call. Returns whether that service replied, so that no other had to.
async fn is_answered_at_the_end(ground: &Ground) -> bool {
    let service = started(ground).await;
    let names = NoobleKeys::new(Namespace::nooble(), Some("development"), ground.dialect);
    let broker = Nooble::new(ground.broker.conn().clone(), names);
    let queue = broker.names().actions("demo", None);
    let client = Client::new(broker, "tester");
    let request = Request::new("demo.slow.run", &json!({ "seconds": 1.5 })).unwrap();
    let call = tokio::spawn(async move { client.ask::<Value>(request, BOUND).await });
    eventually("it has begun", BOUND, async || {
        let has_it = match ground.dialect {
            Dialect::Streams => {
                // The service may not have made its group yet.
                let words = ["XPENDING", &queue, "demo-group"];
                let pending = ground.try_to_say::<Pending>(&words).await;
                pending.is_ok_and(|(many, ..)| many == 1)
            }
            Dialect::Lists => {
                let hand = format!("{queue}:mw:processing:*");
                !ground.say::<Vec<String>>(&["KEYS", &hand]).await.is_empty()
            }
        };
        has_it.then_some(())
    })
    .await;
    ends(service).await;
    let is_answered = ground.standing(&queue).await.is_empty();
    let next = match is_answered {
        true => None,
        false => Some(started(ground).await),
    };
    assert_eq!(call.await.unwrap().unwrap(), json!({ "slept": 1.5 }));
    if let Some(next) = next {
        ends(next).await;
    }
    is_answered
}
